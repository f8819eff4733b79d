// Reads pages from segment files: finds the nearest known frame boundary, checks every frame from there on, and
// hands out what is wanted as it lies there. A good prefix is served before damage behind it is reported.
import type { DiskFile } from "../disk/Disk.ts"
import {
  type Bytes,
  bytesOf,
  checkFrame,
  FRAME_BODY_BYTES_MAX,
  FRAME_HEADER_BYTES,
  frameBytes,
  frameCrc,
  frameEventId,
  frameKind,
  frameKindOf,
  frameLastId,
  framePreviousCrc
} from "../Frame.ts"
import type { FramePlace, LogState, SegmentState } from "../LogState.ts"
import { LogUnknown, SegmentCorrupt } from "../RunelogErrors.ts"
import { checkLink, indexSegment, loadClosedSegment, type OpenLogOptions, useSegmentFile } from "./OpenSegment.ts"
import { SEGMENT_HEADER_BYTES } from "./Segment.ts"

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

export interface SegmentRequest {
  readonly after: number
  readonly bytesMax: number
  readonly head: number
  /** Where the frames are put, if they fit. */
  readonly into: Buffer | undefined
}

/** A page from the segment that holds the event behind `after`, which must be written. */
export const readSegment = async (
  options: OpenLogOptions,
  log: LogState,
  request: SegmentRequest
): Promise<RawPage> => {
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
  const { bytesMax, head, into } = request
  let from = seek(log, segment, wanted)
  for (;;) {
    // What lies before the event is read with it; a buffer of the caller's is filled as it is.
    const skipped = into === undefined ? bytesBefore(segment, from, wanted) : 0
    const size = { bytesMax: bytesMax + skipped, endOffset: segment.writtenBytes, into }
    const chunk = await readAt(file, from.offset, size)
    const { end, place, start } = check({ log: log.name, chunk, path, from, wanted, bytesMax })
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

interface ChunkSize extends Pick<SegmentRequest, "bytesMax" | "into"> {
  readonly endOffset: number
}

/** Reads about `bytesMax`, and always the whole first frame. */
const readAt = async (file: DiskFile, offset: number, { bytesMax, endOffset, into }: ChunkSize): Promise<Chunk> => {
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

/** More than this is passed over piece by piece, whatever the index says. */
const SKIP_BYTES_MAX = 256 * 1024

/** About how many bytes lie between a boundary and the wanted event; too few only cost another read. */
const bytesBefore = ({ index, writtenBytes }: SegmentState, from: FramePlace, wanted: number): number => {
  if (from.eventId === wanted) return 0
  const at = index.ids.findLastIndex((eventId) => eventId <= wanted) + 1
  const next = index.ids[at] ?? wanted
  const bytes = (index.offsets[at] ?? writtenBytes) - from.offset
  const share = (wanted - from.eventId) / (next - from.eventId)
  return Math.min(Math.ceil(bytes * share), SKIP_BYTES_MAX)
}

interface Check {
  readonly log: string
  readonly chunk: Chunk
  readonly path: string
  readonly from: FramePlace
  readonly wanted: number
  readonly bytesMax: number
}

interface Checked {
  /** Where the first wanted frame begins and the last good one ends; equal when none is wanted. */
  readonly start: number
  readonly end: number
  /** The boundary behind the last good frame. */
  readonly place: FramePlace
}

const check = ({ bytesMax, chunk, from, log, path, wanted }: Check): Checked => {
  const { bytes } = chunk
  const { view } = bytes
  let { length } = chunk
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
    if (start < 0 && eventId > wanted) {
      start = at
      length = Math.min(length, start + bytesMax)
    }
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
