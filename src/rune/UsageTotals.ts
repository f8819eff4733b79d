/**
 * Sums of what model calls used, for whoever adds runes up. Tokens add up; money does so as far as prices are known, and
 * where one is not the cost of the whole is not known either, which is `null` and never 0.
 */
import type { Usage } from "./kinds/shared.ts"

export interface MutableTotals {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
  /** As far as prices are known. */
  usd: number
  /** Some of it was of a model without a price: what it cost is not known. */
  unpriced: boolean
  /** Some of it is an estimate, because a call was cut off. */
  estimated: boolean
}

export type Totals = Readonly<MutableTotals>

export const noUsage = (): MutableTotals => ({
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  usd: 0,
  unpriced: false,
  estimated: false
})

const isFree = ({ input_tokens: input, output_tokens: output }: Usage): boolean => input + output === 0

export const addTo = (totals: MutableTotals, usage: Usage): void => {
  totals.input_tokens += usage.input_tokens
  totals.output_tokens += usage.output_tokens
  totals.cached_tokens += usage.cached_tokens ?? 0
  totals.reasoning_tokens += usage.reasoning_tokens ?? 0
  totals.usd += usage.usd ?? 0
  if (usage.usd === undefined && !isFree(usage)) totals.unpriced = true
  if (usage.estimated === true) totals.estimated = true
}

/** Adds one sum to another. */
export const addTotals = (totals: MutableTotals, more: Totals): void => {
  totals.input_tokens += more.input_tokens
  totals.output_tokens += more.output_tokens
  totals.cached_tokens += more.cached_tokens
  totals.reasoning_tokens += more.reasoning_tokens
  totals.usd += more.usd
  totals.unpriced ||= more.unpriced
  totals.estimated ||= more.estimated
}

/** What `usage` says beyond what was already counted; never negative. */
export const beyond = (usage: Usage, counted: Totals): Usage => ({
  input_tokens: Math.max(0, usage.input_tokens - counted.input_tokens),
  output_tokens: Math.max(0, usage.output_tokens - counted.output_tokens),
  cached_tokens: Math.max(0, (usage.cached_tokens ?? 0) - counted.cached_tokens),
  reasoning_tokens: Math.max(0, (usage.reasoning_tokens ?? 0) - counted.reasoning_tokens),
  ...(usage.usd === undefined ? {} : { usd: Math.max(0, usage.usd - counted.usd) }),
  ...(usage.estimated === undefined ? {} : { estimated: usage.estimated })
})

/** A sum as runes carry it: what is counted, plus what is not yet. */
export const usageOf = (totals: Totals, unsettled?: Usage): Usage => {
  const sum = { ...totals }
  if (unsettled !== undefined) addTo(sum, unsettled)
  return {
    input_tokens: sum.input_tokens,
    output_tokens: sum.output_tokens,
    ...(sum.cached_tokens === 0 ? {} : { cached_tokens: sum.cached_tokens }),
    ...(sum.reasoning_tokens === 0 ? {} : { reasoning_tokens: sum.reasoning_tokens }),
    ...(sum.unpriced ? {} : { usd: sum.usd }),
    ...(sum.estimated ? { estimated: true } : {})
  }
}

/** What it cost; null where some of it has no known price. */
export const costUsd = ({ unpriced, usd }: Totals): number | null => (unpriced ? null : usd)

/** A sum as people and programs are shown it. */
export const shownUsage = (totals: Totals) => {
  const { estimated, unpriced: _, ...sum } = totals
  return { ...sum, usd: costUsd(totals), ...(estimated ? { estimated } : {}) }
}
