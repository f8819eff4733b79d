// What a runelog can be opened with, and the limits that follow from it: a batch must fit into a journal file and into
// the memory for pending frames, or an append could wait for room that never comes.

import type { SyncMode } from "./commit/SyncPolicy.ts"
import type { Disk } from "./disk/Disk.ts"
import { FRAME_BODY_BYTES_MAX } from "./Frame.ts"
import { BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, JOURNAL_PAGE_BYTES } from "./journal/JournalBatch.ts"
import type { Later } from "./Retry.ts"
import { LimitInvalid, type LogDamaged } from "./RunelogErrors.ts"
import { limits as defaults, type Limits } from "./RunelogLimits.ts"

export interface RunelogOptions {
  /** The data directory: `meta`, `lock`, `journal/`, `runelog/` and `quarantine/` in it are the engine's. */
  readonly directory: string
  readonly disk?: Disk
  readonly limits?: Partial<Limits>
  /** Where syncs run; by default the engine follows the speed of the disk. */
  readonly sync?: SyncMode
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number
  /** Runs something later, and says how to call it off; a timer that keeps no process alive unless told. */
  readonly later?: Later
  /** Random bytes as hex. */
  readonly randomHex?: (bytes: number) => string
  /** Told once when the writer stops for good because the disk failed; that may be inside an append. */
  readonly onPoison?: (error: Error) => void
  /** Told of a log that was found damaged while it is open, and is read-only from then on. It must not throw. */
  readonly onDamage?: (damage: LogDamaged) => void
  /** Deliberate defects, by which the crash tests show that they can fail. */
  readonly defect?: "recovery drops the last batch"
}

const SLAB_BYTES = 2 * 1024 * 1024

export interface ResolvedLimits extends Limits {
  readonly slabBytes: number
}

/** So many of the largest batches must fit into the memory for pending frames, or a single one could block it for good. */
const PENDING_BATCHES_MIN = 8

const wholePages = (bytes: number): number => Math.floor(bytes / JOURNAL_PAGE_BYTES) * JOURNAL_PAGE_BYTES

export const resolveLimits = (overrides: Partial<Limits> | undefined): ResolvedLimits => {
  const limits = { ...defaults, ...overrides }
  for (const [name, value] of Object.entries(limits)) {
    const isCount = Number.isSafeInteger(value) && value >= 0
    if (!isCount) throw new LimitInvalid({ name, value, reason: "it must be a whole number" })
  }
  const { bodyBytesMax, journalFileBytes, pendingBytesMax } = limits
  const overhead = 2 * JOURNAL_PAGE_BYTES + BATCH_HEADER_BYTES + GROUP_HEADER_BYTES + limits.nameBytesMax
  const journalRoom = wholePages(journalFileBytes - limits.reserveBytes - overhead)
  if (journalRoom < JOURNAL_PAGE_BYTES) {
    const reason = "it leaves no room for a batch beside the reserve"
    throw new LimitInvalid({ name: "journalFileBytes", value: journalFileBytes, reason })
  }
  const pendingRoom = wholePages(pendingBytesMax / PENDING_BATCHES_MIN)
  if (pendingRoom < JOURNAL_PAGE_BYTES) {
    const reason = `it must hold ${PENDING_BATCHES_MIN} pages of ${JOURNAL_PAGE_BYTES}`
    throw new LimitInvalid({ name: "pendingBytesMax", value: pendingBytesMax, reason })
  }
  if (bodyBytesMax > FRAME_BODY_BYTES_MAX) {
    const reason = `the format holds ${FRAME_BODY_BYTES_MAX}`
    throw new LimitInvalid({ name: "bodyBytesMax", value: bodyBytesMax, reason })
  }
  const roomBytes = Math.min(journalRoom, pendingRoom)
  const batchBytesMax = Math.min(limits.batchBytesMax, roomBytes)
  return { ...limits, batchBytesMax, slabBytes: Math.min(SLAB_BYTES, roomBytes) }
}
