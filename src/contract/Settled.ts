// The edge between effects and work that is promises. Interruption aborts the signal of the work and waits for its end:
// nothing runs on behind the back of whoever interrupted it.
import * as Effect from "effect/Effect"

/** Runs the work to its end; rejections are failures. A value that comes after an interruption goes to `onLate`. */
export const settled = <A>(
  work: (signal: AbortSignal) => Promise<A>,
  onLate?: (value: A) => void
): Effect.Effect<A, unknown> =>
  Effect.callback<A, unknown>((resume, signal) => {
    // A function that throws before its promise is there ends like one whose promise rejects.
    const running = new Promise<A>((resolve) => resolve(work(signal)))
    running.then(
      (value) => resume(Effect.succeed(value)),
      (error: unknown) => resume(Effect.fail(error))
    )
    return Effect.promise(() => running.then(onLate, () => undefined))
  })
