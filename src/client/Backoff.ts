/**
 * How long to wait before the next attempt: doubling from the first wait to the longest, and drawn from the upper half
 * of that, so that many clients of one restarted server do not come back as one.
 */
import { clientLimits } from "./ClientLimits.ts"

/** `attempt` counts failures in a row from 1; `random` is in [0, 1). */
export const backoffMs = (attempt: number, random: number): number => {
  const full = Math.min(clientLimits.backoffMaxMs, clientLimits.backoffFirstMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(full / 2 + (full / 2) * random)
}

/** Resolves after the delay, or at once when the signal aborts. */
export const pause = (delayMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", settle)
      resolve()
    }
    const timer = setTimeout(settle, delayMs)
    signal.addEventListener("abort", settle)
  })
