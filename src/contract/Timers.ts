// Delayed and repeated work as fibers, for code that is callbacks: sockets, child processes, idle sessions. The time is
// that of Effect's clock, so a test that owns the clock of `runFork` owns these too. Whoever starts one cancels it; none of
// them keeps a program alive that has nothing else to do.
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"

export type RunFork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** Ends the wait; harmless when it is over. */
export type Cancel = () => void

const delayMsMax = 2_147_483_647

/** The clock there is, except that a program does not wait for those who sleep on it. */
const backgroundClock: Clock.Clock = Object.assign(Object.create(Effect.runSync(Clock.Clock)) as Clock.Clock, {
  sleep: (duration: Duration.Duration) =>
    Effect.callback<void>((resume) => {
      const timer = setTimeout(() => resume(Effect.void), Math.min(Duration.toMillis(duration), delayMsMax))
      timer.unref()
      return Effect.sync(() => clearTimeout(timer))
    })
})

const runInBackground = Effect.runForkWith(Context.make(Clock.Clock, backgroundClock)) as RunFork

const forked = (work: Effect.Effect<unknown>, runFork: RunFork): Cancel => {
  const fiber = runFork(work)
  fiber.addObserver((exit) => {
    if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
    // What breaks here breaks loudly, as it would in a callback of the event loop.
    setImmediate(() => {
      throw Cause.squash(exit.cause)
    })
  })
  return () => fiber.interruptUnsafe()
}

/** Runs something once, after that long. */
export const after = (delayMs: number, run: () => void, runFork: RunFork = runInBackground): Cancel =>
  forked(Effect.andThen(Effect.sleep(delayMs), Effect.sync(run)), runFork)

/** Runs something again and again, that long after each time. */
export const every = (intervalMs: number, run: () => void, runFork: RunFork = runInBackground): Cancel =>
  forked(Effect.forever(Effect.andThen(Effect.sleep(intervalMs), Effect.sync(run))), runFork)

/** Forks what ends with the scope: its close interrupts what runs, and waits until it is over. */
export const scopedFork = (runFork: RunFork = runInBackground): Effect.Effect<RunFork, never, Scope.Scope> =>
  Effect.map(FiberSet.make(), (fibers) => (effect) => {
    const fiber = runFork(effect)
    FiberSet.addUnsafe(fibers, fiber)
    return fiber
  })
