// A sandbox is planned from what is on the machine and set up a moment later. Where something went away in between, it
// fails before the program began; planned anew it succeeds.
import { ProcessNotStarted } from "../../sandbox/process/ProcessErrors.ts"

/** Tries once more when the sandbox could not be set up. */
export const retryOnceIfNotStarted = <A>(work: () => Promise<A>): Promise<A> =>
  work().catch((error: unknown) => {
    if (error instanceof ProcessNotStarted && error.code === "sandbox_failed") return work()
    throw error
  })
