// Whether an agent may still spend. The reservation tree decides; this builds it from what the conversation has
// used, which is in its state, and from what the calls under way have reserved, which is here: reservations
// live as long as the calls they are for, so after a restart there are none.
import * as HashMap from "effect/HashMap"
import { type LimitReached, reserve } from "../budget/Budget.ts"
import {
  type Amounts,
  type BudgetState,
  emptyBudget,
  evolve,
  type Limits,
  type Node,
  nothing,
  plus
} from "../budget/State.ts"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { isOpen, pathOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Budget, BudgetMeasure } from "../rune/kinds/shared.ts"
import type { Totals } from "../rune/UsageTotals.ts"

export type Estimate = Amounts

export interface Spent {
  readonly which: BudgetMeasure
  readonly used: number
  readonly limit: number
  /** Whose limit it is: an agent, or the conversation. */
  readonly node: string
}

export type Admission =
  | { readonly _tag: "Reserved"; readonly release: () => void }
  | ({ readonly _tag: "Exhausted" } & Spent)
  /** Calls under way hold what is left: ask again when one of them is over. */
  | { readonly _tag: "Contended"; readonly since: number }

const microUsdPerUsd = 1_000_000

export const microUsd = (usd: number): number => Math.round(usd * microUsdPerUsd)

const limitsOf = (budget: Budget | null | undefined): Limits => ({
  ...(budget?.tokens === undefined ? {} : { tokens: budget.tokens }),
  ...(budget?.usd === undefined ? {} : { micro_usd: microUsd(budget.usd) }),
  ...(budget?.tool_calls === undefined ? {} : { tool_calls: budget.tool_calls }),
  ...(budget?.wall_ms === undefined ? {} : { wall_ms: budget.wall_ms })
})

/** A call counts as used once it has started. */
const amountsOf = (usage: Totals, toolCalls: number, unstarted: number): Amounts => ({
  tokens: usage.input_tokens + usage.output_tokens,
  micro_usd: microUsd(usage.usd),
  tool_calls: Math.max(0, toolCalls - unstarted)
})

const unstartedOf = (state: ConversationState, agentId: AgentId | undefined): number =>
  state.calls.filter(
    (call) => isOpen(call) && call.attempt === 0 && (agentId === undefined || call.agent_id === agentId)
  ).length

const nodeOf = (
  place: Pick<Node, "id" | "level" | "parent" | "limits">,
  spent: Amounts,
  clock: { readonly wall_ms: number; readonly clock_ms: number | null }
): Node => ({
  ...place,
  spent,
  reserved: nothing,
  calls: 0,
  wallMs: clock.wall_ms,
  running: clock.clock_ms === null ? 0 : 1,
  runningSinceMs: clock.clock_ms
})

const conversationNode = (state: ConversationState): Node =>
  nodeOf(
    {
      id: state.conversation_id,
      level: "conversation",
      parent: null,
      limits: limitsOf(state.session.config.budget)
    },
    amountsOf(state.usage, state.tool_calls, unstartedOf(state, undefined)),
    state
  )

/** What an agent and all it spawned have used. */
const familySpent = (state: ConversationState, agentId: AgentId): Amounts =>
  state.agents
    .filter((one) => pathOf(state, one.agent_id).includes(agentId))
    .flatMap((one) => [
      amountsOf(one.usage, one.tool_calls, unstartedOf(state, one.agent_id)),
      ...(one.forgotten === null ? [] : [amountsOf(one.forgotten.usage, one.forgotten.tool_calls, 0)])
    ])
    .reduce(plus, nothing)

const agentNode = (state: ConversationState, agent: AgentState, parent: string): Node =>
  nodeOf(
    { id: agent.agent_id, level: "agent", parent, limits: limitsOf(agent.budget) },
    familySpent(state, agent.agent_id),
    { wall_ms: agent.wall_ms, clock_ms: agent.turn?.clock_ms ?? null }
  )

interface Held {
  readonly agentId: AgentId
  readonly amounts: Amounts
}

const isLimited = (state: ConversationState): boolean =>
  state.session.config.budget !== undefined || state.agents.some((agent) => agent.budget !== null)

/** The reservation tree as it stands: the conversation, the given agents with all above them, and what is held. */
const treeOf = (
  state: ConversationState,
  agentIds: Iterable<AgentId>,
  held: ReadonlyMap<string, Held>
): BudgetState => {
  let nodes = HashMap.set(emptyBudget.nodes, state.conversation_id as string, conversationNode(state))
  for (const agentId of agentIds) {
    let parent: string = state.conversation_id
    for (const id of pathOf(state, agentId)) {
      const agent = state.agents.find((one) => one.agent_id === id)
      if (agent !== undefined && !HashMap.has(nodes, id))
        nodes = HashMap.set(nodes, id, agentNode(state, agent, parent))
      parent = id
    }
  }
  let tree: BudgetState = { ...emptyBudget, nodes }
  for (const [id, { agentId, amounts }] of held) {
    tree = evolve(tree, { type: "reserved", reservation: { id, node: agentId, amounts } })
  }
  return tree
}

const spentOf = ({ limit, node, spent, which }: LimitReached): Spent =>
  which === "micro_usd"
    ? { which: "usd", used: spent / microUsdPerUsd, limit: limit / microUsdPerUsd, node }
    : { which, used: spent, limit, node }

/** Reservations of one conversation. */
export class Spending {
  private readonly held = new Map<string, Held>()
  private waiters: Array<() => void> = []
  private next = 1
  /** How many reservations have been given back. */
  private released = 0

  /** Reserves for a call, unless a budget of the agent, of one above it or of the conversation stands in the way. */
  reserve(state: ConversationState, agentId: AgentId, wanted: Estimate, nowMs: number): Admission {
    const id = String(this.next++)
    if (isLimited(state)) {
      const agentIds = new Set([agentId, ...[...this.held.values()].map((one) => one.agentId)])
      const tree = treeOf(state, agentIds, this.held)
      const outcome = reserve(tree, { id, node: agentId, wanted, nowMs })
      if (outcome._tag === "Exhausted") return { _tag: "Exhausted", ...spentOf(outcome.limit) }
      if (outcome._tag === "Contended") return { _tag: "Contended", since: this.released }
    }
    this.held.set(id, { agentId, amounts: wanted })
    return { _tag: "Reserved", release: () => this.release(id) }
  }

  private release(id: string): void {
    if (!this.held.delete(id)) return
    this.released += 1
    for (const wake of this.waiters.splice(0)) wake()
  }

  /** Resolves when a reservation has been given back since, or when the signal aborts. */
  freed(since: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener("abort", done)
        resolve()
      }
      this.waiters.push(done)
      signal.addEventListener("abort", done)
      if (signal.aborted || this.released !== since) done()
    })
  }
}
