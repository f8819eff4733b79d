// What one attempt at a model call may spend and has spent: on the call itself, and on the one that sums up before it.
// Both are reserved beside each other and settled together, on the rune that says what became of the attempt.
import type { ModelRequest } from "../provider/Canonical.ts"
import { worstCaseUsage } from "../provider/Estimate.ts"
import type { Usage as ProviderUsage } from "../provider/Provider.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Usage } from "../rune/kinds/shared.ts"
import type { Allowance } from "./Allowance.ts"
import type { Models } from "./Models.ts"
import type { Estimate } from "./Spending.ts"

export interface PurseOptions extends Allowance {
  readonly models: Models
}

const microUsdPerUsd = 1_000_000

const sum = (usages: ReadonlyArray<ProviderUsage>, field: keyof ProviderUsage): number =>
  usages.reduce((total, usage) => total + usage[field], 0)

export class Purse {
  private readonly options: PurseOptions
  private readonly agentId: AgentId
  private readonly fullName: string
  private readonly usages: Array<ProviderUsage> = []
  private giveBack: () => void = () => undefined

  constructor(options: PurseOptions, payer: { readonly agentId: AgentId; readonly fullName: string }) {
    this.options = options
    this.agentId = payer.agentId
    this.fullName = payer.fullName
  }

  /** The most that a call is expected to use. */
  estimate(request: ModelRequest): Estimate {
    const { catalogue } = this.options.models
    const usage = worstCaseUsage(request, catalogue.lookup(this.fullName))
    const cost = catalogue.cost(this.fullName, usage)
    return {
      tokens: usage.input_tokens + usage.output_tokens,
      micro_usd: cost._tag === "Known" ? cost.microUsd : 0,
      tool_calls: 0
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

  /** A call has used this. */
  spend(usage: ProviderUsage | undefined): void {
    if (usage !== undefined) this.usages.push(usage)
  }

  /** All that was used, as runes carry it. */
  get spent(): { readonly usage?: Usage } {
    const { usages } = this
    if (usages.length === 0) return {}
    const costs = usages.map((usage) => this.options.models.catalogue.cost(this.fullName, usage))
    const known = costs.filter((cost) => cost._tag === "Known")
    const microUsd = known.reduce((total, cost) => total + cost.microUsd, 0)
    return {
      usage: {
        input_tokens: sum(usages, "input_tokens"),
        output_tokens: sum(usages, "output_tokens"),
        cached_tokens: sum(usages, "cached_input_tokens"),
        reasoning_tokens: sum(usages, "reasoning_tokens"),
        ...(known.length === 0 ? {} : { usd: microUsd / microUsdPerUsd })
      }
    }
  }

  /** Gives back what was reserved for more calls; what they used is on record by now. */
  close(): void {
    this.giveBack()
    this.giveBack = () => undefined
  }
}
