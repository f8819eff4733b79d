// The runtime of one process: conversations over a rune store, with models, tools and hooks to work with. Assembles, and
// owns nothing of its own; whoever opens the parts closes them.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { GoalWork } from "../autonomy/Goals.ts"
import type { Channel } from "../contract/Channel.ts"
import type { LiveText } from "../contract/LiveText.ts"
import type { HookPort } from "../hook/HookPort.ts"
import { noHooks } from "../hook/HookPort.ts"
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import type { PromptPort } from "../prompt/PromptPort.ts"
import type { Registry } from "../provider/Registry.ts"
import type { IdSource } from "../rune/IdSource.ts"
import type { ConversationId } from "../rune/Ids.ts"
import type { BlobRef } from "../rune/kinds/shared.ts"
import type { AnyRune } from "../rune/Rune.ts"
import type { WorkspaceCheck } from "../sandbox/WorkspaceCheck.ts"
import type { RuneStore } from "../store/runes/RuneStore.ts"
import type { RunFork } from "../supervise/Branch.ts"
import { defaultIntensity, type RestartIntensity } from "../supervise/ChildSpec.ts"
import type { CheckpointPort } from "../tool/checkpoint/Checkpoints.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import { Compaction } from "../turn/Compaction.ts"
import { Models } from "../turn/Models.ts"
import { Spending } from "../turn/Spending.ts"
import { Streams } from "../turn/Streams.ts"
import { type EngineOptions, perform } from "../turn/TurnEngine.ts"
import { limits as turnLimits } from "../turn/TurnLimits.ts"
import { Conversations, type ConversationsOptions } from "./Conversations.ts"
import type { WorkContext, Workers } from "./LoadedConversation.ts"
import type { WallClock } from "./Ports.ts"
import type { ConversationLog } from "./ReadConversation.ts"

/** Snapshots of folded state, if there are any: disposable, and never trusted over the log. */
export interface SnapshotPort {
  /** The newest good one that is not ahead of the log; the value is given away. */
  readonly newest: (conversationId: ConversationId) => Promise<ConversationState | undefined>
  /** Reads the state before it returns; tells how many characters it was. */
  readonly save: (state: ConversationState) => Promise<number>
}

export interface RuntimeOptions {
  readonly store: RuneStore
  /** The log has no room for more appends right now, and when it has; and what it may forget. */
  readonly pressure: {
    readonly busy: () => boolean
    readonly ready: () => Promise<void>
    readonly rest?: (conversationId: ConversationId) => void
    readonly thinner?: ConversationLog["thinner"]
  }
  readonly snapshots?: SnapshotPort
  /** Where outputs go that are too long for a result. */
  readonly keepOutput?: (output: string) => Promise<BlobRef>
  /** Where images and documents of tools go. */
  readonly keepMedia?: EngineOptions["keepMedia"]
  readonly registry: Registry
  readonly tools: ToolPort
  /** What agents are told about where they work; nothing, without one. */
  readonly prompts?: PromptPort
  readonly hooks?: HookPort
  /** Records the files of workspaces before they are changed. */
  readonly checkpoints?: CheckpointPort
  readonly goals: GoalWork
  readonly ids: IdSource
  readonly clock: WallClock
  readonly monotonicMs?: () => number
  readonly random?: () => number
  readonly intensity?: RestartIntensity
  readonly workspaceCheck?: WorkspaceCheck
  readonly limitDefaults?: NonNullable<ConversationsOptions["limitDefaults"]>
  /** Why no agent can begin in a directory. */
  readonly workspaceIssue?: WorkspaceCheck
  readonly runFork?: RunFork
  readonly residentMax?: number
  readonly idleAfterMs?: number
  readonly mailboxMax?: number
  readonly reloadAfterMs?: ReadonlyArray<number>
  /** Gathers text of a stream for this long before it becomes a rune; 0 makes every delta one. */
  readonly deltaEveryMs?: number
  /** Where text is told as it arrives. */
  readonly liveTexts?: Channel<readonly [live: LiveText]>
  readonly reports?: NonNullable<ConversationsOptions["reports"]>
}

