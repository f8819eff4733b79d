// The pieces around a model call, separate because the conversation owns the loop of retries: a limiter that waits, and
// a guard with the circuit breaker, which holds calls while the provider is down.

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import {
  admit,
  type BreakerSettings,
  type BreakerState,
  breakerDefaults,
  type CallReport,
  closedBreaker,
  record
} from "./Breaker.ts"
import { ProviderError, providerError, providerHealth } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

export interface LimiterSettings {
  readonly concurrent: number
  readonly waitingMax: number
}

export interface Limiter {
  /** Runs the effect when it is its turn; waiting is in order and interruptible. */
  readonly run: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ProviderError, R>
  readonly waiting: () => number
}

export const makeLimiter = (provider: string, settings: LimiterSettings): Limiter => {
  const semaphore = Semaphore.makeUnsafe(settings.concurrent)
  let waiting = 0
  const full = providerError({
    kind: "queue_full",
    provider,
    message: `${settings.waitingMax} calls are already waiting for ${provider}`
  })
  return {
    run: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | ProviderError, R> => {
        if (waiting >= settings.waitingMax) return Effect.fail(full)
        waiting++
        let inLine = true
        const leaveLine = () => {
          if (inLine) waiting--
          inLine = false
        }
        const turn = Effect.suspend(() => {
          leaveLine()
          return effect
        })
        return Effect.ensuring(semaphore.withPermit(turn), Effect.sync(leaveLine))
      }),
    waiting: () => waiting
  }
}

export const limiterDefaults: LimiterSettings = {
  concurrent: limits.concurrentCalls,
  waitingMax: limits.waitingCallsMax
}

/** How the circuit of a provider stands. */
export interface Circuit {
  readonly circuit: "closed" | "open" | "probing"
  /** Failures in a row that say that the provider is down, while it is closed. */
  readonly failures: number
  /** When it is tried again, while it is open. */
  readonly until_ms: number | null
  /** Calls that wait for it. */
  readonly held: number
}

export interface Guard {
  /** Runs the call of a conversation unless the circuit is open, and remembers how it went. */
  readonly run: <A, E, R>(source: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ProviderError, R>
  /** Holds a call until it is its turn to be tried: when the circuit is closed again, or as the one that finds out. */
  readonly ready: Effect.Effect<void>
  readonly state: () => BreakerState
  readonly circuit: () => Circuit
}

const reportOf = (exit: Exit.Exit<unknown, unknown>): CallReport => {
  if (Exit.isSuccess(exit)) return "up"
  const failure = exit.cause.reasons.find(Cause.isFailReason)?.error
  // One that we interrupted says nothing about the provider.
  return failure instanceof ProviderError ? providerHealth(failure) : "unknown"
}

const circuitOf = (state: BreakerState, held: number): Circuit => ({
  circuit: state._tag === "Closed" ? "closed" : state._tag === "Open" ? "open" : "probing",
  failures: state._tag === "Closed" ? state.failures : 0,
  until_ms: state._tag === "Open" ? state.untilMs : null,
  held
})

export const makeGuard = (provider: string, settings: BreakerSettings = breakerDefaults): Guard => {
  let state: BreakerState = closedBreaker
  let held = 0
  /** Those that are held come one by one, so that not all of them are turned away by the one that finds out. */
  let nextTryMs = 0
  const enter = Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
    const admission = admit(state, nowMs, settings)
    if (admission._tag === "Admitted") {
      state = admission.state
      return Effect.succeed(admission.probe)
    }
    const message = `${provider} failed for several conversations; no request is sent until the next probe`
    return Effect.fail(providerError({ kind: "circuit_open", provider, message, retryAfterMs: admission.retryAfterMs }))
  })
  const leave = (source: string, probe: boolean, exit: Exit.Exit<unknown, unknown>) =>
    Effect.map(Clock.currentTimeMillis, (nowMs) => {
      state = record(state, reportOf(exit), { probe, source, nowMs }, settings)
    })
  const isDue = (nowMs: number): boolean => {
    if (state._tag === "Closed") return true
    if (state._tag === "Probing" || nowMs < state.untilMs || nowMs < nextTryMs) return false
    nextTryMs = nowMs + limits.breakerTryEveryMs
    return true
  }
  const wait = Effect.gen(function* () {
    while (!isDue(yield* Clock.currentTimeMillis)) yield* Effect.sleep(limits.breakerLookMs)
  })
  return {
    run: (source, effect) =>
      Effect.acquireUseRelease(
        enter,
        () => effect,
        (probe, exit) => leave(source, probe, exit)
      ),
    ready: Effect.acquireUseRelease(
      Effect.sync(() => {
        held += 1
      }),
      () => wait,
      () =>
        Effect.sync(() => {
          held -= 1
        })
    ),
    state: () => state,
    circuit: () => circuitOf(state, held)
  }
}
