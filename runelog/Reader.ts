// Pages of a log by cursor: from memory for the newest frames, from segment files for the rest. A page is
// one buffer with views into it; nothing is parsed, filters look at headers only, and a reader that is
// slow costs nothing but its cursor.
import type { DiskFile } from "./Disk.ts"
import { CursorBeyondEnd, LogUnknown, ReadInvalid, SegmentCorrupt } from "./Errors.ts"
import {
  type Bytes,
  bytesOf,
  checkFrame,
  FRAME_BODY_BYTES_MAX,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameCrc,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  framePreviousCrc,
  frameStream
} from "./Frame.ts"
import type { Extent, FramePlace, LogState, SegmentState } from "./LogState.ts"
import { checkLink, indexSegment, loadClosedSegment, type OpenLogOptions, useSegmentFile } from "./OpenSegment.ts"

import { SEGMENT_HEADER_BYTES } from "./Segment.ts"

export interface ReadFilter {
  /** Entries above this visibility are left out (0 public, 1 internal, 2 secret). */
  readonly visibilityMax?: number
  /** Only entries of these families. */
  readonly families?: ReadonlySet<number>
}

export interface ReadRequest {
  /** The last event the reader has; 0 for the beginning. */
  readonly after: number
  readonly bytesMax: number
  readonly filter?: ReadFilter | undefined
}

export interface Frame {
  readonly kind: "entry" | "thinned"
  readonly eventId: number
  /** Larger than `eventId` only for a thinned range. */
  readonly lastEventId: number
  readonly visibility: number
  readonly family: number
  readonly stream: number
  readonly body: Buffer
}

export interface Page {
  readonly frames: ReadonlyArray<Frame>
  /** The cursor behind this page, filtered frames included. */
  readonly next: number
  /** The newest durable event when the page was read. */
  readonly head: number
}

export interface RawRequest {
  readonly after: number
  /** Where the frames are put; one that does not fit gets a buffer of its own. */
  readonly into: Buffer
}

/** Checked frames as they lie in the file, one behind the other. The buffer is the reader's own. */
export interface RawPage extends Bytes {
  /** Where the first frame begins, and where the last one ends. */
  readonly start: number
  readonly end: number
  /** The event that was asked for; the first frame may be a thinned range that begins before it. */
  readonly wanted: number
  readonly next: number
  readonly head: number
}

const passes = (view: DataView, start: number, filter: ReadFilter | undefined): boolean => {
  if (filter === undefined || frameKindOf(view, start) === frameKind.thinned) return true
  if (filter.visibilityMax !== undefined && (frameFlags(view, start) & flag.visibilityMask) > filter.visibilityMax)
    return false
  return filter.families === undefined || filter.families.has(frameFamily(view, start))
}

/** The frame as a reader sees it that wants `wanted` and later: of a thinned range, the part from there on. */
const frameAt = ({ buffer, view }: Bytes, start: number, wanted: number): Frame => ({
  kind: frameKindOf(view, start) === frameKind.thinned ? "thinned" : "entry",
  eventId: Math.max(frameEventId(view, start), wanted),
  lastEventId: frameLastId(view, start),
  visibility: frameFlags(view, start) & flag.visibilityMask,
  family: frameFamily(view, start),
  stream: frameStream(view, start),
  body: buffer.subarray(start + FRAME_HEADER_BYTES, start + frameBytes(view, start))
})

/** The newest durable event, which no cursor may lie behind. */
const checkedHead = (log: LogState, after: number): number => {
  if (!Number.isSafeInteger(after) || after < 0) throw new ReadInvalid({ log: log.name, field: "after", value: after })
  const head = log.durableEventId
  if (after >= head && log.damage !== undefined) throw damageAtEnd(log)
  if (after > head) throw new CursorBeyondEnd({ log: log.name, after, head })
  return head
}

export const readPage = async (options: OpenLogOptions, log: LogState, request: ReadRequest): Promise<Page> => {
  const { after, bytesMax, filter } = request
  const isCount = bytesMax === Number.POSITIVE_INFINITY || (Number.isSafeInteger(bytesMax) && bytesMax >= 0)
  if (!isCount) throw new ReadInvalid({ log: log.name, field: "bytesMax", value: bytesMax })
  const head = checkedHead(log, after)
  if (after === head) return { frames: [], next: head, head }
  if (after >= log.writtenEventId) return readMemory(log, request, head)
  const raw = await log.gate.shared(() => readSegment(options, log, { after, bytesMax, head, into: undefined }))
  return { frames: framesIn(raw, filter), next: raw.next, head }
}

