/**
 * Runes of a turn: one input, any number of model calls and tool batches, exactly
 * one terminal rune (completed, interrupted or error).
 */
import * as Schema from "effect/Schema"
import { AgentId, CallId, EventId, HookRunId, RequestId, TurnId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import {
  Amount,
  CallSummary,
  Content,
  Count,
  EffectClass,
  ErrorSource,
  HookFailurePolicy,
  JsonValue,
  Name,
  Ordinal,
  Usage
} from "./shared.ts"

export const MessageMode = Schema.Literals(["queue", "steer"])
export type MessageMode = typeof MessageMode.Type

const textDeltas = ["turn.assistant_delta", "turn.reasoning_delta"]

/**
 * Provider data that must go back byte for byte (signatures, encrypted reasoning).
 * Only the same provider and model may be sent it again.
 */
export const NativeData = Schema.Struct({ provider: Schema.String, model: Schema.String, data: JsonValue })

/**
 * One piece of a model's answer, in order. A text item covers the next `chars`
 * UTF-16 units of the rune's `content`, so the text is stored once. A tool call
 * names its `tool.call` rune, which holds the arguments.
 */
export const AssistantItem = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), chars: Count, native: Schema.optionalKey(NativeData) }),
  Schema.Struct({
    type: Schema.Literal("reasoning"),
    text: Schema.optionalKey(Schema.String),
    native: Schema.optionalKey(NativeData)
  }),
  Schema.Struct({
    type: Schema.Literal("tool_call"),
    call_id: CallId,
    provider_call_id: Schema.optionalKey(Schema.String),
    native: Schema.optionalKey(NativeData)
  })
])
export type AssistantItem = typeof AssistantItem.Type

/** What a scheduled retry will do again. */
export const RetryTarget = Schema.Union([
  Schema.Struct({ type: Schema.Literal("llm") }),
  Schema.Struct({ type: Schema.Literal("tool"), call_id: CallId }),
  Schema.Struct({ type: Schema.Literal("hook"), hook_run_id: HookRunId })
])
export type RetryTarget = typeof RetryTarget.Type

/** A hook chosen for this batch, in the order in which it will run. */
export const PlannedHook = Schema.Struct({
  hook_run_id: HookRunId,
  hook_name: Name,
  failure_policy: HookFailurePolicy,
  timeout_ms: Ordinal,
  effect_class: EffectClass
})
export type PlannedHook = typeof PlannedHook.Type

const Delta = Schema.Struct({
  content: Schema.String,
  request_id: Schema.optionalKey(RequestId),
  /** What the provider has said so far that the answer uses. */
  usage: Schema.optionalKey(Usage)
})

/** What a request is expected to use, so that it can be charged where its answer never comes. */
export const RequestEstimate = Schema.Struct({
  input_tokens: Count,
  /** Left out where the price is not known. */
  input_usd: Schema.optionalKey(Amount),
  output_usd_per_token: Schema.optionalKey(Amount)
})
export type RequestEstimate = typeof RequestEstimate.Type

const Failure = {
  error_type: Name,
  message: Schema.String,
  source: Schema.optionalKey(ErrorSource)
}