const logOf = ({ store, pressure, snapshots }: RuntimeOptions): ConversationLog => ({
  append: (conversationId, runes, options) => store.appendNow(conversationId, runes, options),
  busy: pressure.busy,
  ready: pressure.ready,
  ...(pressure.rest === undefined ? {} : { rest: pressure.rest }),
  ...(pressure.thinner === undefined ? {} : { thinner: pressure.thinner }),
  snapshot: async (conversationId) => snapshots?.newest(conversationId),
  saveSnapshot: async (state) => (await snapshots?.save(state)) ?? 0,
  refusal: (conversationId) => store.refusalNow(conversationId),
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

/** What the engines of all conversations have in common. */
interface Shared
  extends Omit<EngineOptions, "commands" | "changed" | "spending" | "streams" | "compaction" | "onLive"> {
  readonly goals: GoalWork
}

const sharedOf = (options: RuntimeOptions): Shared => ({
  goals: options.goals,
  models: new Models(options.registry),
  tools: options.goals.withRoleTools(options.tools),
  ...(options.prompts === undefined ? {} : { prompts: options.prompts }),
  ...(options.checkpoints === undefined ? {} : { checkpoints: options.checkpoints }),
  endsTurn: options.goals.endsTurn,
  hooks: options.hooks ?? noHooks,
  workspaceIssue: options.workspaceIssue,
  ids: options.ids,
  nowMs: options.clock.nowMs,
  monotonicMs: options.monotonicMs ?? (() => performance.now()),
  random: options.random ?? Math.random,
  deltaEveryMs: options.deltaEveryMs ?? turnLimits.deltaEveryMs,
  ...(options.keepOutput === undefined ? {} : { keepOutput: options.keepOutput }),
  ...(options.keepMedia === undefined ? {} : { keepMedia: options.keepMedia })
})

const workersOf = (shared: Shared, liveTexts: RuntimeOptions["liveTexts"], workContext: WorkContext): Workers => {
  const { actor } = workContext
  const { conversationId } = actor
  const commands = {
    conversationId,
    state: () => actor.state,
    submit: (command: Command) => actor.insist(command),
    settled: () => actor.settled()
  }
  const streams = new Streams()
  const engine: EngineOptions = {
    ...shared,
    commands,
    streams,
    changed: (signal) => workContext.changed(signal),
    spending: new Spending(),
    compaction: new Compaction({ commands, models: shared.models, ids: shared.ids, streams }),
    onLive: (live) => liveTexts?.tell({ conversation_id: conversationId, ...live })
  }
  const { state, submit } = commands
  const pursue = shared.goals.driverOf({ state, submit, changed: engine.changed })
  return {
    perform: (pending) =>
      pending._tag === "PlanWork"
        ? Effect.promise(async (signal) => {
            // State runs ahead of the disk, and a command of the evidence or a worktree is not taken back.
            await commands.settled()
            if (!signal.aborted) await pursue(pending, signal)
          })
        : perform(engine, pending),
    beforeDecision: (command) => streams.beforeDecision(command)
  }
}

const kept = [
  "runFork",
  "residentMax",
  "idleAfterMs",
  "mailboxMax",
  "reloadAfterMs",
  "workspaceCheck",
  "limitDefaults",
  "reports"
] as const

/** Options that are passed on as they are, those left out left out. */
const passedOn = (options: RuntimeOptions): Pick<RuntimeOptions, (typeof kept)[number]> =>
  Object.fromEntries(kept.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]))

export const makeConversations = (options: RuntimeOptions): Effect.Effect<Conversations, never, Scope.Scope> => {
  const shared = sharedOf(options)
  return Conversations.make({
    ...passedOn(options),
    log: logOf(options),
    ids: options.ids,
    clock: options.clock,
    monotonicMs: shared.monotonicMs,
    intensity: options.intensity ?? defaultIntensity,
    isPriced: (model) => options.registry.catalog.lookup(model).price !== undefined,
    circuits: () => shared.models.circuits(),
    workers: (workContext) => workersOf(shared, options.liveTexts, workContext)
  })
}
