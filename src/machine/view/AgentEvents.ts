/**
 * The view `agent_events`: the same stream of normalized events for a native agent
 * as for an outside one, as a pure fold over runes. Events of outside agents pass
 * through; those of native agents follow from their turns and calls.
 */
import type { AgentEvent, MonitorSubState } from "../../rune/AgentEvent.ts"
import type { Kind, KindIn } from "../../rune/Kinds.ts"
import type { Usage } from "../../rune/kinds/shared.ts"
import { type AnyRune, isKnown, type Rune, type RuneOf } from "../../rune/Rune.ts"

export interface StampedAgentEvent {
  /** Event id of the rune, and the position among the events of that rune. */
  readonly event_id: string
  readonly ts_ms: number
  readonly conversation_id: string
  readonly agent_id?: string
  readonly event: AgentEvent
}

interface ProjectedCall {
  call_id: string
  tool_name: string
  is_running: boolean
}

interface ProjectedAgent {
  agent_id: string
  model: string
  calls: Array<ProjectedCall>
}

/** Plain JSON; changed in place by the fold. */
export interface AgentProjection {
  readonly agents: Array<ProjectedAgent>
}

export const emptyAgentProjection = (): AgentProjection => ({ agents: [] })

type Events = ReadonlyArray<AgentEvent>
type StepOf<K extends Kind> = (projection: AgentProjection, rune: RuneOf<K>) => Events

const agentOf = (projection: AgentProjection, agentId: string | undefined): ProjectedAgent | undefined =>
  projection.agents.find((agent) => agent.agent_id === agentId)

const callOf = (projection: AgentProjection, rune: Rune, callId: string): ProjectedCall | undefined =>
  agentOf(projection, rune.agent_id)?.calls.find((call) => call.call_id === callId)

const active = (subState: MonitorSubState): AgentEvent => ({
  type: "state_change",
  state: "active",
  sub_state: subState
})
const idle: AgentEvent = { type: "state_change", state: "idle" }

const textOf = (input: RuneOf<"turn.started">["payload"]["input"]): string =>
  typeof input === "string" ? input : input.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const spawning: StepOf<"agent.spawning"> = (projection, { payload }) => {
  projection.agents.push({ agent_id: payload.agent_id, model: payload.model, calls: [] })
  return []
}

const ready: StepOf<"agent.ready"> = (projection, rune) => {
  const model = agentOf(projection, rune.payload.agent_id)?.model ?? ""
  return [{ type: "session_started", thread_id: rune.conversation_id, model }, idle]
}

const turnStarted: StepOf<"turn.started"> = (_, { payload }) => {
  const text = textOf(payload.input)
  return [
    // A run that is done again is nobody's prompt.
    ...(payload.target === undefined ? [{ type: "user_prompt", text, prompt_length: text.length } as const] : []),
    { type: "turn_started", turn_id: payload.turn_id },
    active("thinking")
  ]
}

const turnCompleted = (turnId: string | undefined, usage: Usage | undefined): AgentEvent => ({
  type: "turn_completed",
  ...(turnId === undefined ? {} : { turn_id: turnId }),
  input_tokens: usage?.input_tokens ?? 0,
  output_tokens: usage?.output_tokens ?? 0,
  cached_tokens: usage?.cached_tokens ?? 0,
  // A price that is not known is none of zero.
  cost_usd: usage?.usd ?? null
})

const turnOver = (
  projection: AgentProjection,
  rune: RuneOf<"turn.completed"> | RuneOf<"turn.interrupted"> | RuneOf<"turn.error">
): Events => {
  const agent = agentOf(projection, rune.agent_id)
  if (agent !== undefined) agent.calls = []
  return [turnCompleted(rune.turn_id, rune.payload.usage), idle]
}

const toolCall: StepOf<"tool.call"> = (projection, rune) => {
  const { call_id: callId, tool_name: toolName } = rune.payload
  agentOf(projection, rune.agent_id)?.calls.push({ call_id: callId, tool_name: toolName, is_running: false })
  return []
}

