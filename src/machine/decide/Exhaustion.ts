/**
 * What follows when a budget is used up. That of the conversation, or of its root agent,
 * suspends it until a person gives it more, and so does that of a goal unless the goal is to
 * stop then; that of an
 * agent that was spawned ends this agent with all it spawned, and nobody else is touched.
 */
import type { AgentId } from "../../rune/Ids.ts"
import type { BudgetMeasure } from "../../rune/kinds/shared.ts"
import type { Command } from "../Command.ts"
import type { ConversationState } from "../State.ts"
import { autonomy } from "../table/Autonomy.ts"
import { agentOf } from "../view/Select.ts"
import { orchestratorIdOf } from "./TaskSchedule.ts"

export interface UsedUp {
  readonly which: BudgetMeasure
  readonly used: number
  readonly limit: number
  /** Whose limit it is: an agent, or the conversation. */
  readonly node: string
}

export const exhaustion = (state: ConversationState, agentId: AgentId, usedUp: UsedUp): Command => {
  const { limit, node, used, which } = usedUp
  const { plan } = state
  const lead = plan === null ? undefined : orchestratorIdOf(plan.plan_id)
  const isGoals = plan !== null && lead !== undefined && node === lead && !autonomy.terminal.includes(plan.status)
  if (isGoals && plan.options.stop_on_budget !== true) {
    return { _tag: "ExhaustBudget", agent_id: lead, which, used, limit, consequence: "suspend" }
  }
  if (isGoals) {
    const summary = `${which}: ${used} of ${limit} used`
    const payload = { plan_id: plan.plan_id, reason: "budget_exhausted", summary }
    const step = { _tag: "ExhaustBudget", payload } as const
    return { _tag: "AdvancePlan", plan_id: plan.plan_id, step, dismiss: [lead] }
  }
  const owner = agentOf(state, node as AgentId)
  const isSpawned = owner !== undefined && owner.agent_id !== state.session.root_agent_id
  const amounts = { which, used, limit }
  return isSpawned
    ? { _tag: "ExhaustBudget", agent_id: owner.agent_id, ...amounts, consequence: "terminate" }
    : { _tag: "ExhaustBudget", agent_id: agentId, ...amounts, consequence: "suspend" }
}
