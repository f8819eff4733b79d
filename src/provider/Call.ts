// One model call as an Effect: interruptible at any moment, bounded in total time and in silence. Interrupting it
// aborts the request at once and waits for nothing; whatever the provider still sends is dropped.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelRequest } from "./Canonical.ts"
import type { ModelProvider, ProviderEvent, StopReason } from "./Provider.ts"
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

/** Takes the events that have gathered, in order. The stream waits for the effect. */
export type Listener<E = never> = (events: ReadonlyArray<ProviderEvent>) => Effect.Effect<void, E>

/** Counts signs of life: reading a clock for every delta would cost more than handling it. */
interface Pulse {
  beats: number
}

const answered = Effect.fnUntraced(function* <E>(
  provider: ModelProvider,
  request: ModelRequest,
  listener: Listener<E>,
  pulse: Pulse
): Effect.fn.Return<Completed, ProviderError | E> {
  let stopReason: StopReason | undefined
  const onActivity = () => {
    pulse.beats++
  }
  yield* Stream.runForEachArray(provider.stream(request, { onActivity }), (events) => {
    pulse.beats++
    const last = events.at(-1)
    if (last?.type === "done") stopReason = last.stop_reason
    return listener(events)
  })
  if (stopReason !== undefined) return { stopReason }
  const message = "the stream ended before the answer was complete"
  return yield* providerError({ kind: "truncated", provider: provider.name, message })
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

/** Runs the call to its end. Events reach the listener in order; none comes after the effect is over. */
export const call = <E = never>(
  provider: ModelProvider,
  request: ModelRequest,
  listener: Listener<E>,
  options: CallLimits = {}
): Effect.Effect<Completed, ProviderError | E> =>
  Effect.suspend(() => {
    const pulse: Pulse = { beats: 0 }
    const within = {
      callMs: options.callMs ?? limits.callMs,
      firstEventMs: options.firstEventMs ?? limits.firstEventMs,
      idleMs: options.idleMs ?? limits.idleMs
    }
    return Effect.raceFirst(answered(provider, request, listener, pulse), watchdog(provider.name, pulse, within))
  })
