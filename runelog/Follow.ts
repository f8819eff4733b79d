// A log from a cursor on, and then as it grows. A follower holds a page at most and otherwise one bit: that there is
// something new. However fast the log grows and however slow the follower is, nothing queues up between them.
import { LogUnknown } from "./Errors.ts"
import type { Page, ReadFilter } from "./Reader.ts"
import type { Runelog } from "./Runelog.ts"

export interface FollowOptions {
  /** The last event the follower has; 0 for the beginning. */
  readonly after: number
  readonly filter?: ReadFilter
  /** Ends the iteration, also while it waits. */
  readonly signal?: AbortSignal
  readonly bytesMax?: number
}

/**
 * Pages that each continue the one before; a page without frames moves the cursor over what the filter leaves out. A
 * log that does not exist yet is waited for; one that is removed meanwhile, or damaged, ends it with the error of a read.
 */
export async function* follow(
  runelog: Pick<Runelog, "read" | "watch">,
  log: string,
  options: FollowOptions
): AsyncGenerator<Page, void, void> {
  const { signal } = options
  const bell = new Bell()
  const stopWatching = runelog.watch(log, bell.ring)
  signal?.addEventListener("abort", bell.ring)
  const isOver = (): boolean => signal?.aborted ?? false
  let { after } = options
  try {
    while (!isOver()) {
      // Reset before the look: what comes during it rings again.
      bell.reset()
      const page = await pageBehind(runelog, log, { ...options, after })
      if (isOver()) return
      if (page === undefined || page.next === after) {
        await bell.rung()
        continue
      }
      after = page.next
      yield page
    }
  } finally {
    stopWatching()
    signal?.removeEventListener("abort", bell.ring)
  }
}

/** The next page, or nothing for a follower of a log that was never there. */
const pageBehind = (
  runelog: Pick<Runelog, "read">,
  log: string,
  { after, bytesMax, filter }: FollowOptions
): Promise<Page | undefined> =>
  runelog
    .read(log, { after, ...(bytesMax === undefined ? {} : { bytesMax }), ...(filter === undefined ? {} : { filter }) })
    .catch((error) => {
      if (after === 0 && error instanceof LogUnknown) return undefined
      throw error
    })

/** Remembers that it rang, once, until it is reset. */
class Bell {
  private rings = Promise.withResolvers<void>()

  readonly ring = (): void => this.rings.resolve()

  reset(): void {
    this.rings = Promise.withResolvers<void>()
  }

  rung(): Promise<void> {
    return this.rings.promise
  }
}
