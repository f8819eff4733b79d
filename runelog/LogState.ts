// What the engine knows of one log in memory. Three positions matter, each a prefix of the next: what is
// written to segment files, what is durable (journal synced, acknowledged), what is encoded (waiting for
// the sync). `rollBack` returns from encoded to durable, the one way back there is.

import type { Slab } from "./commit/Slabs.ts"
import type { JournalFile } from "./journal/Journal.ts"
import type { LogDamaged } from "./RunelogErrors.ts"
import { ReadGate } from "./segment/ReadGate.ts"
import type { Seal } from "./segment/SealFrame.ts"
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from "./segment/Segment.ts"

/** Sparse index of a segment: the frame with id `ids[i]` starts at `offsets[i]` and is chained to `crcs[i]`. */
export interface SparseIndex {
  readonly ids: Array<number>
  readonly offsets: Array<number>
  readonly crcs: Array<number>
}

export const emptyIndex = (): SparseIndex => ({ ids: [], offsets: [], crcs: [] })

export interface SegmentState {
  readonly firstEventId: number
  readonly previousHeadCrc: number
  readonly headerCrc: number
  /** Checksum of the last frame as it was appended: what the next segment is chained to. Unknown while it grows. */
  headCrc: number | undefined
  /** It was found to continue the segment before it, and to be continued by the one behind it. */
  linked: boolean
  followed: boolean
  /** Of a closed segment that is damaged: where, and the last event before it. What is before can be read. */
  fault: { readonly offset: number; readonly reason: string; readonly lastEventId: number } | undefined
  index: SparseIndex
  /** Frames below both of these need no index entry: most appends look no further. 0 where it is to be found out. */
  indexDueId: number
  indexDueBytes: number
  /** End of the encoded frames, as an offset in the file. */
  bytes: number
  /** End of the durable frames. */
  durableBytes: number
  /** End of the frames that were written to the file. */
  writtenBytes: number
  /** The file and its header exist. */
  created: boolean
  /** Bytes were written that no sync has covered. */
  unsynced: boolean
  /** The directory entry of the file is not yet durable. */
  entryUnsynced: boolean
  /** Whether it may hold deltas that were superseded; unknown for one that was opened from disk. */
  thinnable: boolean
  /** No frame is added any more; the seal follows. */
  closing: boolean
  seal: Seal | undefined
  /** Length of the seal behind the frames; 0 when there is none. */
  sealBytes: number
  /** Entries and durable bytes that the `.idx` file speaks of. */
  indexedEntries: number
  indexedBytes: number
}

/** Frames of one log that lie in one slab and belong to one segment. */
export interface Extent {
  readonly slab: Slab
  readonly start: number
  readonly end: number
  readonly firstEventId: number
  readonly lastEventId: number
  /** The journal batch that made them durable. */
  readonly sequence: number
  readonly segment: SegmentState
  /** Where they go in the segment's file. */
  readonly position: number
  /** Where they lie in the journal, if they may be read from there again. */
  readonly journal: JournalFile | undefined
  readonly journalPosition: number
}

export interface LogState {
  readonly name: string
  readonly nameBytes: Uint8Array
  nextEventId: number
  crc: number
  durableEventId: number
  durableCrc: number
  writtenEventId: number
  readonly segments: Array<SegmentState>
  durableSegments: number
  readonly pending: Array<Extent>
  pendingBytes: number
  /** Sequence of the oldest batch with frames of this log that no segment sync covers; 0 when there is none. */
  unsyncedSequence: number
  /** The same for those batches whose frames were not written when the last sync of the segments began. */
  laterSequence: number
  /** Orders page reads and the exchange of segment files. */
  readonly gate: ReadGate
  /** Lets one seal or removal at a time work on the files. */
  readonly upkeep: ReadGate
  /** Calls under way that need this state to stay. */
  users: number
  /** Resolves when the write of pending frames that is under way ends. */
  flushing: Promise<void> | undefined
  /** Resolves when the sync of the segments that is under way ends. */
  syncing: Promise<void> | undefined
  damage: LogDamaged | undefined
  /** It was asked to be removed; nobody sees it any more. */
  removing: boolean
  /** Where the page that was read last ended: a reader that goes on needs no index. */
  readEnd: (FramePlace & { readonly segment: SegmentState }) | undefined
}

