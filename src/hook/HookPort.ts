// What a turn needs from post-tool hooks: which of them a finished batch has to go through, and running one.
import * as Effect from "effect/Effect"
import type { HookChoice } from "../machine/Command.ts"
import type { CallState, ConversationState, HookState } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { HookStatus } from "../rune/kinds/hook.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import type { HookTicket } from "./Pipeline.ts"

export interface HookOutcome {
  readonly status: HookStatus
  readonly exit_code?: number
  readonly output?: string
  readonly error?: ErrorInfo
  /** What the model has to know before it goes on; it is told as a message of the hook. */
  readonly feedback?: string
  /** The turn has to end, for this reason. */
  readonly stop?: string
}

export interface HookPort {
  /** Joins the queue of those who run hooks in the conversation or in the workspace; without it nobody has to wait. */
  readonly enter?: (place: { readonly conversation_id: string; readonly workspace: string }) => HookTicket
  /** What has to be on record about the hooks of a conversation before any of them is chosen. */
  readonly complaints?: (state: ConversationState) => ReadonlyArray<PayloadOf<"system.error">>
  /** The hooks that a batch of finished calls has to go through, in the order in which they run. */
  readonly choose: (
    state: ConversationState,
    agentId: AgentId,
    batch: ReadonlyArray<CallState>
  ) => ReadonlyArray<HookChoice>
  /** Runs one hook; a defect means that the runner itself broke. Interruption ends what it started. */
  readonly run: (
    state: ConversationState,
    hook: HookState,
    context: { readonly agent_id: AgentId; readonly workspace: string | undefined }
  ) => Effect.Effect<HookOutcome>
}

/** No hooks are configured. */
export const noHooks: HookPort = {
  choose: () => [],
  run: () => Effect.succeed({ status: "succeeded" })
}
