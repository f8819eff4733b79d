// Every number that hooks work with, in one table.

const KIB = 1024

export const hookLimits = {
  /** A longer file of hooks is invalid. */
  fileBytesMax: 256 * KIB,
  /** Hooks of one file. */
  hooksPerFileMax: 64,
  nameCharsMax: 128,
  /** What a hook that names no limit of its own may take. */
  timeoutMs: 120_000,
  /** The same for a hook of an event, whose file counts in seconds. */
  eventTimeoutMs: 60_000,
  timeoutMsMax: 3_600_000,
  retryDelayMs: 500,
  /** Output of a hook that is kept. */
  outputCharsMax: 16 * KIB,
  /** What a hook is told on its standard input; arguments and results beyond it are left out. */
  inputCharsMax: 512 * KIB,
  /** What a hook may add to what the model reads. */
  contextCharsMax: 10_000,
  /** Files whose parsed content is remembered; the oldest is forgotten first. */
  filesRemembered: 256,
  /** Batches whose hooks may still be running; after the oldest was forgotten, the transcript has to do. */
  batchesRemembered: 1_024,
  /** Events that wait for their hooks; one more is dropped, and the log of the server says so. */
  eventsWaitingMax: 4_096,
  /** Events whose hooks run side by side, one per conversation. */
  eventsAtOnce: 4,
  /** How long a hook that was ended may take to be gone before the next one of its conversation or workspace starts. */
  leaveWithinMs: 10_000,
  /** How often in a row a hook may send an agent back to work when it wants to stop. */
  continuationsMax: 8
} as const
