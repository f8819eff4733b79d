// Limits for tests with real processes: small enough that rotation, seals and checkpoints happen within milliseconds.
import { KIB, type Limits } from "#runelog/RunelogLimits.ts"

export const writerLimits: Partial<Limits> = {
  journalFileBytes: 128 * KIB,
  journalFilesMax: 4,
  reserveBytes: 8 * KIB,
  segmentBytes: 16 * KIB,
  segmentWriteBytes: 2 * KIB,
  indexEveryBytes: KIB,
  pendingBytesMax: 2048 * KIB,
  inFlightBytesMax: 256 * KIB,
  earlyCommitBytes: 4 * KIB,
  residentLogsMax: 2
}
