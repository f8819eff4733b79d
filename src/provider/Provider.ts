// The port every model provider implements: a call is a `Stream` of typed events that fails with a typed error.
// Promises to the consumer:
// - exactly one end: the stream completes after `done`, its last event, or it fails with a `ProviderError`;
// - it completes only after the provider's own terminal event;
// - a tool call is delivered only when the answer is complete, so no partial call can ever run;
// - interrupting the consumer aborts the request at once, and nothing is delivered after that;
// - a consumer that is slow holds the provider back: only a bounded number of events is buffered.
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { ArgumentsOutcome } from "./Arguments.ts"
import type { AssistantPart, ModelRequest } from "./Canonical.ts"
import type { ProviderError } from "./ProviderErrors.ts"

/** Tokens as billed. `input_tokens` includes cached and cache-written ones, `output_tokens` includes reasoning. */
export interface Usage {
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly cache_write_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
}

export type StopReason =
  | "end_turn"
  | "tool_calls"
  | "max_output_tokens"
  | "context_window"
  | "stop_sequence"
  /** The provider paused a long turn: send the answer back as it is to continue. */
  | "pause_turn"

export interface AssistantDelta {
  readonly type: "assistant_delta"
  readonly content: string
}

export interface ReasoningDelta {
  readonly type: "reasoning_delta"
  readonly content: string
}

export interface ToolCallEvent {
  readonly type: "tool_call"
  /** Unique in the conversation: ids the model repeated or left out were replaced. */
  readonly call_id: string
  readonly tool_name: string
  /** The text the model wrote. */
  readonly arguments: string
  /** The only form that may be executed, or the reason why there is none. */
  readonly parsed: ArgumentsOutcome
  /** Position among the calls of this answer. */
  readonly index: number
}

export interface UsageEvent {
  readonly type: "usage"
  readonly usage: Usage
}

/** What the provider says while it still answers; the last word is the `usage` event. */
export interface UsageSoFarEvent {
  readonly type: "usage_so_far"
  readonly usage: Usage
}

export interface AssistantFinal {
  readonly type: "assistant_final"
  /** The whole visible text. */
  readonly content: string
  /** The assistant message to append to the history, in the model's own order. */
  readonly items: ReadonlyArray<AssistantPart>
}

export interface Done {
  readonly type: "done"
  readonly stop_reason: StopReason
}

export type ProviderEvent =
  | AssistantDelta
  | ReasoningDelta
  | ToolCallEvent
  | UsageEvent
  | UsageSoFarEvent
  | AssistantFinal
  | Done

export interface StreamOptions {
  /** Called whenever bytes arrive, also those that carry no event. */
  readonly onActivity?: () => void
}

export interface ModelProvider {
  /** Name in front of the slash of a model name. */
  readonly name: string
  /** Why there is no such model, where that is known without asking for it. */
  readonly modelIssue?: (model: string) => Effect.Effect<string | undefined>
  readonly stream: (request: ModelRequest, options?: StreamOptions) => Stream.Stream<ProviderEvent, ProviderError>
}

/** Full name of a model, as opaque parts remember it. */
export const originOf = (provider: string, model: string): string => `${provider}/${model}`
