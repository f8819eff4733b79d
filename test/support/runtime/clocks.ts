// Clocks for the runtime under test: one that runs faster than real time, so that retries and limits of minutes are
// over in a moment, one whose wall time a test sets, and one on which nothing passes unless a test lets it.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RunFork } from "#src/supervise/Branch.ts"

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

interface Sleeper {
  readonly dueMs: number
  readonly wake: () => void
}

/**
 * Time that a test owns altogether: it passes by `pass`, for everything that sleeps through Effect, and wall time can be
 * set apart from it, as people and machines that slept do.
 */
export class OwnClock {
  private passedMs = 0
  private wallAheadMs: number
  private sleepers: Array<Sleeper> = []

  constructor(startMs = 1_763_251_200_000) {
    this.wallAheadMs = startMs
  }

  readonly nowMs = (): number => this.wallAheadMs + this.passedMs
  readonly monotonicMs = (): number => this.passedMs

  /** Sets the wall clock ahead, or back; nobody who sleeps notices. */
  setWall(byMs: number): void {
    this.wallAheadMs += byMs
  }

  /** The longest that somebody has still to sleep. */
  get longestMs(): number {
    return Math.max(0, ...this.sleepers.map(({ dueMs }) => dueMs - this.passedMs))
  }

  /** Lets time pass, and wakes whoever has slept long enough, the earliest first. */
  pass(byMs: number): void {
    this.passedMs += byMs
    const due = this.sleepers.filter(({ dueMs }) => dueMs <= this.passedMs).sort((a, b) => a.dueMs - b.dueMs)
    if (due.length === 0) return
    this.sleepers = this.sleepers.filter(({ dueMs }) => dueMs > this.passedMs)
    for (const { wake } of due) wake()
  }

  private readonly sleep = (duration: Duration.Duration): Effect.Effect<void> => {
    const millis = Duration.toMillis(duration)
    if (!Number.isFinite(millis)) return Effect.never
    return Effect.callback((resume) => {
      const sleeper = { dueMs: this.passedMs + millis, wake: () => resume(Effect.void) }
      this.sleepers.push(sleeper)
      return Effect.sync(() => {
        this.sleepers = this.sleepers.filter((one) => one !== sleeper)
      })
    })
  }

  /** Runs fibers on this clock. */
  readonly runFork: RunFork = ((): RunFork => {
    const nanos = (ms: number): bigint => BigInt(Math.round(ms)) * 1_000_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: this.nowMs,
      currentTimeMillis: Effect.sync(this.nowMs),
      currentTimeNanosUnsafe: () => nanos(this.nowMs()),
      currentTimeNanos: Effect.sync(() => nanos(this.nowMs())),
      monotonicTimeNanosUnsafe: () => nanos(this.passedMs),
      monotonicTimeNanos: Effect.sync(() => nanos(this.passedMs)),
      sleep: (duration) => this.sleep(duration)
    }
    return Effect.runForkWith(Context.make(Clock.Clock, clock)) as RunFork
  })()
}
