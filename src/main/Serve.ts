// A server as one graph of layers: what is built first is closed last. `echs serve` and programs that hold a server in
// their own process start it here; a test replaces one room. Nothing is acknowledged that a stop would lose, and whatever
// is unfinished when it stops resumes at the next start.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { DataDirectory } from "../config/DataDirectory.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { LiveTexts } from "../contract/LiveText.ts"
import { type Log, ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { StopRequest } from "../contract/StopRequest.ts"
import { ApprovalService, PromptViewService, StoredConversations } from "../conversation/ConversationService.ts"
import type { Recovered } from "../conversation/Conversations.ts"
import { ResumeWork } from "../conversation/ResumeWork.ts"
import { layerSecure } from "../rune/IdSource.ts"
import { Listener } from "../server/Listener.ts"
import { StoreService } from "../store/Store.ts"
import { limits } from "../wire/WireLimits.ts"
import { defaultHost, type Rooms, roomsOf, type ServeOptions } from "./Rooms.ts"

export type { Rooms, ServeOptions } from "./Rooms.ts"

export interface RunningServer {
  readonly url: string
  readonly port: number
  readonly token: string
  readonly dataDirectory: string
  /** What it says of itself. */
  readonly log: Log
  /** What the last stop left unfinished is resumed; resolves when all of it was looked at. */
  readonly recovered: Promise<Recovered>
  /** Nobody is connected and no conversation has unfinished work. */
  readonly isIdle: () => boolean
  /** Resolves with the reason when an admin asks for a stop. */
  readonly stopRequested: Promise<string>
  readonly close: () => Promise<void>
}

export class BindRefused extends Error {
  override readonly name = "BindRefused"

  constructor(host: string) {
    super(`refusing to listen on ${host}: anybody on the network could come in; give a token of your own to allow it`)
  }
}

const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"])

/** Whatever hangs must not keep the process: what was acknowledged is durable already. */
const closeWithin = Effect.fnUntraced(function* (scope: Scope.Closeable, drainMs: number) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true })
  const done = yield* Effect.timeoutOption(Fiber.await(closing), drainMs)
  if (Option.isNone(done))
    (yield* ServerLog).write("warn", "the stop took too long, what hangs is left behind", { after_ms: drainMs })
})

/** The layer with an end of its own, which takes bounded time. */
const bounded =
  (drainMs: number) =>
  <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R | ServerLog> =>
    Layer.fromBuild((memoMap, scope) =>
      Effect.gen(function* () {
        const log = yield* ServerLog
        const inner = yield* Scope.make()
        const end = Effect.provideService(closeWithin(inner, drainMs), ServerLog, log)
        yield* Scope.addFinalizer(scope, end)
        return yield* Layer.buildWithMemoMap(layer, memoMap, inner)
      })
    )

/** Clients on this machine find the server by the note in its data directory. */
const announced = (version: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { url } = yield* Listener
      const { announce } = yield* DataDirectory
      yield* announce({ url, pid: process.pid, started_ms: Date.now(), version })
    })
  )

const views = Layer.mergeAll(StoredConversations.layer, ApprovalService.layer, PromptViewService.layer)
const signals = Layer.mergeAll(DurableNotices.layer, LiveTexts.layer, ServerReady.layer, StopRequest.layer, layerSecure)

/** Read from the bottom: every room finds what it needs below. */
export const serverOf = (options: ServeOptions, rooms: Rooms) =>
  announced(options.version).pipe(
    Layer.provideMerge(rooms.listener),
    Layer.provideMerge(rooms.administration),
    Layer.provideMerge(rooms.followers),
    Layer.provideMerge(ResumeWork.layer),
    Layer.provideMerge(views),
    Layer.provideMerge(rooms.conversations),
    Layer.provideMerge(rooms.agents),
    Layer.provideMerge(rooms.providers),
    Layer.provideMerge(rooms.store),
    bounded(options.drainMs ?? limits.drainMs),
    Layer.provideMerge(rooms.secrets),
    Layer.provideMerge(rooms.traces),
    Layer.provideMerge(signals),
    Layer.provideMerge(rooms.directory),
    Layer.provideMerge(rooms.log)
  )

/** Starts everything on a data directory; resolves when the server listens. */
export const startServer = async (options: ServeOptions, replaced: Partial<Rooms> = {}): Promise<RunningServer> => {
  const { dataDirectory, host = defaultHost, token } = options
  if (!loopback.has(host) && token === undefined) throw new BindRefused(host)
  const runtime = ManagedRuntime.make(serverOf(options, { ...roomsOf(options), ...replaced }))
  const built = await runtime.context().catch(async (error: unknown) => {
    await runtime.dispose()
    throw error
  })
  const listener = Context.get(built, Listener)
  const { catalog } = Context.get(built, StoreService)
  let closing: Promise<void> | undefined
  return {
    url: listener.url,
    port: listener.port,
    isIdle: () => listener.connectionCount === 0 && catalog.unfinished().length === 0,
    token: Context.get(built, DataDirectory).token,
    dataDirectory,
    log: Context.get(built, ServerLog),
    recovered: Effect.runPromise(Context.get(built, ResumeWork).recovered),
    stopRequested: Effect.runPromise(Deferred.await(Context.get(built, StopRequest))),
    close: () => (closing ??= runtime.dispose())
  }
}
