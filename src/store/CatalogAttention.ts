// Whether a person is needed, as far as a listing shows it: per agent what its last rune meant, over all agents the
// most urgent. The states are those of the attention machine.
import type { AgentEvent } from "../rune/AgentEvent.ts"
import type { AnyRune, Rune } from "../rune/Rune.ts"

export type Attention = "starting" | "running" | "idle" | "awaiting_input" | "awaiting_approval" | "error" | "closed"

/** The most urgent first. */
const urgency: ReadonlyArray<Attention> = [
  "awaiting_approval",
  "awaiting_input",
  "error",
  "running",
  "starting",
  "idle",
  "closed"
]

export const mostUrgent = (states: Iterable<Attention>): Attention => {
  let at = urgency.length - 1
  for (const state of states) at = Math.min(at, urgency.indexOf(state))
  return urgency[at]!
}

const ofTool = (toolName: string): Attention => {
  if (toolName === "AskUserQuestion" || toolName === "ask_user") return "awaiting_input"
  return toolName === "ExitPlanMode" ? "awaiting_approval" : "running"
}

const ofState = (event: Extract<AgentEvent, { readonly type: "state_change" }>): Attention | undefined => {
  if (event.state === "idle") return "idle"
  if (event.state === "exited") return "closed"
  return event.sub_state === "waiting_for_permission" ? "awaiting_approval" : undefined
}

const ofEvent = (event: AgentEvent): Attention | undefined => {
  switch (event.type) {
    case "session_started":
    case "user_prompt":
    case "turn_started":
    case "tool_completed":
      return "running"
    case "tool_started":
      return ofTool(event.tool_name)
    case "approval_requested":
      return "awaiting_approval"
    case "turn_completed":
      return "idle"
    case "session_ended":
      return "closed"
    case "state_change":
      return ofState(event)
    case "agent_message":
      return undefined
  }
}

const meaning = (rune: Rune, now: Attention): Attention | undefined => {
  switch (rune.kind) {
    case "harness.event":
      return ofEvent(rune.payload.event)
    case "harness.detached":
    case "agent.terminated":
      return "closed"
    case "harness.recovered":
      return now === "running" || now === "starting" ? now : "idle"
    case "agent.ready":
    case "turn.completed":
    case "turn.interrupted":
      return "idle"
    case "turn.started":
    case "tool.approved":
    case "tool.denied":
    case "tool.result":
      return "running"
    case "tool.call":
      return ofTool(rune.payload.tool_name)
    case "tool.approval_requested":
      return "awaiting_approval"
    case "agent.failed":
    case "turn.error":
      return "error"
    default:
      return undefined
  }
}

const isRevival = (rune: Rune): boolean =>
  rune.kind === "agent.ready" || (rune.kind === "harness.event" && rune.payload.event.type === "session_started")

/** What the rune makes of an agent's attention. Runes that come after the end wake nothing; only a new start does. */
export const attend = (now: Attention, rune: AnyRune): Attention => {
  const known = rune as Rune
  if (now === "closed" && !isRevival(known)) return now
  return meaning(known, now) ?? now
}