/** A page of what is in segments, without an object per frame; nothing when the cursor is behind all of that. */
export const readRaw = async (
  options: OpenLogOptions,
  log: LogState,
  { after, into }: RawRequest
): Promise<RawPage | undefined> => {
  const head = checkedHead(log, after)
  if (after >= log.writtenEventId) return undefined
  return log.gate.shared(() => readSegment(options, log, { after, bytesMax: into.length, head, into }))
}

const framesIn = (page: RawPage, filter: ReadFilter | undefined): ReadonlyArray<Frame> => {
  const { end, start, view, wanted } = page
  const frames: Array<Frame> = []
  for (let at = start; at < end; at += frameBytes(view, at)) {
    if (passes(view, at, filter)) frames.push(frameAt(page, at, wanted))
  }
  return frames
}

const damageAtEnd = (log: LogState): SegmentCorrupt => {
  const { file, offset, reason } = log.damage!
  return new SegmentCorrupt({ log: log.name, file, offset, reason })
}

/** Frames that are not in a segment yet. They are copied: the slab is reused once they are written. */
const readMemory = (log: LogState, request: ReadRequest, head: number): Page => {
  const frames: Array<Frame> = []
  let next = request.after
  let bytesLeft = Math.max(request.bytesMax, 1)
  for (const extent of log.pending) {
    if (extent.lastEventId <= next) continue
    if (bytesLeft <= 0) break
    const start = offsetBehind(extent, next)
    const end = pageEnd(extent, start, bytesLeft)
    const bytes = bytesOf(Buffer.from(extent.slab.buffer.subarray(start, end)))
    for (let at = 0; at < bytes.buffer.length; at += frameBytes(bytes.view, at)) {
      if (passes(bytes.view, at, request.filter)) frames.push(frameAt(bytes, at, 0))
      next = frameEventId(bytes.view, at)
    }
    // What follows would leave a gap.
    if (end < extent.end) break
    bytesLeft -= end - start
  }
  return { frames, next, head }
}

const offsetBehind = ({ slab, start }: Extent, eventId: number): number => {
  let at = start
  while (frameEventId(slab.view, at) <= eventId) at += frameBytes(slab.view, at)
  return at
}

const pageEnd = ({ slab, end }: Extent, start: number, bytesMax: number): number => {
  if (end - start <= bytesMax) return end
  let at = start + frameBytes(slab.view, start)
  while (at < end && at + frameBytes(slab.view, at) - start <= bytesMax) at += frameBytes(slab.view, at)
  return at
}

interface SegmentRequest {
  readonly after: number
  readonly bytesMax: number
  readonly head: number
  readonly into: Buffer | undefined
}

const readSegment = async (options: OpenLogOptions, log: LogState, request: SegmentRequest): Promise<RawPage> => {
  const wanted = request.after + 1
  const at = log.segments.findLastIndex((segment) => segment.firstEventId <= wanted)
  // It was removed while the reader waited for its turn.
  if (at < 0) throw new LogUnknown({ log: log.name })
  const isLast = at === log.segments.length - 1
  const segment = isLast ? log.segments[at]! : await loadClosedSegment(options, log, at)
  if (isLast) await checkLink(options, log, at)
  const path = options.store.segmentPath(log.name, segment)
  const { fault } = segment
  if (fault !== undefined && wanted > fault.lastEventId) {
    throw new SegmentCorrupt({ log: log.name, file: path, offset: fault.offset, reason: fault.reason })
  }
  return useSegmentFile(options, log.name, path, async (file) => {
    const place: ReadPlace = { file, log, segment, path, wanted, request }
    return readFrom(place).catch(async (error) => {
      if (!(error instanceof SegmentCorrupt)) throw error
      // An index that lies must not pass for damage: what the file says from its beginning counts.
      const { index } = segment
      const end = await indexSegment(file, segment, segment.writtenBytes, options.limits)
      if (end.fault === undefined) return readFrom(place)
      // It is damage. What is behind it can still be read by those who have what is before.
      segment.index = index
      throw error
    })
  })
}

