// The runtime of one process: conversations over a rune store, with models, tools and hooks to work with. Assembles, and
// owns nothing of its own; whoever opens the parts closes them.
import type * as Cause from "effect/Cause"
import type { HookPort } from "../hook/Port.ts"
import { noHooks } from "../hook/Port.ts"
import type { ConversationState } from "../machine/State.ts"
import type { Registry } from "../provider/Registry.ts"
import type { IdSource } from "../rune/IdSource.ts"
import type { AgentId, ConversationId, TurnId } from "../rune/Ids.ts"
import type { AnyRune } from "../rune/Rune.ts"
import type { RuneStore } from "../store/RuneStore.ts"
import { defaultIntensity, type RestartIntensity } from "../supervise/ChildSpec.ts"
import type { ToolPort } from "../tool/Port.ts"
import { Compaction } from "../turn/Compaction.ts"
import { perform } from "../turn/Engine.ts"
import { limits as turnLimits } from "../turn/Limits.ts"
import { Models } from "../turn/Models.ts"
import { Spending } from "../turn/Spending.ts"
import { type ConversationLog, Conversations, type Resident, type Workers } from "./Conversations.ts"
import type { LogRefused } from "./Errors.ts"
import type { WallClock } from "./Ports.ts"

/** Snapshots of folded state, if there are any: disposable, and never trusted over the log. */
export interface SnapshotPort {
  readonly newest: (conversationId: ConversationId) => Promise<ConversationState | undefined>
  readonly save: (state: ConversationState) => Promise<void>
}

export interface Live {
  readonly conversation_id: ConversationId
  readonly agent_id: AgentId | string
  readonly turn_id: TurnId | string
  readonly text: string
}

export interface RuntimeOptions {
  readonly store: RuneStore
  /** The log has no room for more appends right now, and when it has. */
  readonly pressure: { readonly busy: () => boolean; readonly ready: () => Promise<void> }
  readonly snapshots?: SnapshotPort
  readonly registry: Registry
  readonly tools: ToolPort
  readonly hooks?: HookPort
  readonly ids: IdSource
  readonly clock: WallClock
  readonly monotonicMs?: () => number
  readonly random?: () => number
  readonly intensity?: RestartIntensity
  readonly residentMax?: number
  /** Gathers text of a stream for this long before it becomes a rune; 0 makes every delta one. */
  readonly deltaEveryMs?: number
  readonly onLive?: (live: Live) => void
  readonly onCrash?: (conversationId: ConversationId, work: string, cause: Cause.Cause<unknown>) => void
  readonly onLogRefused?: (error: LogRefused) => void
}

const logOf = ({ store, pressure, snapshots }: RuntimeOptions): ConversationLog => ({
  append: (conversationId, runes, options) => store.appendNow(conversationId, runes, options),
  busy: pressure.busy,
  ready: pressure.ready,
  snapshot: async (conversationId) => snapshots?.newest(conversationId),
  saveSnapshot: async (state) => snapshots?.save(state),
  pages: (conversationId, after) => runesAfter(store, conversationId, after)
})

async function* runesAfter(
  store: RuneStore,
  conversationId: ConversationId,
  after: number
): AsyncGenerator<ReadonlyArray<AnyRune>> {
  if ((await store.headNow(conversationId)) <= after) return
  for await (const page of store.pagesNow(conversationId, { after })) yield page.runes
}

const workersOf = (options: RuntimeOptions, models: Models, resident: Resident): Workers => {
  const { actor, changed } = resident
  const conversationId = actor.conversationId
  const commands = {
    conversationId,
    state: () => actor.state,
    submit: (command: Parameters<typeof actor.submit>[0]) => actor.submit(command)
  }
  const { onLive } = options
  const engine = {
    commands,
    models,
    changed,
    tools: options.tools,
    hooks: options.hooks ?? noHooks,
    spending: new Spending(),
    compaction: new Compaction({ commands, models, ids: options.ids }),
    ids: options.ids,
    nowMs: options.clock.nowMs,
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
    random: options.random ?? Math.random,
    deltaEveryMs: options.deltaEveryMs ?? turnLimits.deltaEveryMs,
    ...(onLive === undefined
      ? {}
      : { onLive: (live: Omit<Live, "conversation_id">) => onLive({ conversation_id: conversationId, ...live }) })
  }
  return { perform: (pending) => perform(engine, pending) }
}

export const makeConversations = (options: RuntimeOptions): Conversations => {
  const models = new Models(options.registry)
  return new Conversations({
    log: logOf(options),
    ids: options.ids,
    clock: options.clock,
    intensity: options.intensity ?? defaultIntensity,
    workers: (resident) => workersOf(options, models, resident),
    ...(options.residentMax === undefined ? {} : { residentMax: options.residentMax }),
    ...(options.onCrash === undefined ? {} : { onCrash: options.onCrash }),
    ...(options.onLogRefused === undefined ? {} : { onLogRefused: options.onLogRefused })
  })
}
