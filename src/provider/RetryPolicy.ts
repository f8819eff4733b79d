// How long the pause before a retry of a model call is. Pure: the conversation owns the loop, so that every decision
// can be a rune before it is acted on.
import type { ProviderError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

/** The pause before a retry: the usual one, or the one the provider asked for. It is never cut short: jitter only adds. */
export const retryDelayMs = (
  { retryAfterMs = 0 }: ProviderError,
  usualMs: number,
  random: number,
  jitter: number = limits.retryJitter
): number => {
  const delayMs = Math.max(usualMs, retryAfterMs)
  return Math.ceil(delayMs + delayMs * jitter * random)
}
