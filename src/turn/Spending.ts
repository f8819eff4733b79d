// Whether an agent may still spend: what it and its conversation have used, what calls under way have reserved, and
// what they may use at most. A reservation is made before a call and given back after it, so that calls side by
// side cannot overshoot a budget by more than one of them.
import type { AgentState, ConversationState, Totals } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Budget, BudgetMeasure } from "../rune/kinds/shared.ts"

export interface Estimate {
  readonly tokens: number
  readonly usd: number
  readonly tool_calls: number
}

export type Admission =
  | { readonly _tag: "Reserved"; readonly release: () => void }
  | { readonly _tag: "Exhausted"; readonly which: BudgetMeasure; readonly used: number; readonly limit: number }

interface Used extends Estimate {
  readonly wall_ms: number
}

const tokensOf = (usage: Totals): number => usage.input_tokens + usage.output_tokens

const usedBy = (
  holder: { readonly usage: Totals; readonly tool_calls: number },
  sinceMs: number,
  nowMs: number
): Used => ({
  tokens: tokensOf(holder.usage),
  usd: holder.usage.usd,
  tool_calls: holder.tool_calls,
  wall_ms: Math.max(0, nowMs - sinceMs)
})

const none: Estimate = { tokens: 0, usd: 0, tool_calls: 0 }
const add = (left: Estimate, right: Estimate, sign: 1 | -1): Estimate => ({
  tokens: left.tokens + sign * right.tokens,
  usd: left.usd + sign * right.usd,
  tool_calls: left.tool_calls + sign * right.tool_calls
})

/** The first measure that is used up, reservations included. */
const exhausted = (
  budget: Budget | null | undefined,
  used: Used,
  reserved: Estimate
): Extract<Admission, { readonly _tag: "Exhausted" }> | undefined => {
  if (budget === null || budget === undefined) return undefined
  const taken = { ...add(used, reserved, 1), wall_ms: used.wall_ms }
  for (const which of ["tokens", "usd", "tool_calls", "wall_ms"] as const) {
    const limit = budget[which]
    if (limit !== undefined && taken[which] >= limit) return { _tag: "Exhausted", which, used: taken[which], limit }
  }
  return undefined
}

/** Reservations of one conversation. They live as long as the calls they are for: after a restart there are none. */
export class Spending {
  private conversation: Estimate = none
  private readonly agents = new Map<AgentId, Estimate>()

  /** Reserves for a call, unless the agent's or the conversation's budget is used up. */
  reserve(state: ConversationState, agent: AgentState, estimate: Estimate, nowMs: number): Admission {
    const own = this.agents.get(agent.agent_id) ?? none
    const since = agent.turn?.started_ms ?? nowMs
    const refusal =
      exhausted(agent.budget, usedBy(agent, since, nowMs), own) ??
      exhausted(state.session.config.budget, usedBy(state, state.session.created_ms, nowMs), this.conversation)
    if (refusal !== undefined) return refusal
    this.change(agent.agent_id, estimate, 1)
    let held = true
    return {
      _tag: "Reserved",
      release: () => {
        if (held) this.change(agent.agent_id, estimate, -1)
        held = false
      }
    }
  }

  private change(agentId: AgentId, estimate: Estimate, sign: 1 | -1): void {
    this.conversation = add(this.conversation, estimate, sign)
    const own = add(this.agents.get(agentId) ?? none, estimate, sign)
    if (own.tokens === 0 && own.usd === 0 && own.tool_calls === 0) this.agents.delete(agentId)
    else this.agents.set(agentId, own)
  }
}
