// A batch: the frames and removals that become durable together, laid out in one slab. Owns what becomes of its logs when
// it is durable, or never will be; how it is filled is told in Encode.ts, when it is written in Committer.ts.
import type { JournalFile, Placement } from "../journal/Journal.ts"
import { alignPage, BATCH_HEADER_BYTES, groupKind } from "../journal/JournalBatch.ts"
import { commitExtent, type Extent, type LogState, rollBack } from "../LogState.ts"
import type { Slab, Slabs } from "./Slabs.ts"

/** Frames of one log in one segment. Once durable it is the extent by which they are found. */
export interface FrameGroup extends Extent {
  readonly kind: typeof groupKind.frames
  readonly log: LogState
  /** Where the group's header is; its frames follow the name. */
  readonly headerStart: number
  end: number
  frames: number
  lastEventId: number
  /** Checksum of the last frame that was chained, where that frame ends, and the id that follows. */
  crc: number
  chainedEnd: number
  chainedId: number
  /** Of the batch; 0 until it is durable. */
  sequence: number
  journal: JournalFile | undefined
  journalPosition: number
}

export interface RemovalGroup {
  readonly kind: typeof groupKind.removal
  readonly log: LogState
}

export type Group = FrameGroup | RemovalGroup

export interface Batch {
  readonly slab: Slab
  readonly start: number
  end: number
  readonly groups: Array<Group>
  /** The groups before this one are chained. */
  chainedGroups: number
  /** Where it was written in the journal. */
  placement: Placement | undefined
  /** Every append in it may use the reserve. */
  terminal: boolean
  readonly durable: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export const openBatch = (slab: Slab): Batch => {
  const start = alignPage(slab.used)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // A rejected batch reaches its appenders through this promise; one without appenders must not be an unhandled rejection.
  promise.catch(() => undefined)
  return {
    slab,
    start,
    end: start + BATCH_HEADER_BYTES,
    groups: [],
    chainedGroups: 0,
    placement: undefined,
    terminal: true,
    durable: promise,
    resolve,
    reject
  }
}

export const payloadBytes = ({ end, start }: Batch): number => end - start - BATCH_HEADER_BYTES

/** The batch is durable: its frames are, and need the slab for as long as they are in no segment. */
export const commitGroups = ({ groups, slab, start, ...batch }: Batch, sequence: number, slabs: Slabs): void => {
  // Nothing is durable that was not written somewhere.
  const { journal, position } = batch.placement!
  for (const group of groups) {
    if (group.kind === groupKind.removal) continue
    group.sequence = sequence
    group.journal = journal
    group.journalPosition = position + group.start - start
    slabs.retain(slab)
    commitExtent(group.log, group, group.crc)
  }
  slabs.release(slab)
}

/** The batch will never be durable: every log in it goes back to where it was acknowledged. */
export const rollBackGroups = ({ groups, slab }: Batch, slabs: Slabs): void => {
  for (const { log } of groups) rollBack(log)
  slabs.release(slab)
}
