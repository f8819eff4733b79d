// Every number of the conversation layer, in one table.

export const limits = {
  /** Commands of one conversation that may wait for the disk. */
  mailboxMax: 1024,
  /** Conversations in memory without work; more leave, the longest unused first. */
  residentMax: 10_000,
  /** A conversation that leaves memory gets a snapshot if it has this many runes more than the last one. */
  snapshotEveryRunes: 256,
  /** Conversations that are loaded side by side after a restart. */
  recoveryLanes: 16
} as const
