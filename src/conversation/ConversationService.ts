// The conversations of a process as services: made of the store, the models, the tools and the hooks of the graph, and
// stopped with the scope.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Goals } from "../autonomy/Goals.ts"
import { MediaBlobs, OutputBlobs } from "../contract/Blobs.ts"
import { ConversationAccess } from "../contract/ConversationAccess.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { LiveTexts } from "../contract/LiveText.ts"
import { describeError, ServerLog } from "../contract/ServerLog.ts"
import { ServerHooks } from "../hook/HookService.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import { AgentPrompts } from "../prompt/AgentPrompts.ts"
import { ModelProviders } from "../provider/Registry.ts"
import { Ids } from "../rune/IdSource.ts"
import { Workspaces } from "../sandbox/Sandbox.ts"
import { type Engine, LogEngine } from "../store/LogEngine.ts"
import { StoredRunes } from "../store/runes/StoredRunes.ts"
import { SnapshotService } from "../store/SnapshotService.ts"
import { StoreService } from "../store/Store.ts"
import { Checkpoints } from "../tool/checkpoint/Checkpoints.ts"
import { ToolRouter } from "../tool/ToolService.ts"
import { Approvals } from "./Approvals.ts"
import { ConversationReports } from "./ConversationReports.ts"
import { ConversationStore } from "./ConversationStore.ts"
import type { Conversations } from "./Conversations.ts"
import { PromptView } from "./PromptView.ts"
import { makeConversations, type RuntimeOptions } from "./Runtime.ts"
import { snapshotPort } from "./SnapshotStore.ts"
import { Undo } from "./Undo.ts"

export type ConversationOptions = Partial<
  Pick<RuntimeOptions, "deltaEveryMs" | "residentMax" | "idleAfterMs" | "mailboxMax" | "limitDefaults">
>

type Needs =
  | LogEngine
  | StoredRunes
  | SnapshotService
  | OutputBlobs
  | MediaBlobs
  | ModelProviders
  | ToolRouter
  | ServerHooks
  | AgentPrompts
  | Goals
  | Checkpoints
  | Workspaces
  | Ids
  | LiveTexts
  | DurableNotices
  | ConversationReports

const pressureOf = ({ runelog }: Engine): RuntimeOptions["pressure"] => ({
  busy: () => runelog.busy,
  ready: () => runelog.ready(),
  rest: (conversationId) => runelog.rest(conversationId),
  thinner: runelog
})

const runtimeOptions = Effect.fnUntraced(function* (options: ConversationOptions) {
  const store = yield* StoredRunes
  const snapshots = yield* SnapshotService
  const outputs = yield* OutputBlobs
  const media = yield* MediaBlobs
  const { check, issue } = yield* Workspaces
  const made: RuntimeOptions = {
    ...options,
    reports: yield* ConversationReports,
    liveTexts: yield* LiveTexts,
    store,
    pressure: pressureOf(yield* LogEngine),
    snapshots: snapshotPort({ snapshots, store }),
    keepOutput: (output) => outputs.keep(output),
    keepMedia: (bytes, mediaType) => media.keep(bytes, mediaType),
    registry: yield* ModelProviders,
    tools: yield* ToolRouter,
    hooks: (yield* ServerHooks).port,
    goals: yield* Goals,
    prompts: yield* AgentPrompts,
    workspaceCheck: check,
    workspaceIssue: issue,
    ids: yield* Ids,
    clock: { nowMs: () => Date.now() }
  }
  const checkpoints = yield* Checkpoints
  return checkpoints === undefined ? made : { ...made, checkpoints }
})

export class ConversationService extends Context.Service<ConversationService, Conversations>()(
  "echs/ConversationService"
) {
  static readonly layer = (
    options: ConversationOptions
  ): Layer.Layer<ConversationService | ConversationAccess, never, Needs> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const conversations = yield* makeConversations(yield* runtimeOptions(options))
        yield* DurableNotices.listen({
          name: "conversations",
          // Not inside the append that found it.
          refused: (cause, conversationId) => void setImmediate(() => conversations.stopWriting(cause, conversationId))
        })
        return Context.make(ConversationService, conversations).pipe(Context.add(ConversationAccess, conversations))
      })
    )
}

/** Stored conversations, in memory or not. */
export class StoredConversations extends Context.Service<StoredConversations, ConversationStore>()(
  "echs/StoredConversations"
) {
  static readonly layer: Layer.Layer<StoredConversations, never, StoreService | ConversationService | Ids> =
    Layer.effect(
      StoredConversations,
      Effect.gen(function* () {
        const parts = { store: yield* StoreService, conversations: yield* ConversationService, ids: yield* Ids }
        return new ConversationStore({ ...parts, nowMs: () => Date.now() })
      })
    )
}

/** Takes the yes of a person to a call. */
export class ApprovalService extends Context.Service<ApprovalService, Approvals>()("echs/ApprovalService") {
  static readonly layer: Layer.Layer<
    ApprovalService,
    never,
    ConversationService | ToolRouter | ServerRules | ServerLog
  > = Layer.effect(
    ApprovalService,
    Effect.gen(function* () {
      const log = yield* ServerLog
      const { learn } = yield* ServerRules
      const onNotLearned = (error: unknown): void =>
        log.write("error", "a permanent permission was not saved", { cause: describeError(error) })
      const parts = { conversations: yield* ConversationService, tools: yield* ToolRouter }
      return new Approvals({ ...parts, onNotLearned, ...(learn === undefined ? {} : { learn }) })
    })
  )
}

/** What models are told before and beside the messages. */
export class PromptViewService extends Context.Service<PromptViewService, PromptView>()("echs/PromptViewService") {
  static readonly layer: Layer.Layer<PromptViewService, never, ConversationService | AgentPrompts | ModelProviders> =
    Layer.effect(
      PromptViewService,
      Effect.gen(function* () {
        const conversations = yield* ConversationService
        const { catalog } = yield* ModelProviders
        return new PromptView({
          state: (conversationId) => conversations.state(conversationId),
          prompts: yield* AgentPrompts,
          contextTokens: (model) => catalog.lookup(model).contextTokens
        })
      })
    )
}

/** Brings files and conversations back. */
export class UndoService extends Context.Service<UndoService, Undo>()("echs/UndoService") {
  static readonly layer: Layer.Layer<UndoService, never, ConversationService | StoredConversations | Checkpoints> =
    Layer.effect(
      UndoService,
      Effect.gen(function* () {
        const parts = { conversations: yield* ConversationService, store: yield* StoredConversations }
        return new Undo({ ...parts, checkpoints: yield* Checkpoints })
      })
    )
}

/** What operations ask of conversations besides speaking to them. */
export const conversationViews = Layer.mergeAll(ApprovalService.layer, PromptViewService.layer, UndoService.layer).pipe(
  Layer.provideMerge(StoredConversations.layer)
)
