// Circuit breaker of one provider, as a pure table of states. Closed: calls pass. Open: nothing is sent until a
// pause is over. Probing: exactly one call finds out whether the provider is back; the others keep waiting. It opens only
// for what says that the provider itself is down, and only when more than one conversation has met it.
import { limits } from "./ProviderLimits.ts"

export type BreakerState =
  | { readonly _tag: "Closed"; readonly failures: number; readonly sources: ReadonlyArray<string> }
  | { readonly _tag: "Open"; readonly untilMs: number; readonly pauseMs: number }
  | { readonly _tag: "Probing"; readonly pauseMs: number }

export interface BreakerSettings {
  readonly failures: number
  /** Conversations that must have met them. */
  readonly sources: number
  readonly openMs: number
  readonly openMsMax: number
}

export const breakerDefaults: BreakerSettings = {
  failures: limits.breakerFailures,
  sources: limits.breakerSources,
  openMs: limits.breakerOpenMs,
  openMsMax: limits.breakerOpenMsMax
}

export const closedBreaker: BreakerState = { _tag: "Closed", failures: 0, sources: [] }

/** What a call has shown of the provider: that it answers, that it is down, or nothing. */
export type CallReport = "up" | "down" | "unknown"

export interface EndedCall {
  /** What its admission said: late ends of older calls change nothing. */
  readonly probe: boolean
  /** Whose call it was. */
  readonly source: string
  readonly nowMs: number
}

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

const afterProbe = (pauseMs: number, report: CallReport, nowMs: number, settings: BreakerSettings): BreakerState => {
  if (report === "up") return closedBreaker
  // A probe that showed nothing leaves the question open: the next call asks it again, at once.
  return report === "unknown"
    ? { _tag: "Open", untilMs: nowMs, pauseMs }
    : opened(Math.min(pauseMs * 2, settings.openMsMax), nowMs)
}

const afterFailure = (
  state: Extract<BreakerState, { readonly _tag: "Closed" }>,
  { nowMs, source }: EndedCall,
  settings: BreakerSettings
): BreakerState => {
  const failures = Math.min(state.failures + 1, settings.failures)
  const isNew = !state.sources.includes(source) && state.sources.length < settings.sources
  const sources = isNew ? [...state.sources, source] : state.sources
  return failures >= settings.failures && sources.length >= settings.sources
    ? opened(settings.openMs, nowMs)
    : { _tag: "Closed", failures, sources }
}

/** Folds the end of a call in. */
export const record = (
  state: BreakerState,
  report: CallReport,
  call: EndedCall,
  settings: BreakerSettings = breakerDefaults
): BreakerState => {
  switch (state._tag) {
    case "Closed":
      if (report === "unknown") return state
      return report === "up" ? closedBreaker : afterFailure(state, call, settings)
    case "Open":
      return state
    case "Probing":
      return call.probe ? afterProbe(state.pauseMs, report, call.nowMs, settings) : state
  }
}
