// What one attempt at a model call may spend and has spent: on the call itself, and on those that sum up before it. They
// are reserved beside each other; what each has used is on record with the next event about the turn.
import { agentOf, pathOf } from "../machine/view/Select.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import { estimateInputTokens, worstCaseUsage } from "../provider/Estimate.ts"
import type { Usage as ProviderUsage } from "../provider/Provider.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Usage } from "../rune/kinds/shared.ts"
import type { RequestEstimate } from "../rune/kinds/turn.ts"
import type { BudgetReservation } from "./BudgetReservation.ts"
import type { Models } from "./Models.ts"
import type { Estimate } from "./Spending.ts"

export interface AttemptCostOptions extends BudgetReservation {
  readonly models: Models
}

const microUsdPerUsd = 1_000_000
const million = 1_000_000

const inputOnly = (tokens: number): ProviderUsage => ({
  input_tokens: tokens,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0
})

export class AttemptCost {
  private readonly options: AttemptCostOptions
  private readonly agentId: AgentId
  private readonly fullName: string
  private used: Usage | undefined
  private giveBack: () => void = () => undefined

  constructor(options: AttemptCostOptions, payer: { readonly agentId: AgentId; readonly fullName: string }) {
    this.options = options
    this.agentId = payer.agentId
    this.fullName = payer.fullName
  }

  /** The most that a call is expected to use. */
  estimate(request: ModelRequest): Estimate {
    const { catalog } = this.options.models
    const usage = worstCaseUsage(request, catalog.lookup(this.fullName))
    const cost = catalog.cost(this.fullName, usage)
    return {
      tokens: usage.input_tokens + usage.output_tokens,
      micro_usd: cost._tag === "Known" ? cost.microUsd : 0,
      tool_calls: 0
    }
  }

  /** A budget in dollars stands above this call, and the price of its model is not known: it could not be held. */
  get isUnheld(): boolean {
    const { commands, models } = this.options
    if (models.catalog.lookup(this.fullName).price !== undefined) return false
    const state = commands.state()
    const above = pathOf(state, this.agentId).map((id) => agentOf(state, id)?.budget)
    return [state.session.config.budget, ...above].some((budget) => budget?.usd !== undefined)
  }

  /** What a request is charged with where its answer is cut off before anybody has counted. */
  requestEstimate(request: ModelRequest): RequestEstimate {
    const { catalog } = this.options.models
    const input = inputOnly(estimateInputTokens(request))
    const cost = catalog.cost(this.fullName, input)
    const withOutput = catalog.cost(this.fullName, { ...input, output_tokens: million })
    const { input_tokens } = input
    if (cost._tag === "Unknown" || withOutput._tag === "Unknown") return { input_tokens }
    return {
      input_tokens,
      input_usd: cost.microUsd / microUsdPerUsd,
      output_usd_per_token: (withOutput.microUsd - cost.microUsd) / million / microUsdPerUsd
    }
  }

  /** What a provider has said, as runes carry it. */
  told(usage: ProviderUsage): Usage {
    const cost = this.options.models.catalog.cost(this.fullName, usage)
    return {
      input_tokens: usage.input_tokens,
      output_tokens: usage.output_tokens,
      cached_tokens: usage.cached_input_tokens,
      reasoning_tokens: usage.reasoning_tokens,
      ...(cost._tag === "Known" ? { usd: cost.microUsd / microUsdPerUsd } : {})
    }
  }

  /**
   * Whether one more call fits into the budget beside the one that is reserved already. It does not wait: whoever
   * waits while holding something may wait for somebody who does the same.
   */
  hasRoomFor(request: ModelRequest): boolean {
    const { commands, nowMs, spending } = this.options
    const admission = spending.reserve(commands.state(), this.agentId, this.estimate(request), nowMs())
    if (admission._tag !== "Reserved") return false
    const before = this.giveBack
    this.giveBack = () => {
      before()
      admission.release()
    }
    return true
  }

  /** The request that was announced last is over and has used this. */
  settle(usage: Usage): void {
    this.used = usage
  }

  /** What the request that was announced last has used, for the one event that says so. */
  takeSettled(): { readonly usage?: Usage } {
    const usage = this.used
    this.used = undefined
    return usage === undefined ? {} : { usage }
  }

  /** Gives back what was reserved for more calls; what they used is on record by now. */
  close(): void {
    this.giveBack()
    this.giveBack = () => undefined
  }
}
