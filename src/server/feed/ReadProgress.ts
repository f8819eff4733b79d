// Guard of every loop that reads a log by cursor: a read that brings nothing must not be followed by another one at once,
// because reads from memory end in the same turn of the event loop and nothing else would ever get its turn.
import { setImmediate as turnOfLoop } from "node:timers/promises"
import * as Data from "effect/Data"
import type { WireCode } from "../../contract/WireFailure.ts"
import { limits } from "../../wire/WireLimits.ts"

interface Read {
  readonly next: number
  readonly head: number
}

/** Reading again brings nothing, although there should be more. */
export class FeedStuck extends Data.TaggedError("FeedStuck")<{ readonly after: number; readonly head: number }> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `reading after event ${this.after} brings nothing, although the log says it goes on to event ${this.head}`
  }
}

/** Lets others have their turn before the next read; fails when too many in a row brought nothing. */
export const turnAfterEmptyPage = async (after: number, { head }: Read, emptyPages: number): Promise<void> => {
  if (emptyPages > limits.emptyPagesMax) throw new FeedStuck({ after, head })
  await turnOfLoop()
}

/** Whether there is more behind a page; fails when the page should have brought some of it and did not. */
export const hasMore = (after: number, { head, next }: Read): boolean => {
  if (next >= head) return false
  if (next <= after) throw new FeedStuck({ after, head })
  return true
}
