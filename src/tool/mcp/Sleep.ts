// Waiting that a signal cuts short, for code that is promises.
import * as Effect from "effect/Effect"

/** Resolves after the time, or when the signal aborts. */
export const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
  await Effect.runPromiseExit(Effect.sleep(ms), { signal })
}
