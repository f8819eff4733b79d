/** Finding what a command speaks of, or refusing it by name. */
import type { AgentId, CallId } from "../../rune/Ids.ts"
import type { AgentState, CallState, TurnState } from "../State.ts"
import { agentOf, callOf } from "../view/Select.ts"
import type { Drafting } from "./Drafting.ts"

/** The named agent, or the root when none is named. */
export const requireAgent = (sheet: Drafting, agentId: AgentId | undefined): AgentState | undefined => {
  const id = agentId ?? sheet.state.session.root_agent_id
  const agent = agentOf(sheet.state, id)
  return agent ?? sheet.refuse("not_found", `no agent ${id ?? "at the root"}`)
}

export interface Running {
  readonly agent: AgentState
  readonly turn: TurnState
}

/** The agent together with the turn it is in. */
export const requireTurn = (sheet: Drafting, agentId: AgentId | undefined): Running | undefined => {
  const agent = requireAgent(sheet, agentId)
  if (agent === undefined) return undefined
  if (agent.turn === null) {
    return sheet.refuse("invalid_state", `${agent.agent_id} is not running a turn`, { state: agent.status })
  }
  return { agent, turn: agent.turn }
}

export const requireCall = (sheet: Drafting, callId: CallId): CallState | undefined =>
  callOf(sheet.state, callId) ?? sheet.refuse("not_found", `no open call ${callId}`)

/** The running turn a call belongs to; nothing for a call outside any turn. */
export const turnOfCall = (sheet: Drafting, call: CallState): Running | undefined => {
  const agent = agentOf(sheet.state, call.agent_id)
  return agent !== undefined && agent.turn !== null && agent.turn.turn_id === call.turn_id
    ? { agent, turn: agent.turn }
    : undefined
}