export const turnKinds = [
  defineKind("turn.queued", {
    meaning: "Input waits for its turn.",
    views: ["catalog"],
    payload: Schema.Struct({
      input: Content,
      mode: MessageMode,
      from_agent_id: Schema.optionalKey(AgentId),
      principal: Schema.optionalKey(Schema.String)
    })
  }),
  /** Input that waited and will not be worked on. */
  defineKind("turn.dequeued", {
    meaning: "Queued input was dropped, with the reason.",
    views: ["catalog"],
    references: [["event_ids", "*"]],
    payload: Schema.Struct({ event_ids: Schema.Array(EventId), reason: Name })
  }),
  defineKind("turn.started", {
    meaning: "A turn begins with its input.",
    views: ["catalog", "state_events", "agent_events", "trace"],
    references: [["queued_event_ids", "*"]],
    payload: Schema.Struct({
      turn_id: TurnId,
      agent_id: AgentId,
      input: Content,
      queued_event_ids: Schema.optionalKey(Schema.Array(EventId)),
      retry_of: Schema.optionalKey(TurnId),
      /** A person has a run of that turn done again: the turn begins with it, and not with a model call. */
      target: Schema.optionalKey(RetryTarget),
      principal: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("turn.model_requested", {
    meaning: "A model request is about to be sent; written before the first byte.",
    views: ["catalog", "state_events", "trace"],
    payload: Schema.Struct({
      request_id: RequestId,
      provider: Schema.String,
      model: Schema.String,
      attempt: Ordinal,
      replaces: Schema.optionalKey(RequestId),
      partial_output: Schema.optionalKey(Schema.String),
      estimate: Schema.optionalKey(RequestEstimate),
      /** Not for an answer of the turn: for a summary of what came before it. */
      purpose: Schema.optionalKey(Schema.Literal("summary")),
      /** What the request before this one had used, where no other event says so. */
      usage: Schema.optionalKey(Usage)
    }),
    visibility: "internal",
    runeClass: "superseding",
    scope: "turn",
    supersedes: textDeltas
  }),
  defineKind("turn.assistant_delta", {
    meaning: "A fragment of the answer; the final text repeats it.",
    views: ["state_events"],
    payload: Delta,
    runeClass: "delta",
    scope: "turn"
  }),
  defineKind("turn.reasoning_delta", {
    meaning: "A fragment of the reasoning; the final answer replaces it.",
    views: ["state_events"],
    payload: Delta,
    runeClass: "delta",
    scope: "turn"
  }),
  defineKind("turn.assistant_final", {
    meaning: "The whole answer of one model request.",
    views: ["catalog", "state_events", "agent_events", "trace"],
    payload: Schema.Struct({
      content: Schema.String,
      items: Schema.Array(AssistantItem),
      request_id: Schema.optionalKey(RequestId),
      usage: Schema.optionalKey(Usage),
      stop_reason: Schema.optionalKey(Schema.String)
    }),
    runeClass: "superseding",
    scope: "turn",
    supersedes: textDeltas
  }),
  defineKind("turn.tool_calls_received", {
    meaning: "The answer asked for a batch of tool calls.",
    views: ["state_events"],
    payload: Schema.Struct({ call_ids: Schema.Array(CallId) })
  }),
  defineKind("turn.tools_finished", {
    meaning: "Every call of a batch has its result; the rune names the hooks that follow.",
    views: ["state_events"],
    payload: Schema.Struct({
      summaries: Schema.Array(CallSummary),
      hooks: Schema.optionalKey(Schema.Array(PlannedHook)),
      /** The batch itself ends the turn: the model is not asked again. */
      ends_turn: Schema.optionalKey(Schema.Boolean)
    })
  }),
  defineKind("turn.hooks_finished", {
    meaning: "Every hook of a batch has ended.",
    views: ["state_events"],
    payload: Schema.Struct({
      summaries: Schema.Array(
        Schema.Struct({ hook_run_id: HookRunId, hook_name: Schema.String, status: Schema.String })
      ),
      /** The model has answered this batch before: it is not asked again. */
      ends_turn: Schema.optionalKey(Schema.Boolean)
    })
  }),
  defineKind("turn.completed", {
    meaning: "The turn ended with its output.",
    views: ["catalog", "state_events", "agent_events", "trace"],
    payload: Schema.Struct({
      final_output: Schema.String,
      final_output_truncated: Schema.optionalKey(Schema.Boolean),
      usage: Usage
    }),
    runeClass: "terminal"
  }),
  defineKind("turn.interrupted", {
    meaning: "The turn was stopped, with its text so far.",
    views: ["catalog", "state_events", "agent_events", "trace"],
    payload: Schema.Struct({
      reason: Schema.String,
      partial_output: Schema.String,
      usage: Schema.optionalKey(Usage),
      principal: Schema.optionalKey(Schema.String)
    }),
    runeClass: "terminal",
    scope: "turn",
    supersedes: textDeltas
  }),
  defineKind("turn.error", {
    meaning: "The turn failed.",
    views: ["catalog", "state_events", "agent_events", "trace"],
    payload: Schema.Struct({
      ...Failure,
      retryable: Schema.Boolean,
      partial_output: Schema.optionalKey(Schema.String),
      usage: Schema.optionalKey(Usage)
    }),
    runeClass: "terminal",
    scope: "turn",
    supersedes: textDeltas
  }),
  defineKind("turn.retry_scheduled", {
    meaning: "A failed step will be retried, at a set time or by a person.",
    views: ["catalog", "state_events", "trace"],
    payload: Schema.Struct({
      attempt: Ordinal,
      delay_ms: Count,
      target: RetryTarget,
      ...Failure,
      /** Whom the turn waits for. */
      provider: Schema.optionalKey(Name),
      /** Nothing was sent, because the provider is known to be down: no failure, and tried when it may be back. */
      held: Schema.optionalKey(Schema.Boolean),
      /** Nothing but a person can help: there is no timer, `turn.retry` goes on. */
      waits_for: Schema.optionalKey(Schema.Literal("person")),
      /** What the abandoned call had used. */
      usage: Schema.optionalKey(Usage)
    })
  }),
  defineKind("turn.retry_started", {
    meaning: "A scheduled retry begins.",
    views: ["state_events"],
    payload: Schema.Struct({ attempt: Ordinal, target: RetryTarget })
  }),
  defineKind("turn.compacted", {
    meaning: "A summary replaced older messages in model requests.",
    views: ["catalog", "agent_events"],
    references: [["upto"]],
    payload: Schema.Struct({
      upto: EventId,
      summary: Schema.String,
      tokens_before: Schema.optionalKey(Count),
      tokens_after: Schema.optionalKey(Count),
      /** What the last request for the summary had used. */
      usage: Schema.optionalKey(Usage)
    })
  })
] as const
