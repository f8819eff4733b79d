// Pages of a log by cursor: from memory for the newest frames, from segment files for the rest. A page is
// one buffer with views into it; nothing is parsed, filters look at headers only, and a reader that is
// slow costs nothing but its cursor.

import {
  type Bytes,
  bytesOf,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  frameStream
} from "../Frame.ts"
import type { Extent, LogState } from "../LogState.ts"
import { CursorBeyondEnd, ReadInvalid, SegmentCorrupt } from "../RunelogErrors.ts"
import type { OpenLogOptions } from "./OpenSegment.ts"
import { type RawPage, readSegment } from "./SegmentReader.ts"

export type { RawPage } from "./SegmentReader.ts"

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
