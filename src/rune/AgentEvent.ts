/**
 * The normalized event of any agent, native or outside: handlers translate what
 * they hear (hooks, OTLP, logs) into this union; the monitor only folds it.
 */
import * as Schema from "effect/Schema"

export const MonitorState = Schema.Literals(["initialized", "idle", "active", "exited"])
export type MonitorState = typeof MonitorState.Type

export const MonitorSubState = Schema.Literals(["thinking", "tool_use", "waiting_for_permission", "compacting"])
export type MonitorSubState = typeof MonitorSubState.Type

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Text = Schema.optionalKey(Schema.String)

const event = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

export const AgentEvent = Schema.Union([
  event("session_started", { thread_id: Text, model: Text }),
  event("user_prompt", { text: Text, prompt_length: Schema.optionalKey(Count) }),
  event("turn_started", { turn_id: Text }),
  event("turn_completed", {
    turn_id: Text,
    input_tokens: Count,
    output_tokens: Count,
    cached_tokens: Count,
    /** Null where it is not known. */
    cost_usd: Schema.NullOr(Schema.Finite),
    /** Why it ended, where it failed. */
    error: Text
  }),
  /** What one model call used. An adapter reports each token once: here, or with the turn. */
  event("usage_reported", {
    input_tokens: Count,
    output_tokens: Count,
    cached_tokens: Count,
    cost_usd: Schema.NullOr(Schema.Finite),
    model: Text
  }),
  event("tool_started", { tool_name: Schema.String, call_id: Text }),
  event("tool_completed", {
    tool_name: Schema.String,
    call_id: Text,
    duration_ms: Count,
    success: Schema.Boolean,
    error: Text
  }),
  event("approval_requested", { tool_name: Schema.String, call_id: Text, detail: Text }),
  event("agent_message", { content: Schema.String }),
  event("state_change", { state: MonitorState, sub_state: Schema.optionalKey(MonitorSubState) }),
  event("session_ended", { reason: Text, exit_code: Schema.optionalKey(Schema.Int) })
])
export type AgentEvent = typeof AgentEvent.Type
export type AgentEventType = AgentEvent["type"]
