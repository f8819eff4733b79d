// Clocks for the runtime under test: one that runs faster than real time, so that retries and limits of minutes are
// over in a moment, and one whose wall time a test sets.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RunFork } from "#src/supervise/Supervisor.ts"

/** Time that runs `factor` times as fast as real time, for everything that sleeps through Effect. */
export const fastRunFork = (factor: number): RunFork => {
  const startedNanos = process.hrtime.bigint()
  const startedMs = Date.now()
  const monotonic = (): bigint => (process.hrtime.bigint() - startedNanos) * BigInt(factor)
  const wallMs = (): number => startedMs + Number(monotonic() / 1_000_000n)
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: wallMs,
    currentTimeMillis: Effect.sync(wallMs),
    currentTimeNanosUnsafe: () => BigInt(wallMs()) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(wallMs()) * 1_000_000n),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) => {
      const millis = Duration.toMillis(duration) / factor
      if (!Number.isFinite(millis)) return Effect.never
      return Effect.callback((resume) => {
        const timer = setTimeout(() => resume(Effect.void), millis)
        return Effect.sync(() => clearTimeout(timer))
      })
    }
  }
  return Effect.runForkWith(Context.make(Clock.Clock, clock)) as RunFork
}

/** Wall time that stands where the test puts it. */
export class SetClock {
  ms: number

  constructor(ms = 1_763_251_200_000) {
    this.ms = ms
  }

  readonly nowMs = (): number => this.ms
}
