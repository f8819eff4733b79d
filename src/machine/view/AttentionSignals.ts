/**
 * What runes mean to a person who supervises: the events of an outside agent, and
 * the questions and answers of a native one, as signals of the attention machine.
 */
import type { AgentEvent } from "../../rune/AgentEvent.ts"
import type { Rune } from "../../rune/Rune.ts"
import { type AttentionSignal, signalOfTool } from "../table/Attention.ts"

const ofState = (event: Extract<AgentEvent, { readonly type: "state_change" }>): ReadonlyArray<AttentionSignal> => {
  if (event.state === "idle") return ["stop"]
  if (event.state === "exited") return ["mark_stopped"]
  if (event.state === "initialized") return []
  return event.sub_state === "waiting_for_permission" ? ["tool_start_approval"] : []
}

const ofEvent = (event: AgentEvent): ReadonlyArray<AttentionSignal> => {
  switch (event.type) {
    case "session_started":
      return ["session_start"]
    case "user_prompt":
    case "turn_started":
      return ["prompt_submit"]
    case "tool_started":
      return [signalOfTool(event.tool_name)]
    case "tool_completed":
      return ["tool_call"]
    case "approval_requested":
      return ["tool_start_approval"]
    case "turn_completed":
      return [event.error === undefined ? "stop" : "stop_with_error"]
    case "session_ended":
      return ["mark_stopped"]
    case "state_change":
      return ofState(event)
    case "agent_message":
    case "usage_reported":
      return []
  }
}

/** The signals of one rune, in order; most runes mean nothing to a supervisor. */
export const attentionSignals = (rune: Rune): ReadonlyArray<AttentionSignal> => {
  switch (rune.kind) {
    case "harness.event":
      return ofEvent(rune.payload.event)
    case "agent.state_changed":
      return ofEvent({ type: "state_change", ...rune.payload })
    case "harness.detached":
    case "session.closed":
    case "agent.terminated":
      return ["mark_stopped"]
    case "harness.recovered":
      return ["health_check_recovery"]
    case "agent.ready":
      return ["session_start", "stop"]
    case "turn.started":
      return ["prompt_submit"]
    case "tool.call":
      return [signalOfTool(rune.payload.tool_name)]
    case "tool.approval_requested":
      return ["tool_start_approval"]
    case "tool.approved":
    case "tool.result":
      return ["tool_call"]
    case "turn.completed":
    case "turn.interrupted":
      return ["stop"]
    case "turn.error":
      return ["stop_with_error"]
    default:
      return []
  }
}