interface ReadPlace {
  readonly file: DiskFile
  readonly log: LogState
  readonly segment: SegmentState
  readonly path: string
  readonly wanted: number
  readonly request: SegmentRequest
}

const readFrom = async ({ file, log, path, request, segment, wanted }: ReadPlace): Promise<RawPage> => {
  const { head } = request
  let from = seek(log, segment, wanted)
  for (;;) {
    const chunk = await readAt(file, from.offset, { ...request, endOffset: segment.writtenBytes })
    const { end, place, start } = check({ log: log.name, chunk, path, from, wanted })
    from = place
    log.readEnd = { segment, ...from }
    const { buffer, view } = chunk.bytes
    if (from.eventId > wanted) return { buffer, view, start, end, wanted, next: from.eventId - 1, head }
  }
}

interface Chunk {
  readonly bytes: Bytes
  /** Bytes that were read. */
  readonly length: number
}

interface ChunkRequest extends SegmentRequest {
  readonly endOffset: number
}

/** Reads about `bytesMax`, and always the whole first frame. */
const readAt = async (file: DiskFile, offset: number, request: ChunkRequest): Promise<Chunk> => {
  const { bytesMax, endOffset, into } = request
  const available = endOffset - offset
  const length = Math.min(Math.max(bytesMax, FRAME_HEADER_BYTES), available)
  const bytes = bytesOf(into !== undefined && into.length >= length ? into : Buffer.allocUnsafe(length))
  const read = await file.read(bytes.buffer, 0, length, offset)
  const whole = read < FRAME_HEADER_BYTES ? read : Math.min(frameBytes(bytes.view, 0), available)
  if (whole <= length) return { bytes, length: read }
  const larger = Buffer.allocUnsafe(Math.min(whole, FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX))
  return { bytes: bytesOf(larger), length: await file.read(larger, 0, larger.length, offset) }
}

/** The nearest known frame boundary at or before the wanted event. */
const seek = (log: LogState, { headerCrc, firstEventId, index }: SegmentState, wanted: number): FramePlace => {
  const { readEnd } = log
  const at = index.ids.findLastIndex((eventId) => eventId <= wanted)
  const indexed =
    at < 0
      ? { eventId: firstEventId, offset: SEGMENT_HEADER_BYTES, crc: headerCrc }
      : { eventId: index.ids[at]!, offset: index.offsets[at]!, crc: index.crcs[at]! }
  const resumes = readEnd?.segment.index === index && readEnd.eventId <= wanted && readEnd.eventId >= indexed.eventId
  return resumes ? readEnd : indexed
}

interface Check {
  readonly log: string
  readonly chunk: Chunk
  readonly path: string
  readonly from: FramePlace
  readonly wanted: number
}

interface Checked {
  /** Where the first wanted frame begins and the last good one ends; equal when none is wanted. */
  readonly start: number
  readonly end: number
  /** The boundary behind the last good frame. */
  readonly place: FramePlace
}

const check = ({ chunk, from, log, path, wanted }: Check): Checked => {
  const { bytes, length } = chunk
  const { view } = bytes
  let at = 0
  let start = -1
  let { eventId, crc } = from
  let fault: string | undefined
  do {
    const problem = checkFrame(bytes, at, length)
    if (problem === "short" && at > 0) break
    fault = problem === "short" ? "the file ends inside a frame" : (problem ?? misplaced(view, at, eventId, crc))
    if (fault !== undefined) break
    crc = frameCrc(view, at)
    eventId = frameLastId(view, at) + 1
    if (start < 0 && eventId > wanted) start = at
    at += frameBytes(view, at)
  } while (at < length)
  // A good prefix is served before its bad end is reported.
  if (fault !== undefined && eventId <= wanted) {
    throw new SegmentCorrupt({ log, file: path, offset: from.offset + at, reason: fault })
  }
  return { start: start < 0 ? at : start, end: at, place: { eventId, crc, offset: from.offset + at } }
}

const misplaced = (view: DataView, at: number, expected: number, crc: number): string | undefined => {
  const eventId = frameEventId(view, at)
  if (eventId !== expected) return `event id ${eventId} where ${expected} belongs`
  if (frameKindOf(view, at) === frameKind.seal) return "a seal before the end"
  return framePreviousCrc(view, at) === crc ? undefined : "the chain to the frame before is broken"
}
