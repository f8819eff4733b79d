/** Questions that many modules ask of the state. */
import { type AgentId, type CallId, type HookRunId, ordinalOf } from "../../rune/Ids.ts"
import type { AgentState, CallState, ConversationState, HookState, TurnState } from "../State.ts"

export const agentOf = (state: ConversationState, agentId: AgentId | null | undefined): AgentState | undefined => {
  for (const agent of state.agents) if (agent.agent_id === agentId) return agent
  return undefined
}

export const callOf = (state: ConversationState, callId: CallId): CallState | undefined => {
  for (const call of state.calls) if (call.call_id === callId) return call
  return undefined
}

export const isAlive = (agent: AgentState): boolean => agent.status !== "terminated" && agent.status !== "failed"

export const aliveAgents = (state: ConversationState): ReadonlyArray<AgentState> => state.agents.filter(isAlive)

const openStatuses: ReadonlySet<string> = new Set(["pending_call", "awaiting_approval", "executing"])

export const isOpen = (call: CallState): boolean => openStatuses.has(call.status)

/** A client of the server runs it, on its own machine, whether the server is there or not. */
export const runsInClient = (call: CallState): boolean => call.provenance === "remote"

/** The calls of the batch a turn works on, in the order in which the model asked. */
export const batchOf = (state: ConversationState, turn: TurnState): ReadonlyArray<CallState> =>
  state.calls.filter((call) => call.turn_id === turn.turn_id)

export const pendingApprovals = (state: ConversationState): ReadonlyArray<CallState> =>
  state.calls.filter((call) => call.status === "awaiting_approval")

/** The agent whose running turn owns the hook run, with the run. */
export const hookOf = (
  state: ConversationState,
  hookRunId: HookRunId
): { readonly agent: AgentState; readonly turn: TurnState; readonly hook: HookState } | undefined => {
  for (const agent of state.agents) {
    const hook = agent.turn?.hooks.find((one) => one.hook_run_id === hookRunId)
    if (agent.turn !== null && hook !== undefined) return { agent, turn: agent.turn, hook }
  }
  return undefined
}

/** A failed hook whose policy lets the turn go on. */
const isTolerated = (hook: HookState): boolean =>
  hook.status === "failed" && hook.failure_policy.type === "warn_continue"

const isLeft = (hook: HookState): boolean =>
  hook.status !== "succeeded" && hook.status !== "canceled" && !isTolerated(hook)

/**
 * The hook whose turn it is: one at a time in a conversation, whoever of its agents it is for. One that runs goes on; then
 * come those of the batch that was over first.
 */
export const nextHook = (state: ConversationState): HookState | undefined => {
  let next: HookState | undefined
  for (const { turn } of state.agents) {
    const own = turn?.status === "hooks_running" ? turn.hooks.find(isLeft) : undefined
    if (own?.status === "running") return own
    if (own !== undefined && (next === undefined || ordinalOf(own.hook_run_id) < ordinalOf(next.hook_run_id)))
      next = own
  }
  return next
}

/** The agent and all it spawned, directly or not, that are alive; children before parents. */
export const familyOf = (state: ConversationState, agentId: AgentId): ReadonlyArray<AgentState> => {
  const family: Array<AgentState> = []
  const seen = new Set<string>()
  const visit = (id: AgentId): void => {
    seen.add(id)
    for (const agent of state.agents) if (agent.parent_id === id && !seen.has(agent.agent_id)) visit(agent.agent_id)
    const own = agentOf(state, id)
    if (own !== undefined && isAlive(own)) family.push(own)
  }
  visit(agentId)
  return family
}

/** Ids from the root down to the agent. */
export const pathOf = (state: ConversationState, agentId: AgentId): ReadonlyArray<AgentId> => {
  const path: Array<AgentId> = []
  for (
    let agent = agentOf(state, agentId);
    agent !== undefined && !path.includes(agent.agent_id);
    agent = agentOf(state, agent.parent_id)
  ) {
    path.unshift(agent.agent_id)
  }
  return path
}

/** Where the agent works: a place of its own, or the conversation's. */
export const workspaceOf = (state: ConversationState, agentId: AgentId | null): string | undefined =>
  agentOf(state, agentId)?.workspace ?? state.session.config.workspace