/** A frame boundary: the id that follows there and what that frame is chained to. */
export interface FramePlace {
  readonly eventId: number
  readonly offset: number
  readonly crc: number
}

export const emptyLog = (name: string): LogState => ({
  name,
  nameBytes: Buffer.from(name, "latin1"),
  nextEventId: 1,
  crc: 0,
  durableEventId: 0,
  durableCrc: 0,
  writtenEventId: 0,
  segments: [],
  durableSegments: 0,
  pending: [],
  pendingBytes: 0,
  unsyncedSequence: 0,
  laterSequence: 0,
  gate: new ReadGate(),
  upkeep: new ReadGate(),
  users: 0,
  flushing: undefined,
  syncing: undefined,
  damage: undefined,
  removing: false,
  readEnd: undefined
})

/** Starts the segment that the next frame will be the first of. */
export const startSegment = (log: LogState): SegmentState => {
  const before = lastSegment(log)
  const previousHeadCrc = before === undefined ? 0 : log.crc
  if (before !== undefined) before.headCrc = log.crc
  const { crc } = encodeSegmentHeader({ log: log.name, firstEventId: log.nextEventId, previousHeadCrc })
  const segment: SegmentState = {
    firstEventId: log.nextEventId,
    previousHeadCrc,
    headerCrc: crc,
    headCrc: undefined,
    linked: true,
    followed: true,
    fault: undefined,
    index: emptyIndex(),
    indexDueId: 0,
    indexDueBytes: 0,
    bytes: SEGMENT_HEADER_BYTES,
    durableBytes: SEGMENT_HEADER_BYTES,
    writtenBytes: SEGMENT_HEADER_BYTES,
    created: false,
    unsynced: false,
    entryUnsynced: false,
    thinnable: false,
    closing: false,
    seal: undefined,
    sealBytes: 0,
    indexedEntries: 0,
    indexedBytes: 0
  }
  log.segments.push(segment)
  log.crc = crc
  return segment
}

export const lastSegment = (log: LogState): SegmentState | undefined => log.segments[log.segments.length - 1]

const truncateIndex = (index: SparseIndex, bytes: number): void => {
  while (index.offsets.length > 0 && index.offsets[index.offsets.length - 1]! >= bytes) {
    index.offsets.pop()
    index.ids.pop()
    index.crcs.pop()
  }
}

/** Forgets everything that was encoded but did not become durable. */
export const rollBack = (log: LogState): void => {
  log.nextEventId = log.durableEventId + 1
  log.crc = log.durableCrc
  log.segments.length = log.durableSegments
  const segment = lastSegment(log)
  if (segment === undefined) return
  segment.bytes = segment.durableBytes
  truncateIndex(segment.index, segment.bytes)
  segment.indexDueId = 0
}

/** The frames of `extent` became durable. */
export const commitExtent = (log: LogState, extent: Extent, crc: number): void => {
  log.durableEventId = extent.lastEventId
  log.durableCrc = crc
  extent.segment.durableBytes = extent.position + (extent.end - extent.start)
  if (log.durableSegments < log.segments.length) log.durableSegments = log.segments.indexOf(extent.segment) + 1
  log.pending.push(extent)
  log.pendingBytes += extent.end - extent.start
  if (log.unsyncedSequence === 0) log.unsyncedSequence = extent.sequence
  if (log.laterSequence === 0) log.laterSequence = extent.sequence
}

/** Nothing of this log would be lost by forgetting its state. */
export const isIdle = (log: LogState): boolean =>
  log.pending.length === 0 &&
  log.unsyncedSequence === 0 &&
  log.flushing === undefined &&
  // What a sync makes known of the log at its end must not come from a state that another has followed.
  log.syncing === undefined &&
  log.users === 0 &&
  log.nextEventId === log.durableEventId + 1

/** Nobody works with this log, and there is nothing to know of it but its durable frames. */
export const isQuiet = (log: LogState): boolean =>
  log.flushing === undefined &&
  log.syncing === undefined &&
  log.users === 0 &&
  log.nextEventId === log.durableEventId + 1 &&
  log.damage === undefined &&
  !log.removing
