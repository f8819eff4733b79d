// Waiting that can be cut short, and leaves nothing behind on the signal it listened to.

/** Resolves after the time, or when the signal aborts. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener("abort", done)
      resolve()
    }
    signal.addEventListener("abort", done)
    if (signal.aborted) done()
  })
