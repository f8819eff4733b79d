// The open batch: entries are encoded straight into a slab as they arrive, each append all or nothing.
// Owns the layout of a batch while it grows; the committer decides when it is closed and written.
import { BatchEmpty, BatchTooLarge, EntryInvalid, EntryTooLarge } from "./Errors.ts"
import { FRAME_HEADER_BYTES, flag, frameKind, sealFrame } from "./Frame.ts"
import { alignPage, BATCH_HEADER_BYTES, closeGroup, GROUP_HEADER_BYTES, groupKind, openGroup } from "./JournalBatch.ts"
import type { Limits } from "./Limits.ts"
import {
  commitExtent,
  type Extent,
  type LogState,
  lastSegment,
  rollBack,
  type SegmentState,
  startSegment
} from "./LogState.ts"
import type { Slab, Slabs } from "./Slabs.ts"

/** Who may see an entry; the engine only stores it and filters by it. */
export const visibility = { public: 0, internal: 1, secret: 2 } as const

export interface Entry {
  /** The bytes of the entry; a string is stored as UTF-8. */
  readonly body: string | Uint8Array
  /** 0 public, 1 internal, 2 secret. */
  readonly visibility?: number
  /** A number of the caller's, 0 to 255, by which readers can filter. */
  readonly family?: number
  /** A number of the caller's, up to 2³²−1, that ties deltas to what supersedes them. */
  readonly stream?: number
  /** `delta` entries are dropped at the seal once a later `supersedes` entry of their stream is durable. */
  readonly role?: "delta" | "supersedes"
}

/** Frames of one log in one segment. Once durable it is the extent by which they are found. */
export interface FrameGroup extends Extent {
  readonly kind: typeof groupKind.frames
  readonly log: LogState
  /** Where the group's header is; its frames follow the name. */
  readonly headerStart: number
  end: number
  frames: number
  lastEventId: number
  /** Checksum of the last frame. */
  crc: number
  /** Of the batch; 0 until it is durable. */
  sequence: number
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
  return { slab, start, end: start + BATCH_HEADER_BYTES, groups: [], terminal: true, durable: promise, resolve, reject }
}

const bodyBytesBound = (body: string | Uint8Array): number => (typeof body === "string" ? body.length * 3 : body.length)

const isByte = (value: number | undefined): boolean =>
  value === undefined || (Number.isInteger(value) && value >= 0 && value <= 0xff)

const entryFault = (log: string, entry: Entry, bodyBytesMax: number): EntryInvalid | EntryTooLarge | undefined => {
  const { body, role, stream } = entry
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    return new EntryInvalid({ log, field: "body", value: body })
  }
  if (role !== undefined && role !== "delta" && role !== "supersedes") {
    return new EntryInvalid({ log, field: "role", value: role })
  }
  if (!isByte(entry.visibility) || (entry.visibility ?? 0) > visibility.secret) {
    return new EntryInvalid({ log, field: "visibility", value: entry.visibility })
  }
  if (!isByte(entry.family)) return new EntryInvalid({ log, field: "family", value: entry.family })
  if (stream !== undefined && (!Number.isInteger(stream) || stream < 0 || stream > 0xffff_ffff)) {
    return new EntryInvalid({ log, field: "stream", value: stream })
  }
  if (bodyBytesBound(entry.body) <= bodyBytesMax) return undefined
  const bytes = typeof entry.body === "string" ? Buffer.byteLength(entry.body) : entry.body.length
  return bytes > bodyBytesMax ? new EntryTooLarge({ log, bytes, bytesMax: bodyBytesMax }) : undefined
}

export type Measured =
  | { readonly _tag: "Fits"; readonly bytesBound: number }
  | { readonly _tag: "Refused"; readonly error: BatchEmpty | BatchTooLarge | EntryInvalid | EntryTooLarge }

/** Checks the entries of one append and says how much room they need at most. */
export const measure = (log: LogState, entries: ReadonlyArray<Entry>, limits: Limits): Measured => {
  if (entries.length === 0) return { _tag: "Refused", error: new BatchEmpty({ log: log.name }) }
  let bytes = 0
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index]!
    const fault = entryFault(log.name, entry, limits.bodyBytesMax)
    if (fault !== undefined) return { _tag: "Refused", error: fault }
    bytes += FRAME_HEADER_BYTES + bodyBytesBound(entry.body)
  }
  if (entries.length > limits.batchFramesMax || bytes > limits.batchBytesMax) {
    const exact = entries.reduce((sum, { body }) => sum + FRAME_HEADER_BYTES + Buffer.byteLength(body), 0)
    if (entries.length > limits.batchFramesMax || exact > limits.batchBytesMax) {
      return { _tag: "Refused", error: tooLarge(log, entries.length, exact, limits) }
    }
  }
  return { _tag: "Fits", bytesBound: bytes }
}

