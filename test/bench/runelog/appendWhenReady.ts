// An append that waits while the log is busy, for what is written before anything is measured.
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { Busy, EventIdOutOfOrder } from "#runelog/RunelogErrors.ts"

/** Tries again until the entries are durable; appends to one log may be started together, in the order of their ids. */
export const appendWhenReady = async (
  log: Runelog,
  name: string,
  firstEventId: number,
  entries: ReadonlyArray<Entry>
): Promise<void> => {
  for (;;) {
    try {
      return await log.append(name, firstEventId, entries)
    } catch (error) {
      const isBehindRefused = error instanceof EventIdOutOfOrder && error.expected < firstEventId
      if (!(error instanceof Busy) && !isBehindRefused) throw error
      await log.ready()
    }
  }
}
