// Runs work of others under a deadline: it is interrupted when its time is over, may then take a moment to wind up, and
// after that nobody waits for it any longer. Whoever is interrupted meanwhile interrupts the work and does not wait.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { limits } from "./TurnLimits.ts"

export type Ended<A> =
  | { readonly _tag: "Returned"; readonly value: A; readonly late: boolean }
  | { readonly _tag: "Threw"; readonly cause: unknown; readonly late: boolean }
  /** It did not end, neither in time nor in the moment after. */
  | { readonly _tag: "Overran" }

export interface DeadlineOptions<A> {
  readonly timeoutMs: number
  readonly windUpMs?: number
  /** What the work still came to when it was interrupted, if it said so. */
  readonly last?: () => A | undefined
  /** Told of the fiber that does the work, for those who have to know when it really is over. */
  readonly onFork?: (fiber: Fiber.Fiber<A>) => void
}

export const timerMs = (delayMs: number): number => Math.min(Math.max(0, delayMs), limits.timerMsMax)

const endedOf = <A>(
  exit: Exit.Exit<A>,
  late: boolean,
  last: (() => A | undefined) | undefined
): Exclude<Ended<A>, { readonly _tag: "Overran" }> => {
  if (Exit.isSuccess(exit)) return { _tag: "Returned", value: exit.value, late }
  const value = last?.()
  if (value !== undefined) return { _tag: "Returned", value, late }
  return { _tag: "Threw", cause: Cause.squash(exit.cause), late }
}

export const underDeadline = <A>(
  work: Effect.Effect<A>,
  { last, onFork, timeoutMs, windUpMs = limits.windUpMs }: DeadlineOptions<A>
): Effect.Effect<Ended<A>> =>
  // Work that does not heed its interruption must not hold up whoever gave up on it: the fiber is no child of theirs.
  Effect.flatMap(Effect.forkDetach(Effect.interruptible(Effect.suspend(() => work))), (fiber) => {
    onFork?.(fiber)
    const wait = (withinMs: number, late: boolean) =>
      Effect.timeoutOption(
        Effect.map(Fiber.await(fiber), (exit): Ended<A> => endedOf(exit, late, last)),
        withinMs
      )
    const windUp = Effect.suspend(() => {
      fiber.interruptUnsafe()
      return Effect.map(
        wait(windUpMs, true),
        Option.getOrElse((): Ended<A> => ({ _tag: "Overran" }))
      )
    })
    return Effect.flatMap(wait(timerMs(timeoutMs), false), (inTime) =>
      Option.isSome(inTime) ? Effect.succeed(inTime.value) : windUp
    ).pipe(Effect.onInterrupt(() => Effect.sync(() => fiber.interruptUnsafe())))
  })

/** Waits a moment for work that was interrupted. */
export const windingUp = (fiber: Fiber.Fiber<unknown>): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), limits.windUpMs))

export const messageOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).slice(0, limits.errorCharsMax).toWellFormed()
