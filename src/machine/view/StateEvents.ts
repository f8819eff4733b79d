/**
 * The view `state_events`: the union state_changed, tool_lifecycle, hook_lifecycle,
 * session_error, session_changed, waiting, as a pure fold over runes. One machine per agent with the names of
 * the session design: Idle, Starting, Ready, CallingLlm, ProcessingResponse,
 * ExecutingTools, PostToolsHook, Error, Stopping, Stopped.
 */

import { type AnyRune, isKnown, type Rune } from "../../rune/Rune.ts"
import type { AgentState, ConversationState } from "../State.ts"
import type { TurnStatus } from "../table/Turn.ts"
import type { StateEvent, StateEventBody, StateKind, StateProjection } from "./StateEvent.ts"
import { newProjectedAgent, stateEventsOf } from "./StateSteps.ts"

export const emptyStateProjection = (): StateProjection => ({ session: "created", agents: [] })

const kindOfTurn: Readonly<Record<TurnStatus, StateKind>> = {
  idle: "Ready",
  streaming: "CallingLlm",
  processing: "CallingLlm",
  tool_executing: "ExecutingTools",
  hooks_running: "PostToolsHook",
  retry_waiting: "Error",
  interrupted: "Ready",
  completed: "Ready",
  error: "Ready"
}

const hasCalls = (agent: AgentState): boolean => {
  const answer = agent.transcript.findLast((item) => item.type === "assistant")
  return answer?.items.some(({ type }) => type === "tool_call") === true
}

const kindOf = ({ session }: ConversationState, agent: AgentState): StateKind => {
  if (agent.status === "failed") return "Error"
  if (agent.status === "terminated") return "Stopped"
  if (session.status === "closing") return "Stopping"
  if (agent.status === "spawning") return "Starting"
  if (agent.turn === null) return "Ready"
  return agent.turn.status === "processing" && hasCalls(agent) ? "ProcessingResponse" : kindOfTurn[agent.turn.status]
}

/** The projection of a conversation whose runes so far are only known by what they led to. */
export const stateProjectionOf = (state: ConversationState): StateProjection => ({
  session: state.session.status,
  agents: state.agents.map((agent) => ({
    ...newProjectedAgent(agent.agent_id),
    kind: kindOf(state, agent),
    calls: state.calls
      .filter((call) => call.agent_id === agent.agent_id)
      .map(({ attempt, call_id, mutating, run_id, started_ms, tool_name }) => ({
        call_id,
        run_id,
        tool_name,
        mutating,
        attempt,
        started_ms: started_ms ?? state.last_ms
      })),
    hooks: (agent.turn?.hooks ?? []).map(({ attempt, hook_name, hook_run_id, started_ms }) => ({
      hook_run_id,
      hook_name,
      tool_run_ids: [],
      attempt,
      started_ms: started_ms ?? state.last_ms
    })),
    asking: state.calls
      .filter((call) => call.agent_id === agent.agent_id && call.status === "awaiting_approval")
      .map(({ call_id }) => call_id),
    is_waiting: agent.turn?.retry?.target.type === "llm",
    is_streaming: (agent.turn?.partial ?? "") !== ""
  }))
})

const wrap = (rune: Rune, body: StateEventBody, index: number): StateEvent => ({
  eventId: `${rune.event_id}.${index}`,
  timestampMs: rune.ts_ms,
  sessionId: rune.conversation_id,
  // What happens to a conversation happens to no agent in particular.
  ...(rune.agent_id === undefined || body.type === "session_changed" ? {} : { agentId: rune.agent_id }),
  ...body
})

/** Folds one rune in and returns the events it means, in the order in which they must be seen. */
export const projectStateEvents = (projection: StateProjection, rune: AnyRune): ReadonlyArray<StateEvent> =>
  isKnown(rune) ? stateEventsOf(projection, rune).map((body, index) => wrap(rune, body, index)) : []

export const stateEvents = (runes: Iterable<AnyRune>): ReadonlyArray<StateEvent> => {
  const projection = emptyStateProjection()
  const events: Array<StateEvent> = []
  for (const rune of runes) events.push(...projectStateEvents(projection, rune))
  return events
}
