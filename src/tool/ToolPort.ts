// What a turn needs from tools: which exist, whether a call may run, and running it. The turn engine owns the
// order and the record; a tool owns nothing but its work. Interruption ends a call, and whatever it started is gone
// when the interruption is over.
import type * as Effect from "effect/Effect"
import type { Asking } from "../contract/CallGates.ts"
import type { Command, ToolFacts } from "../machine/Command.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import type { AgentId, CallId, ConversationId, TurnId } from "../rune/Ids.ts"
import type { Attachment, BlobRef, ErrorInfo } from "../rune/kinds/shared.ts"
import type { ApprovalScope, Learns, ProgressStream, SandboxInfo, ShownAs } from "../rune/kinds/tool.ts"

/** A tool as the model sees it. */
export interface ToolDescription {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments; its root is an object. */
  readonly parameters: { readonly [key: string]: unknown }
}

export type Authorization =
  | { readonly _tag: "Allow"; readonly sandbox: SandboxInfo }
  | {
      readonly _tag: "Ask"
      readonly policy_reason: string
      readonly shown_as: ShownAs
      readonly choices?: ReadonlyArray<ApprovalScope>
      readonly learns?: Learns
    }
  | { readonly _tag: "Deny"; readonly reason: string }
  /** The call cannot run at all; the model is told why. */
  | { readonly _tag: "Reject"; readonly error: ErrorInfo }

export interface ToolContext {
  readonly conversation_id: ConversationId
  readonly agent_id: AgentId
  readonly turn_id: TurnId
  readonly call_id: CallId
  readonly attempt: number
  readonly workspace: string | undefined
  /** Whoever created the conversation meant a workspace that is refused otherwise. */
  readonly unsafe_workspace?: boolean
  /** What a call that is interrupted still came to; given before the interruption is over. */
  readonly interruptedWith: (outcome: ToolOutcome) => void
  /** The policy, or whoever answered its question, lets the call reach the network; not, when left out. */
  readonly network?: boolean
  /** Output as it comes; calls after the end are ignored. */
  readonly progress: (stream: ProgressStream, chunk: string) => void
  /** The conversation the call belongs to, for the tools that work on it: agents, plans, questions. */
  readonly conversation: ToolConversation
}

/** For work that is promises: the signal aborts when the call is interrupted. */
export interface SignalContext extends ToolContext {
  readonly signal: AbortSignal
}

export interface ToolConversation {
  readonly state: () => ConversationState
  /** Resolves when the runes of the command are durable; rejects with a tagged error. */
  readonly submit: (command: Command) => Promise<unknown>
  /** Resolves at the next change of state, or when the signal aborts. */
  readonly changed: (signal: AbortSignal) => Promise<void>
}

/** Bytes as a tool has them; the name is for people. */
export interface RawMedia {
  readonly bytes: Uint8Array
  readonly name?: string
}

export interface ToolOutcome {
  readonly status: "success" | "error" | "timeout" | "cancelled" | "unknown" | "sandbox_violation"
  readonly output?: string
  readonly output_blob?: BlobRef
  /** Images and documents to show, kept already. */
  readonly attachments?: ReadonlyArray<Attachment>
  /** Bytes that are still to be kept; whoever runs the tool does that. */
  readonly media?: ReadonlyArray<RawMedia>
  readonly error?: ErrorInfo
  readonly exit_code?: number
  /** Of what a client answered, word for word. */
  readonly answer_sha256?: string
}

/** Tools that a source has and cannot offer. */
export interface LeftOutTools {
  /** Whose they are, for people. */
  readonly origin: string
  readonly count: number
  /** Some of their names. */
  readonly names: ReadonlyArray<string>
  readonly reason: string
}

export interface ToolPort {
  /** Waits until the tools of an agent are known as far as they can be. Takes bounded time. */
  readonly ready?: (state: ConversationState, agentId: AgentId) => Effect.Effect<void>
  /** The tools an agent may be offered. */
  readonly describe: (state: ConversationState, agentId: AgentId) => ReadonlyArray<ToolDescription>
  /** Tools that are there and cannot be offered, for whoever has to be told. */
  readonly leftOut?: (state: ConversationState, agentId: AgentId) => ReadonlyArray<LeftOutTools>
  /** What is known of a tool the model named; nothing when there is no such tool for this agent. */
  readonly facts: (state: ConversationState, agentId: AgentId, toolName: string) => ToolFacts | undefined
  /** Whether a pending call may run. */
  readonly authorize: (state: ConversationState, call: CallState, asking?: Asking) => Effect.Effect<Authorization>
  /** What the policy alone says about a call: nobody else is asked, and no program is started for the answer. */
  readonly judge?: (state: ConversationState, call: CallState) => "allow" | "ask" | "deny"
  /** Where a call that may run will run. */
  readonly sandbox: (state: ConversationState, call: CallState) => SandboxInfo
  /** Runs the call. A defect means that the runner itself broke, not that the tool failed. */
  readonly run: (state: ConversationState, call: CallState, context: ToolContext) => Effect.Effect<ToolOutcome>
}
