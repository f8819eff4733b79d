/**
 * What an agent is doing, native or outside: initialized, idle, active in one of
 * four ways, exited. It folds normalized agent events and nothing else: races and
 * debouncing belong to whoever produced the events.
 */
import type { AgentEvent, MonitorState, MonitorSubState } from "../../rune/AgentEvent.ts"

export type MonitorStatus =
  | "initialized"
  | "idle"
  | "thinking"
  | "tool_use"
  | "waiting_for_permission"
  | "compacting"
  | "exited"

/** One name per thing an agent event can mean here. */
export type MonitorSignal =
  | "session_started"
  | "user_prompt"
  | "turn_started"
  | "turn_completed"
  | "tool_started"
  | "tool_completed"
  | "approval_requested"
  | "agent_message"
  | "usage_reported"
  | "session_ended"
  | "becomes_initialized"
  | "becomes_idle"
  | "becomes_thinking"
  | "becomes_tool_use"
  | "becomes_waiting_for_permission"
  | "becomes_compacting"
  | "becomes_exited"

type Row = { readonly [S in MonitorSignal]: MonitorStatus | "refuse" }

/** What an explicit state change does in every state but the last. */
const explicit = {
  session_ended: "exited",
  becomes_initialized: "initialized",
  becomes_idle: "idle",
  becomes_thinking: "thinking",
  becomes_tool_use: "tool_use",
  becomes_waiting_for_permission: "waiting_for_permission",
  becomes_compacting: "compacting",
  becomes_exited: "exited"
} as const

export const monitorTable: { readonly [S in MonitorStatus]: Row } = {
  initialized: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    turn_completed: "idle",
    tool_started: "tool_use",
    tool_completed: "initialized",
    approval_requested: "waiting_for_permission",
    agent_message: "initialized",
    usage_reported: "initialized",
    ...explicit
  },
  idle: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    turn_completed: "idle",
    tool_started: "tool_use",
    tool_completed: "idle",
    approval_requested: "waiting_for_permission",
    agent_message: "idle",
    usage_reported: "idle",
    ...explicit
  },
  thinking: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    turn_completed: "idle",
    tool_started: "tool_use",
    tool_completed: "thinking",
    approval_requested: "waiting_for_permission",
    agent_message: "thinking",
    usage_reported: "thinking",
    ...explicit
  },
  tool_use: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    // A completion in the middle of tool use is an intermediate one: the model speaks again after it.
    turn_completed: "tool_use",
    tool_started: "tool_use",
    tool_completed: "tool_use",
    approval_requested: "waiting_for_permission",
    agent_message: "tool_use",
    usage_reported: "tool_use",
    ...explicit
  },
  waiting_for_permission: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    turn_completed: "idle",
    tool_started: "tool_use",
    tool_completed: "waiting_for_permission",
    approval_requested: "waiting_for_permission",
    agent_message: "waiting_for_permission",
    usage_reported: "waiting_for_permission",
    ...explicit
  },
  compacting: {
    session_started: "idle",
    user_prompt: "thinking",
    turn_started: "thinking",
    turn_completed: "idle",
    tool_started: "tool_use",
    tool_completed: "compacting",
    approval_requested: "waiting_for_permission",
    agent_message: "compacting",
    usage_reported: "compacting",
    ...explicit
  },
  exited: {
    session_started: "refuse",
    user_prompt: "refuse",
    turn_started: "refuse",
    turn_completed: "refuse",
    tool_started: "refuse",
    tool_completed: "refuse",
    approval_requested: "refuse",
    agent_message: "refuse",
    usage_reported: "refuse",
    session_ended: "refuse",
    becomes_initialized: "refuse",
    becomes_idle: "refuse",
    becomes_thinking: "refuse",
    becomes_tool_use: "refuse",
    becomes_waiting_for_permission: "refuse",
    becomes_compacting: "refuse",
    becomes_exited: "refuse"
  }
}

/** An active agent of which no more is known is thinking. */
const signalOfState = (state: MonitorState, subState: MonitorSubState | undefined): MonitorSignal =>
  state === "active" ? `becomes_${subState ?? "thinking"}` : `becomes_${state}`

export const signalOf = (event: AgentEvent): MonitorSignal =>
  event.type === "state_change" ? signalOfState(event.state, event.sub_state) : event.type

export const monitorStep = (status: MonitorStatus, signal: MonitorSignal): MonitorStatus => {
  const next = monitorTable[status][signal]
  return next === "refuse" ? status : next
}

export const observe = (status: MonitorStatus, event: AgentEvent): MonitorStatus => monitorStep(status, signalOf(event))

/** The status as people and the wire name it: a state, and a sub-state while active. */
export const monitorView = (
  status: MonitorStatus
): { readonly state: MonitorState; readonly sub_state?: MonitorSubState } => {
  if (status === "initialized" || status === "idle" || status === "exited") return { state: status }
  return { state: "active", sub_state: status }
}
