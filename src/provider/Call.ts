// One model call as an Effect: interruptible at any moment, bounded in total time and in silence. Interrupting it
// aborts the request at once and waits for nothing; whatever the provider still sends is dropped.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ModelRequest } from "./Canonical.ts"
import type { ModelProvider, Outcome, ProviderClock, Sink, StopReason } from "./Provider.ts"
import { type ProviderError, providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

export interface CallLimits {
  readonly callMs?: number
  readonly firstEventMs?: number
  readonly idleMs?: number
}

export interface Completed {
  readonly stopReason: StopReason
}

/** Lets a provider sleep on the caller's clock. */
const providerClock = (clock: Clock.Clock): ProviderClock => ({
  nowMs: () => clock.currentTimeMillisUnsafe(),
  sleep: (delayMs, signal) =>
    Effect.runPromise(Effect.provideService(Effect.sleep(delayMs), Clock.Clock, clock), { signal }).catch(
      () => undefined
    )
})

const settled = (outcome: Outcome): Effect.Effect<Completed, ProviderError> => {
  if (outcome._tag === "Completed") return Effect.succeed({ stopReason: outcome.stopReason })
  return outcome._tag === "Failed" ? Effect.fail(outcome.error) : Effect.interrupt
}

/** Counts signs of life (reading a clock for every delta would cost more than handling it) and the terminal event. */
interface Pulse {
  beats: number
  over: boolean
}

const streaming = (provider: ModelProvider, request: ModelRequest, sink: Sink, clock: Clock.Clock, pulse: Pulse) =>
  Effect.callback<Completed, ProviderError>((resume) => {
    const controller = new AbortController()
    let open = true
    const guarded: Sink = (event) => {
      if (!open) return undefined
      pulse.beats++
      if (event.type === "error" || event.type === "done") pulse.over = true
      return sink(event)
    }
    const onActivity = () => {
      pulse.beats++
    }
    provider.stream(request, guarded, { signal: controller.signal, onActivity, clock: providerClock(clock) }).then(
      (outcome) => resume(settled(outcome)),
      (defect) => resume(Effect.die(defect))
    )
    return Effect.sync(() => {
      open = false
      controller.abort()
    })
  })

const nanosPerMs = 1_000_000n

/** Wakes a few times per idle limit, so that a stall is noticed within a twentieth of it. */
const watchdog = Effect.fnUntraced(function* (provider: string, pulse: Pulse, within: Required<CallLimits>) {
  const { callMs, firstEventMs, idleMs } = within
  const clock = yield* Clock.Clock
  const sliceMs = Math.max(1, Math.floor(Math.min(firstEventMs, idleMs) / 20))
  const started = yield* clock.monotonicTimeNanos
  let seen = pulse.beats
  let lastBeat = started
  for (;;) {
    const now = yield* clock.monotonicTimeNanos
    const leftMs = callMs - Number((now - started) / nanosPerMs)
    if (leftMs <= 0) return yield* timedOut(provider, `no complete answer within ${callMs} ms`)
    if (pulse.beats !== seen) {
      seen = pulse.beats
      lastBeat = now
    } else if (seen === 0 && now - started >= BigInt(firstEventMs) * nanosPerMs) {
      return yield* timedOut(provider, `no answer began within ${firstEventMs} ms`)
    } else if (seen > 0 && now - lastBeat >= BigInt(idleMs) * nanosPerMs) {
      return yield* timedOut(provider, `the stream was silent for ${idleMs} ms`)
    }
    yield* Effect.sleep(Math.min(sliceMs, leftMs))
  }
})

const timedOut = (provider: string, message: string) =>
  Effect.fail(providerError({ kind: "timeout", provider, message }))

/** Runs the call to its end. Events reach `sink` in order; none comes after the effect is over. */
export const call = Effect.fnUntraced(function* (
  provider: ModelProvider,
  request: ModelRequest,
  sink: Sink,
  options: CallLimits = {}
): Effect.fn.Return<Completed, ProviderError> {
  const clock = yield* Clock.Clock
  const pulse: Pulse = { beats: 0, over: false }
  const ended = Effect.raceFirst(
    streaming(provider, request, sink, clock, pulse),
    watchdog(provider.name, pulse, {
      callMs: options.callMs ?? limits.callMs,
      firstEventMs: options.firstEventMs ?? limits.firstEventMs,
      idleMs: options.idleMs ?? limits.idleMs
    })
  )
  return yield* Effect.tapError(ended, (error) =>
    // A timeout is ours: the provider has not announced it.
    pulse.over ? Effect.void : Effect.promise(async () => sink({ type: "error", error }))
  )
})
