// The pieces around a model call, separate so that the conversation can own the loop: a limiter that waits, a
// guard with the circuit breaker, the retry policy (RetryPolicy). `resilient` composes them for simple users.

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
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
import { type CallLimits, type Completed, call } from "./Call.ts"
import type { ModelRequest } from "./Canonical.ts"
import { ProviderError, providerError } from "./Errors.ts"
import { limits } from "./Limits.ts"
import type { ModelProvider, Sink } from "./Provider.ts"
import { type RetrySettings, retryDefaults, retryPolicy } from "./RetryPolicy.ts"

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

export interface Guard {
  /** Runs the call unless the circuit is open, and remembers how it went. */
  readonly run: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ProviderError, R>
  readonly state: () => BreakerState
}

const reportOf = (exit: Exit.Exit<unknown, unknown>): CallReport => {
  if (Exit.isSuccess(exit)) return { _tag: "Succeeded" }
  const failure = exit.cause.reasons.find(Cause.isFailReason)?.error
  return failure instanceof ProviderError ? { _tag: "Failed", kind: failure.kind } : { _tag: "Abandoned" }
}

export const makeGuard = (provider: string, settings: BreakerSettings = breakerDefaults): Guard => {
  let state: BreakerState = closedBreaker
  const enter = Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
    const admission = admit(state, nowMs, settings)
    if (admission._tag === "Admitted") {
      state = admission.state
      return Effect.succeed(admission.probe)
    }
    const message = `${provider} failed repeatedly; nothing is sent to it for now`
    return Effect.fail(providerError({ kind: "circuit_open", provider, message, retryAfterMs: admission.retryAfterMs }))
  })
  const leave = (probe: boolean, exit: Exit.Exit<unknown, unknown>) =>
    Effect.map(Clock.currentTimeMillis, (nowMs) => {
      state = record(state, reportOf(exit), { probe, nowMs }, settings)
    })
  return { run: (effect) => Effect.acquireUseRelease(enter, () => effect, leave), state: () => state }
}

export interface RetryScheduled {
  /** Which retry this will be: 1 for the first. */
  readonly attempt: number
  readonly delayMs: number
  readonly error: ProviderError
}

export interface ResilientOptions extends CallLimits {
  readonly retry?: RetrySettings
  readonly limiter?: Limiter
  readonly guard?: Guard
  /** Runs before the pause of a retry. What the failed attempt streamed is void from here on. */
  readonly onRetry?: (retry: RetryScheduled) => Effect.Effect<void>
}

export type ResilientCall = (
  request: ModelRequest,
  sink: Sink,
  options?: CallLimits & Pick<ResilientOptions, "onRetry">
) => Effect.Effect<Completed, ProviderError>

export const limiterDefaults: LimiterSettings = {
  concurrent: limits.concurrentCalls,
  waitingMax: limits.waitingCallsMax
}

/** A provider with limiter, breaker and retries around it. The slot is free while a retry waits. */
export const resilient = (provider: ModelProvider, settings: ResilientOptions = {}): ResilientCall => {
  const limiter = settings.limiter ?? makeLimiter(provider.name, limiterDefaults)
  const guard = settings.guard ?? makeGuard(provider.name)
  return Effect.fnUntraced(function* (request, sink, options = {}) {
    const onRetry = options.onRetry ?? settings.onRetry
    for (let attempt = 1; ; attempt++) {
      const tried: ModelRequest = { ...request, metadata: { ...request.metadata, attempt } }
      const once = limiter.run(guard.run(call(provider, tried, sink, { ...settings, ...options })))
      const exit = yield* Effect.result(once)
      if (exit._tag === "Success") return exit.success
      const decision = retryPolicy(exit.failure, attempt, yield* Random.next, settings.retry ?? retryDefaults)
      if (decision._tag === "GiveUp") return yield* exit.failure
      if (onRetry !== undefined) yield* onRetry({ attempt, delayMs: decision.delayMs, error: exit.failure })
      yield* Effect.sleep(decision.delayMs)
    }
  })
}
