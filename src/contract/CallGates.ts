// Who has a say before something happens: before a call is decided about, and before a message or a goal is taken. Hooks
// answer; the tool router and the operations ask. They can only be stricter than the policy.
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { CallState, ConversationState } from "../machine/State.ts"
import type { Content } from "../rune/kinds/shared.ts"

/** What somebody besides the policy says about a call that is about to be decided. */
export type Objection =
  | { readonly _tag: "Deny"; readonly reason: string }
  | { readonly _tag: "Ask"; readonly reason: string }

export interface Asking {
  /** Resolves when the call is durable: nothing may be started for it before. */
  readonly settled: () => Promise<void>
}

export type BeforeCall = (state: ConversationState, call: CallState, asking?: Asking) => Promise<Objection | undefined>

/** What is told of a conversation, there already or about to be, to whoever has a say about what is said in it. */
export type PromptScene = Pick<ConversationState, "conversation_id" | "turns" | "agents"> & {
  readonly session: Pick<ConversationState["session"], "config">
}

export type PromptVerdict =
  | { readonly _tag: "Pass"; readonly content: Content }
  | { readonly _tag: "Blocked"; readonly reason: string }

export type PromptGate = (scene: PromptScene, content: Content) => Promise<PromptVerdict>

export class CallGates extends Context.Service<
  CallGates,
  { readonly beforeCall?: BeforeCall; readonly beforePrompt?: PromptGate }
>()("echs/CallGates") {
  /** Nobody objects. */
  static readonly none: Layer.Layer<CallGates> = Layer.succeed(CallGates, {})
}
