// When a failed model call is tried again, and after how long. Pure: the caller owns the loop, so that every
// decision can be a rune before it is acted on.
import type { ProviderError } from "./Errors.ts"
import { limits } from "./Limits.ts"

export interface RetrySettings {
  /** Delay before the first, second, … retry; their number is the number of retries. */
  readonly delaysMs: ReadonlyArray<number>
  /** Share of the delay added at random, 0 to 1. */
  readonly jitter: number
  /** Longest pause a provider may ask for. */
  readonly retryAfterMsMax: number
}

export const retryDefaults: RetrySettings = {
  delaysMs: limits.retryDelaysMs,
  jitter: limits.retryJitter,
  retryAfterMsMax: limits.retryAfterMsMax
}

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

export type RetryDecision =
  | { readonly _tag: "Retry"; readonly delayMs: number }
  | { readonly _tag: "GiveUp"; readonly reason: "not_retryable" | "attempts_exhausted" | "pause_too_long" }

/**
 * Decides after the `attempt`-th failure (1 = the first). `random` is in [0, 1).
 */
export const retryPolicy = (
  error: ProviderError,
  attempt: number,
  random: number,
  settings: RetrySettings = retryDefaults
): RetryDecision => {
  if (!error.retryable) return { _tag: "GiveUp", reason: "not_retryable" }
  const base = settings.delaysMs[attempt - 1]
  if (base === undefined) return { _tag: "GiveUp", reason: "attempts_exhausted" }
  if ((error.retryAfterMs ?? 0) > settings.retryAfterMsMax) return { _tag: "GiveUp", reason: "pause_too_long" }
  return { _tag: "Retry", delayMs: retryDelayMs(error, base, random, settings.jitter) }
}