const tooLarge = (log: LogState, frames: number, bytes: number, limits: Limits): BatchTooLarge =>
  new BatchTooLarge({
    log: log.name,
    frames,
    framesMax: limits.batchFramesMax,
    bytes,
    bytesMax: limits.batchBytesMax
  })

/** Room that an append needs in a batch besides its frames. */
export const groupBytes = (log: LogState): number => GROUP_HEADER_BYTES + log.nameBytes.length

const groupFor = (batch: Batch, log: LogState, segment: SegmentState): FrameGroup => {
  const last = batch.groups[batch.groups.length - 1]
  if (last !== undefined && last.kind === groupKind.frames && last.segment === segment) return last
  const headerStart = batch.end
  const start = openGroup(batch.slab, headerStart, groupKind.frames, log.nameBytes)
  batch.end = start
  const group: FrameGroup = {
    kind: groupKind.frames,
    log,
    slab: batch.slab,
    headerStart,
    start,
    end: start,
    frames: 0,
    firstEventId: log.nextEventId,
    lastEventId: log.nextEventId,
    crc: log.crc,
    sequence: 0,
    segment,
    position: segment.bytes
  }
  batch.groups.push(group)
  return group
}

const entryFlags = (entry: Entry): number =>
  (entry.visibility ?? 0) |
  (entry.role === "delta" ? flag.delta : 0) |
  (entry.role === "supersedes" ? flag.supersedes : 0)

const putBody = (slab: Slab, start: number, body: string | Uint8Array): number => {
  if (typeof body === "string") return slab.buffer.write(body, start, "utf8")
  slab.buffer.set(body, start)
  return body.length
}

/** Indexes the next frame of a segment, if one is due; `previousCrc` is what the frame is chained to. */
export const indexFrame = (segment: SegmentState, eventId: number, previousCrc: number, limits: Limits): void => {
  if (eventId < segment.indexDueId && segment.bytes < segment.indexDueBytes) return
  const { ids, offsets, crcs } = segment.index
  const last = ids.length - 1
  if (
    last < 0 ||
    eventId - ids[last]! >= limits.indexEveryFrames ||
    segment.bytes - offsets[last]! >= limits.indexEveryBytes
  ) {
    ids.push(eventId)
    offsets.push(segment.bytes)
    crcs.push(previousCrc)
  }
  segment.indexDueId = ids[ids.length - 1]! + limits.indexEveryFrames
  segment.indexDueBytes = offsets[offsets.length - 1]! + limits.indexEveryBytes
}

/** Encodes one append that was measured before and for which the slab has room. */
export const encodeAppend = (batch: Batch, log: LogState, entries: ReadonlyArray<Entry>, limits: Limits): void => {
  const open = lastSegment(log)
  const isClosed = open === undefined || open.seal !== undefined || open.closing || open.bytes >= limits.segmentBytes
  const segment = isClosed ? startSegment(log) : open
  const group = groupFor(batch, log, segment)
  const { slab } = batch
  const last = entries.length - 1
  for (let index = 0; index <= last; index++) {
    const entry = entries[index]!
    const start = batch.end
    const bodyBytes = putBody(slab, start + FRAME_HEADER_BYTES, entry.body)
    const eventId = log.nextEventId
    indexFrame(segment, eventId, log.crc, limits)
    if (entry.role === "supersedes") segment.thinnable = true
    log.crc = sealFrame(slab, start, bodyBytes, {
      flags:
        entryFlags(entry) |
        (index < last ? flag.batchContinues : 0) |
        (eventId === segment.firstEventId ? flag.segmentFirst : 0),
      kind: frameKind.entry,
      family: entry.family ?? 0,
      stream: entry.stream ?? 0,
      previousCrc: log.crc,
      eventId
    })
    log.nextEventId = eventId + 1
    batch.end = start + FRAME_HEADER_BYTES + bodyBytes
    segment.bytes += FRAME_HEADER_BYTES + bodyBytes
  }
  group.end = batch.end
  group.frames += entries.length
  group.lastEventId = log.nextEventId - 1
  group.crc = log.crc
  closeGroup(slab, group.headerStart, group.end - group.start, group.frames)
}

/** Records that the log is to be removed; its files go once this is durable. */
export const encodeRemoval = (batch: Batch, log: LogState): void => {
  const headerStart = batch.end
  const start = openGroup(batch.slab, headerStart, groupKind.removal, log.nameBytes)
  closeGroup(batch.slab, headerStart, 0, 0)
  batch.end = start
  batch.groups.push({ kind: groupKind.removal, log })
}

export const payloadBytes = ({ end, start }: Batch): number => end - start - BATCH_HEADER_BYTES

/** The batch is durable: its frames are, and need the slab for as long as they are in no segment. */
export const commitGroups = ({ groups, slab }: Batch, sequence: number, slabs: Slabs): void => {
  for (const group of groups) {
    if (group.kind === groupKind.removal) continue
    group.sequence = sequence
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
