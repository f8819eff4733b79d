/**
 * Pieces that payloads of several families share. Numbers are finite, counts are
 * integers, and a JSON value of unknown shape is passed through untouched.
 */
import * as Schema from "effect/Schema"
import { CallId, Sha256Hex } from "../Ids.ts"

export const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
export const Ordinal = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
export const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
export const Name = Schema.String.check(Schema.isMinLength(1))

/** Any JSON value. It arrived through JSON.parse, so walking it again proves nothing. */
export const JsonValue = Schema.Unknown

/** Reference to bytes kept beside the log under their own hash. */
export const BlobRef = Schema.Struct({
  sha256: Sha256Hex,
  bytes: Count,
  media_type: Schema.optionalKey(Schema.String)
})
export type BlobRef = typeof BlobRef.Type

export const ContentPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("image"),
    media_type: Schema.String,
    data: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    blob: Schema.optionalKey(BlobRef)
  }),
  Schema.Struct({
    type: Schema.Literal("file"),
    name: Schema.String,
    media_type: Schema.optionalKey(Schema.String),
    text: Schema.optionalKey(Schema.String),
    blob: Schema.optionalKey(BlobRef)
  })
])
export type ContentPart = typeof ContentPart.Type

/** An image or a document that a tool brought, kept as a blob. */
export const Attachment = Schema.Union([
  Schema.Struct({ type: Schema.Literal("image"), media_type: Schema.String, blob: BlobRef }),
  Schema.Struct({ type: Schema.Literal("file"), name: Schema.String, media_type: Schema.String, blob: BlobRef })
])
export type Attachment = typeof Attachment.Type

/** What a person or an agent says: plain text, or text with attachments. */
export const Content = Schema.Union([Schema.String, Schema.Array(ContentPart)])
export type Content = typeof Content.Type

export const Usage = Schema.Struct({
  input_tokens: Count,
  output_tokens: Count,
  cached_tokens: Schema.optionalKey(Count),
  reasoning_tokens: Schema.optionalKey(Count),
  /** Left out where a price is not known. */
  usd: Schema.optionalKey(Amount),
  /** A call was cut off before its provider had told all of it: part of this is an estimate. */
  estimated: Schema.optionalKey(Schema.Boolean)
})
export type Usage = typeof Usage.Type

export const Budget = Schema.Struct({
  tokens: Schema.optionalKey(Count),
  usd: Schema.optionalKey(Amount),
  tool_calls: Schema.optionalKey(Count),
  wall_ms: Schema.optionalKey(Count)
})
export type Budget = typeof Budget.Type

export const BudgetMeasure = Schema.Literals(["tokens", "usd", "tool_calls", "wall_ms"])
export type BudgetMeasure = typeof BudgetMeasure.Type

export const ErrorSource = Schema.Literals(["harness", "tool", "hook", "orchestrator"])
export type ErrorSource = typeof ErrorSource.Type

export const ErrorInfo = Schema.Struct({
  code: Name,
  message: Schema.String,
  retryable: Schema.optionalKey(Schema.Boolean),
  source: Schema.optionalKey(ErrorSource),
  data: Schema.optionalKey(JsonValue)
})
export type ErrorInfo = typeof ErrorInfo.Type

/**
 * What running it twice would mean. pure: nothing changes; idempotent: twice is
 * the same as once; effect: twice may do damage.
 */
export const EffectClass = Schema.Literals(["pure", "idempotent", "effect"])
export type EffectClass = typeof EffectClass.Type

export const HookFailurePolicy = Schema.Union([
  Schema.Struct({ type: Schema.Literal("fail_session") }),
  Schema.Struct({ type: Schema.Literal("warn_continue") }),
  Schema.Struct({ type: Schema.Literal("retry"), max_attempts: Ordinal, delay_ms: Count })
])
export type HookFailurePolicy = typeof HookFailurePolicy.Type

export const PolicyMode = Schema.Literals(["read_only", "auto", "full_access"])

export const PermissionPolicy = Schema.Struct({
  mode: Schema.optionalKey(PolicyMode),
  rules: Schema.optionalKey(Schema.Array(JsonValue))
})

/** Overrides of the runtime's limits for one conversation; names as in the limits table. */
export const LimitOverrides = Schema.Struct({
  max_llm_retries: Schema.optionalKey(Count),
  llm_retry_ms: Schema.optionalKey(Count),
  llm_retry_goal_ms: Schema.optionalKey(Count),
  max_tool_retries: Schema.optionalKey(Count),
  llm_timeout_ms: Schema.optionalKey(Ordinal),
  llm_first_event_ms: Schema.optionalKey(Ordinal),
  llm_idle_ms: Schema.optionalKey(Ordinal),
  tool_timeout_ms: Schema.optionalKey(Ordinal),
  approval_timeout_ms: Schema.optionalKey(Count),
  error_threshold: Schema.optionalKey(Count)
})

/** Everything a person may choose about a conversation, at its creation or later. */
export const ConversationConfig = Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  workspace: Schema.optionalKey(Schema.String),
  /** Whoever created it meant a workspace that is refused otherwise. */
  unsafe_workspace: Schema.optionalKey(Schema.Boolean),
  model: Schema.optionalKey(Schema.String),
  instructions: Schema.optionalKey(Schema.String),
  policy: Schema.optionalKey(PermissionPolicy),
  budget: Schema.optionalKey(Budget),
  tools: Schema.optionalKey(Schema.Array(JsonValue)),
  labels: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  limits: Schema.optionalKey(LimitOverrides),
  extra: Schema.optionalKey(Schema.Record(Schema.String, JsonValue))
})
export type ConversationConfig = typeof ConversationConfig.Type

export const AgentStats = Schema.Struct({
  turns: Count,
  tool_calls: Count,
  usage: Usage
})
export type AgentStats = typeof AgentStats.Type

export const CallSummary = Schema.Struct({
  call_id: CallId,
  tool_name: Schema.String,
  status: Schema.String,
  duration_ms: Count
})
