// Circuit breaker of one provider, as a pure table of states. Closed: calls pass. Open: nothing is sent until a
// pause is over. Probing: exactly one call finds out whether the provider is back; the others keep waiting.
import type { ErrorKind } from "./Errors.ts"
import { errorTable } from "./Errors.ts"
import { limits } from "./Limits.ts"

export type BreakerState =
  | { readonly _tag: "Closed"; readonly failures: number }
  | { readonly _tag: "Open"; readonly untilMs: number; readonly pauseMs: number }
  | { readonly _tag: "Probing"; readonly pauseMs: number }

export interface BreakerSettings {
  readonly failures: number
  readonly openMs: number
  readonly openMsMax: number
}

export const breakerDefaults: BreakerSettings = {
  failures: limits.breakerFailures,
  openMs: limits.breakerOpenMs,
  openMsMax: limits.breakerOpenMsMax
}

export const closedBreaker: BreakerState = { _tag: "Closed", failures: 0 }

/** How a call ended, as far as the provider's health is concerned. */
export type CallReport =
  | { readonly _tag: "Succeeded" }
  | { readonly _tag: "Failed"; readonly kind: ErrorKind }
  /** Interrupted by us: says nothing about the provider. */
  | { readonly _tag: "Abandoned" }

export type Admission =
  | { readonly _tag: "Admitted"; readonly state: BreakerState; readonly probe: boolean }
  | { readonly _tag: "Refused"; readonly retryAfterMs: number }

export const admit = (state: BreakerState, nowMs: number, settings: BreakerSettings = breakerDefaults): Admission => {
  switch (state._tag) {
    case "Closed":
      return { _tag: "Admitted", state, probe: false }
    case "Open":
      return nowMs >= state.untilMs
        ? { _tag: "Admitted", state: { _tag: "Probing", pauseMs: state.pauseMs }, probe: true }
        : { _tag: "Refused", retryAfterMs: state.untilMs - nowMs }
    case "Probing":
      return { _tag: "Refused", retryAfterMs: settings.openMs }
  }
}

const opened = (pauseMs: number, nowMs: number): BreakerState => ({ _tag: "Open", untilMs: nowMs + pauseMs, pauseMs })

/** A failure that is not the provider's fault proves that the provider answers. */
const healthy = (report: CallReport): boolean =>
  report._tag === "Succeeded" || (report._tag === "Failed" && !errorTable[report.kind].unhealthy)

const afterProbe = (
  state: { readonly pauseMs: number },
  report: CallReport,
  nowMs: number,
  settings: BreakerSettings
) => {
  // An abandoned probe leaves the question open: the next call asks it again, at once.
  if (report._tag === "Abandoned") return { _tag: "Open", untilMs: nowMs, pauseMs: state.pauseMs } as const
  return healthy(report) ? closedBreaker : opened(Math.min(state.pauseMs * 2, settings.openMsMax), nowMs)
}

/** Folds the end of a call in. `probe` is what its admission said: late ends of older calls change nothing. */
export const record = (
  state: BreakerState,
  report: CallReport,
  call: { readonly probe: boolean; readonly nowMs: number },
  settings: BreakerSettings = breakerDefaults
): BreakerState => {
  switch (state._tag) {
    case "Closed": {
      if (report._tag === "Abandoned") return state
      if (healthy(report)) return closedBreaker
      const failures = state.failures + 1
      return failures >= settings.failures ? opened(settings.openMs, call.nowMs) : { _tag: "Closed", failures }
    }
    case "Open":
      return state
    case "Probing":
      return call.probe ? afterProbe(state, report, call.nowMs, settings) : state
  }
}
