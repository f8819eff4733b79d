// Waits for a time that is on record. It has come when the wall clock says so, which may be all of a sudden when that was
// set ahead or the machine slept, or when as much time has passed as was left at first: a clock that was set back
// must not make anybody wait for ever.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { limits } from "./TurnLimits.ts"

const nanosPerMs = 1_000_000n

/** Resolves when `dueMs` has come, by the wall clock that is given or by the time that has passed. */
export const waitUntil = Effect.fnUntraced(function* (dueMs: number, nowMs: () => number) {
  const startedNanos = yield* Clock.monotonicTimeNanos
  const atFirstMs = dueMs - nowMs()
  for (let leftMs = atFirstMs; leftMs > 0; ) {
    yield* Effect.sleep(Math.min(leftMs, limits.clockLookMs))
    const passedMs = Number(((yield* Clock.monotonicTimeNanos) - startedNanos) / nanosPerMs)
    leftMs = Math.min(dueMs - nowMs(), atFirstMs - passedMs)
  }
})
