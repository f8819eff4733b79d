// A condition variable: whoever changes something notifies, and whoever waits looks again. Nobody polls.
import * as Effect from "effect/Effect"

export class Condition {
  private readonly waiting = new Set<() => void>()

  /** Something changed; cheap where nobody waits. */
  readonly notify = (): void => {
    for (const look of this.waiting) look()
  }

  /** Done when it is so, or when time is up; also in the finalizer of a scope. */
  waitFor(isSo: () => boolean, withinMs: number): Effect.Effect<void> {
    const met = Effect.callback<void>((resume) => {
      const look = (): void => {
        if (!isSo()) return
        this.waiting.delete(look)
        resume(Effect.void)
      }
      this.waiting.add(look)
      look()
      return Effect.sync(() => void this.waiting.delete(look))
    })
    return met.pipe(Effect.interruptible, Effect.timeoutOption(withinMs), Effect.asVoid)
  }
}