const approvalRequested: StepOf<"tool.approval_requested"> = (projection, rune) => {
  const { call_id: callId, policy_reason: detail } = rune.payload
  const toolName = callOf(projection, rune, callId)?.tool_name ?? ""
  return [
    { type: "approval_requested", tool_name: toolName, call_id: callId, detail },
    active("waiting_for_permission")
  ]
}

const toolStarted: StepOf<"tool.started"> = (projection, rune) => {
  const call = callOf(projection, rune, rune.payload.call_id)
  if (call === undefined) return []
  call.is_running = true
  return [{ type: "tool_started", tool_name: call.tool_name, call_id: call.call_id }, active("tool_use")]
}

const toolResult: StepOf<"tool.result"> = (projection, rune) => {
  const agent = agentOf(projection, rune.agent_id)
  const call = agent?.calls.find((one) => one.call_id === rune.payload.call_id)
  if (agent === undefined || call === undefined) return []
  const { status, error, duration_ms: durationMs } = rune.payload
  call.is_running = false
  const others = agent.calls.some((one) => one.is_running)
  const done: AgentEvent = {
    type: "tool_completed",
    tool_name: call.tool_name,
    call_id: call.call_id,
    duration_ms: durationMs,
    success: status === "success",
    ...(error === undefined ? {} : { error: error.message })
  }
  return [done, active(others ? "tool_use" : "thinking")]
}

const ended = (reason: string, exitCode?: number): AgentEvent => ({
  type: "session_ended",
  reason,
  ...(exitCode === undefined ? {} : { exit_code: exitCode })
})

const steps: { readonly [K in KindIn<"agent_events">]: StepOf<K> } = {
  "agent.spawning": spawning,
  "agent.ready": ready,
  "agent.failed": (_, { payload }) => [ended(payload.error.message)],
  "agent.terminated": (_, { payload }) => [ended(payload.reason)],
  "agent.state_changed": (_, { payload }) => [{ type: "state_change", ...payload }],
  "turn.started": turnStarted,
  "turn.assistant_final": (_, { payload }) =>
    payload.content === "" ? [] : [{ type: "agent_message", content: payload.content }],
  "turn.completed": turnOver,
  "turn.interrupted": turnOver,
  "turn.error": turnOver,
  "turn.compacted": (_, rune) => [active("compacting"), rune.turn_id === undefined ? idle : active("thinking")],
  "tool.call": toolCall,
  "tool.approval_requested": approvalRequested,
  "tool.approved": () => [active("tool_use")],
  "tool.started": toolStarted,
  "tool.result": toolResult,
  "harness.event": (_, { payload }) => [payload.event],
  "harness.detached": (_, { payload }) => [ended(payload.reason, payload.exit_code)]
}

/** Folds one rune in and returns the events it means. */
export const projectAgentEvents = (projection: AgentProjection, rune: AnyRune): ReadonlyArray<StampedAgentEvent> => {
  if (!isKnown(rune)) return []
  // The one widening: the step is looked up by the very kind that the rune carries.
  const step = (steps as { readonly [K in Kind]?: unknown })[rune.kind] as
    | ((projection: AgentProjection, rune: Rune) => Events)
    | undefined
  return (step?.(projection, rune) ?? []).map((event, index) => ({
    event_id: `${rune.event_id}.${index}`,
    ts_ms: rune.ts_ms,
    conversation_id: rune.conversation_id,
    ...(rune.agent_id === undefined ? {} : { agent_id: rune.agent_id }),
    event
  }))
}

export const agentEvents = (runes: Iterable<AnyRune>): ReadonlyArray<StampedAgentEvent> => {
  const projection = emptyAgentProjection()
  const events: Array<StampedAgentEvent> = []
  for (const rune of runes) events.push(...projectAgentEvents(projection, rune))
  return events
}
