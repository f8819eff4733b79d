// Every number of running programs, in one table.

const KIB = 1_024
const MIB = 1_024 * KIB

export const processLimits = {
  /** Programs at the same time; one more is refused. */
  runningMax: 512,
  /** Between asking a tree of processes to end and making it. */
  killAfterMs: 1_000,
  /** After its first process has ended, output that something still holds open is no longer waited for. */
  drainMsMax: 1_000,
  /** How often what is left of a tree outside a namespace is looked for, and how many times. */
  sweepMs: 20,
  sweepsMax: 60,
  /** A program that ran no longer than this has not used up the numbers of processes. */
  shortMs: 1_000,
  /** A file of all that was printed; what comes after is read, dropped and counted. */
  overflowBytesMax: 64 * MIB,
  /** Bytes that wait for the disk; more hold the program back. */
  overflowPendingBytesMax: MIB,
  /** Progress: how often, how much at once, and how much in all. */
  progressMs: 50,
  progressCharsMax: 8 * KIB,
  progressTotalCharsMax: 512 * KIB,
  /** Below this much free space on a disk that it may write to, a program is ended. */
  diskReserveBytes: 1_024 * MIB,
  diskCheckMs: 250,
  /** Sandboxes that wait for their program, and how long one waits. */
  sparesMax: 4,
  spareIdleMs: 300_000,
  stdinBytesMax: 8 * MIB
} as const
