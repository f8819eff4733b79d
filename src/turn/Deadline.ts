// Runs work of others under a deadline: its signal aborts when the time is over, it may then take a moment to wind
// up, and after that nobody waits for it any longer. Work that was interrupted from outside is not waited for; what it
// says in the end can still be heard.
import { limits } from "./TurnLimits.ts"

export type Ended<A> =
  | { readonly _tag: "Returned"; readonly value: A; readonly late: boolean }
  | { readonly _tag: "Threw"; readonly cause: unknown; readonly late: boolean }
  /** It did not end, neither in time nor in the moment after. */
  | { readonly _tag: "Overran" }
  /** With what it comes to in the end, in case it knows. */
  | { readonly _tag: "Interrupted"; readonly last?: Promise<A | undefined> }

export const timerMs = (delayMs: number): number => Math.min(Math.max(0, delayMs), limits.timerMsMax)

const settled = <A>(run: () => Promise<A>, isLate: () => boolean): Promise<Ended<A>> =>
  // A function that throws before its promise is there ends like one whose promise rejects.
  Promise.resolve()
    .then(run)
    .then(
      (value): Ended<A> => ({ _tag: "Returned", value, late: isLate() }),
      (cause: unknown): Ended<A> => ({ _tag: "Threw", cause, late: isLate() })
    )

export const underDeadline = async <A>(
  work: (signal: AbortSignal) => Promise<A>,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal; readonly windUpMs?: number }
): Promise<Ended<A>> => {
  const { signal, timeoutMs, windUpMs = limits.windUpMs } = options
  if (signal.aborted) return { _tag: "Interrupted" }
  const deadline = new AbortController()
  let last: NodeJS.Timeout | undefined
  const overran = new Promise<Ended<A>>((resolve) => {
    last = setTimeout(() => {
      deadline.abort()
      last = setTimeout(() => resolve({ _tag: "Overran" }), windUpMs)
    }, timerMs(timeoutMs))
  })
  const both = AbortSignal.any([signal, deadline.signal])
  const own = settled(
    () => work(both),
    () => deadline.signal.aborted
  )
  let onAbort = (): void => undefined
  const interrupted = new Promise<Ended<A>>((resolve) => {
    const last = own.then((ended) => (ended._tag === "Returned" ? ended.value : undefined))
    onAbort = () => resolve({ _tag: "Interrupted", last })
    signal.addEventListener("abort", onAbort)
  })
  try {
    return await Promise.race([own, overran, interrupted])
  } finally {
    clearTimeout(last)
    signal.removeEventListener("abort", onAbort)
  }
}

export const messageOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).slice(0, limits.errorCharsMax).toWellFormed()
