// A server as one graph of layers: what is built first is closed last. `echs serve` and programs that hold a server in
// their own process start it here; a test replaces one room. Nothing is acknowledged that a stop would lose, and whatever
// is unfinished when it stops resumes at the next start.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Attention } from "../attention/Attention.ts"
import { Goals } from "../autonomy/Goals.ts"
import { DataDirectory } from "../config/DataDirectory.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { LiveTexts } from "../contract/LiveText.ts"
import { OutsideAgentAccess } from "../contract/OutsideAgents.ts"
import { ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { StopRequest } from "../contract/StopRequest.ts"
import { ConversationReports } from "../conversation/ConversationReports.ts"
import { conversationViews } from "../conversation/ConversationService.ts"
import { PolicyService } from "../conversation/Policies.ts"
import { ResumeWork } from "../conversation/ResumeWork.ts"
import { layerSecure } from "../rune/IdSource.ts"
import { Listener, requireLoopback } from "../server/Listener.ts"
import { StoreService } from "../store/Store.ts"
import { bounded } from "../supervise/Bounded.ts"
import { limits } from "../wire/WireLimits.ts"
import { knownTools } from "./KnownTools.ts"
import { type Rooms, roomsOf } from "./Rooms.ts"
import type { RunningServer, ServeOptions } from "./ServeOptions.ts"

/** Clients on this machine find the server by the note in its data directory. */
const announced = (version: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { url } = yield* Listener
      const { announce } = yield* DataDirectory
      yield* announce({ url, pid: process.pid, started_ms: Date.now(), version })
    })
  )

const signals = Layer.mergeAll(DurableNotices.layer, LiveTexts.layer, ServerReady.layer, StopRequest.layer, layerSecure)

const lateStop = (after_ms: number): Effect.Effect<void, never, ServerLog> =>
  Effect.map(ServerLog, (log) =>
    log.write("warn", "the shutdown took too long; hanging work is abandoned", { after_ms })
  )

/** Read from the bottom: every room finds what it needs below. */
export const serverOf = (options: ServeOptions, rooms: Rooms) =>
  announced(options.version).pipe(
    Layer.provideMerge(rooms.listener),
    Layer.provideMerge(rooms.administration),
    Layer.provideMerge(rooms.outside),
    Layer.provideMerge(rooms.followers),
    Layer.provideMerge(ResumeWork.layer),
    Layer.provideMerge(Attention.layer),
    Layer.provideMerge(PolicyService.layer(knownTools)),
    Layer.provideMerge(conversationViews),
    Layer.provideMerge(rooms.conversations),
    Layer.provideMerge(Goals.layer),
    Layer.provideMerge(ConversationReports.layer),
    Layer.provideMerge(rooms.agents),
    Layer.provideMerge(rooms.providers),
    // Neither needs the other: the log is opened while the sandbox is looked for.
    Layer.provideMerge([rooms.store, rooms.machine]),
    bounded({ withinMs: options.drainMs ?? limits.drainMs, onLate: lateStop }),
    Layer.provideMerge(rooms.secrets),
    Layer.provideMerge(rooms.telemetry),
    Layer.provideMerge(signals),
    Layer.provideMerge(rooms.directory),
    Layer.provideMerge(rooms.log)
  )

/** Starts everything on a data directory; resolves when the server listens. */
export const startServer = async (options: ServeOptions, replaced: Partial<Rooms> = {}): Promise<RunningServer> => {
  const { dataDirectory, host, token } = options
  if (token === undefined) requireLoopback(host)
  const runtime = ManagedRuntime.make(serverOf(options, { ...roomsOf(options), ...replaced }))
  const built = await runtime.context().catch(async (error: unknown) => {
    await runtime.dispose()
    throw error
  })
  const listener = Context.get(built, Listener)
  const { catalog } = Context.get(built, StoreService)
  const outside = Context.get(built, OutsideAgentAccess)
  let closing: Promise<void> | undefined
  return {
    url: listener.url,
    port: listener.port,
    isIdle: () => listener.connectionCount === 0 && catalog.unfinished().length === 0 && outside.count() === 0,
    token: Context.get(built, DataDirectory).token,
    dataDirectory,
    log: Context.get(built, ServerLog),
    recovered: Effect.runPromise(Context.get(built, ResumeWork).recovered),
    stopRequested: Effect.runPromise(Deferred.await(Context.get(built, StopRequest))),
    close: () => (closing ??= runtime.dispose())
  }
}
