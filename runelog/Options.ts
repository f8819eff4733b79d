// What a runelog can be opened with, and the limits that follow from it: a batch must fit into a journal
// file, or an append could wait for room that never comes.
import type { Disk } from "./Disk.ts"
import { LimitInvalid } from "./Errors.ts"
import { FRAME_BODY_BYTES_MAX } from "./Frame.ts"
import { BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, JOURNAL_PAGE_BYTES } from "./JournalBatch.ts"
import { type Limits, limits as defaults } from "./Limits.ts"
import type { SyncMode } from "./SyncPolicy.ts"

export interface RunelogOptions {
  /** The data directory: `meta`, `lock`, `journal/`, `runelog/` and `quarantine/` in it are the engine's. */
  readonly directory: string
  readonly disk?: Disk
  readonly limits?: Partial<Limits>
  /** Where syncs run; by default the engine follows the speed of the disk. */
  readonly sync?: SyncMode
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number
  /** Random bytes as hex. */
  readonly randomHex?: (bytes: number) => string
  /** Told once when the writer stops for good because the disk failed. */
  readonly onPoison?: (error: Error) => void
  /** Deliberate defects, by which the crash tests show that they can fail. */
  readonly defect?: "recovery drops the last batch"
}

const SLAB_BYTES = 2 * 1024 * 1024

export interface ResolvedLimits extends Limits {
  readonly slabBytes: number
}

export const resolveLimits = (overrides: Partial<Limits> | undefined): ResolvedLimits => {
  const limits = { ...defaults, ...overrides }
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 0) throw new LimitInvalid({ name, value, reason: "it must be a whole number" })
  }
  const overhead = 2 * JOURNAL_PAGE_BYTES + BATCH_HEADER_BYTES + GROUP_HEADER_BYTES + limits.nameBytesMax
  const roomBytes = Math.floor((limits.journalFileBytes - limits.reserveBytes - overhead) / JOURNAL_PAGE_BYTES) * JOURNAL_PAGE_BYTES
  if (roomBytes < JOURNAL_PAGE_BYTES) {
    throw new LimitInvalid({ name: "journalFileBytes", value: limits.journalFileBytes, reason: "it leaves no room for a batch beside the reserve" })
  }
  if (limits.bodyBytesMax > FRAME_BODY_BYTES_MAX) {
    throw new LimitInvalid({ name: "bodyBytesMax", value: limits.bodyBytesMax, reason: `the format holds ${FRAME_BODY_BYTES_MAX}` })
  }
  const batchBytesMax = Math.min(limits.batchBytesMax, roomBytes)
  return { ...limits, batchBytesMax, slabBytes: Math.min(SLAB_BYTES, roomBytes) }
}
