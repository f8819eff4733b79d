// What is told about a conversation at one glance, and about the questions it waits with: plain data for the wire.

import type { AgentState, CallState, ConversationState } from "../machine/State.ts"
import { agentOf, aliveAgents, pathOf, pendingApprovals } from "../machine/view/Select.ts"
import { attentionItems, attentionOf, attentionOfAgent, monitorOf } from "../machine/view/Supervision.ts"
import type { AgentId } from "../rune/Ids.ts"
import { costUsd, shownUsage } from "../rune/UsageTotals.ts"
import { hasOpenRequest } from "./Working.ts"

/** What a person can have done again, and whether that has to be said explicitly. */
const failedRuns = (agent: AgentState) => [
  ...agent.failed_calls.map(({ call_id, effect_class, started, status, tool_name }) => ({
    id: call_id,
    name: tool_name,
    status,
    needs_repeat_effect: started && effect_class === "effect"
  })),
  ...agent.failed_hooks.map(({ hook_run_id, hooks }) => ({
    id: hook_run_id,
    name: hooks[0]?.hook_name ?? "",
    status: "failed" as const,
    needs_repeat_effect: hooks[0]?.effect_class === "effect"
  }))
]

export const agentSummary = (state: ConversationState, agent: AgentState) => ({
  agent_id: agent.agent_id,
  role: agent.role,
  name: agent.name,
  model: agent.model,
  parent_id: agent.parent_id,
  status: agent.status,
  doing: monitorOf(state, agent),
  attention: attentionOfAgent(state, agent),
  turn_id: agent.turn?.turn_id ?? null,
  turn_status: agent.turn?.status ?? null,
  queued: agent.queue.length,
  turns: agent.turns,
  tool_calls: agent.tool_calls,
  usage: shownUsage(agent.usage),
  budget: agent.budget,
  last_error: agent.last_error,
  failed_runs: failedRuns(agent)
})

const nameOf = (state: ConversationState, agentId: AgentId): string => {
  const agent = agentOf(state, agentId)
  return agent?.name ?? agent?.role ?? agentId
}

/** One question of the inbox. */
export const approvalItem = (state: ConversationState, call: CallState) => ({
  conversation_id: state.conversation_id,
  call_id: call.call_id,
  agent_id: call.agent_id,
  agent_path: call.agent_id === null ? [] : pathOf(state, call.agent_id),
  /** The same way from the root, in names for people. */
  agent_names: call.agent_id === null ? [] : pathOf(state, call.agent_id).map((id) => nameOf(state, id)),
  tool_name: call.tool_name,
  arguments: call.arguments,
  arguments_hash: call.arguments_hash,
  policy_reason: call.approval?.policy_reason ?? "",
  shown_as: call.approval?.shown_as ?? null,
  asked_ms: call.approval?.asked_ms ?? null,
  expires_ms: call.approval?.expires_ms ?? null,
  choices: call.approval?.choices ?? ["once"],
  /** What allowing it for longer would be written down as. */
  learns: call.approval?.learns ?? null
})

export const approvalItems = (state: ConversationState) =>
  pendingApprovals(state).map((call) => approvalItem(state, call))

export const attentionSummary = (state: ConversationState) =>
  attentionItems(state).map((item) => ({
    conversation_id: state.conversation_id,
    title_of_conversation: state.session.config.title ?? null,
    ...item
  }))

export const summaryOf = (state: ConversationState) => ({
  conversation_id: state.conversation_id,
  title: state.session.config.title ?? null,
  state: state.session.status,
  reason: state.session.reason,
  workspace: state.session.config.workspace ?? null,
  labels: state.session.config.labels ?? {},
  created_ms: state.session.created_ms,
  updated_ms: state.last_ms,
  root_agent_id: state.session.root_agent_id,
  agents: state.agents.map((agent) => agentSummary(state, agent)),
  agents_alive: aliveAgents(state).length,
  working: hasOpenRequest(state),
  budget: state.session.config.budget ?? null,
  pending_approvals: approvalItems(state),
  usage: shownUsage(state.usage),
  cost_usd: costUsd(state.usage),
  turns: state.turns,
  tool_calls: state.tool_calls,
  last_event_id: state.head,
  attention: attentionOf(state),
  plan: state.plan
})

export type ConversationSummary = ReturnType<typeof summaryOf>

/** The calls that have no result yet, and the event up to which this is so. */
export const openCallsOf = ({ calls, head, session }: ConversationState) => ({
  head,
  status: session.status,
  open: calls
    .filter((call) => call.result === null)
    .map(({ arguments: input, call_id, origin, tool_name }) => ({
      call_id,
      tool_name,
      arguments: input,
      ...(origin === undefined ? {} : { origin })
    }))
})
