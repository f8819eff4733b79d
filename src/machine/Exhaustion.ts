/**
 * What follows when a budget is used up. That of the conversation suspends it until
 * a person gives it more; that of a goal stops the goal; that of an agent that works
 * for a goal ends its turn, and so its task, and nobody else is touched.
 */
import type { AgentId } from "../rune/Ids.ts"
import type { BudgetMeasure } from "../rune/kinds/shared.ts"
import { autonomy } from "./Autonomy.ts"
import type { Command } from "./Command.ts"
import { orchestratorIdOf } from "./Schedule.ts"
import { pathOf } from "./Select.ts"
import type { ConversationState } from "./State.ts"

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
  const path: ReadonlyArray<string> = pathOf(state, agentId)
  const isOfTeam = lead !== undefined && path.includes(lead) && path.indexOf(node) >= path.indexOf(lead)
  if (plan === null || !isOfTeam || autonomy.terminal.includes(plan.status)) {
    return { _tag: "ExhaustBudget", agent_id: agentId, which, used, limit, consequence: "suspend" }
  }
  const message = `${which}: ${used} of ${limit} used`
  if (node !== lead) {
    const error = { error_type: "budget_exhausted", message, retryable: false, source: "orchestrator" } as const
    return { _tag: "FailTurn", agent_id: agentId, error }
  }
  const payload = { plan_id: plan.plan_id, reason: "budget_exhausted", summary: message }
  return {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: { _tag: "ExhaustBudget", payload },
    dismiss: [lead]
  }
}
