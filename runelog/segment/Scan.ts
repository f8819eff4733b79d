// Walks the frames of a segment file from any frame boundary, checking checksum, chain, order and batch
// borders as it goes, with one bounded buffer. Everything that reads segments from disk goes
// through here, so there is one opinion on what a good frame is.
import type { DiskFile } from "../disk/Disk.ts"
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
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  framePreviousCrc,
  isUnsupported
} from "../Frame.ts"
import { SEGMENT_HEADER_BYTES } from "./Segment.ts"

export interface ScanStart {
  readonly offset: number
  /** The id that the first frame must have. */
  readonly eventId: number
  /** What the first frame must be chained to. */
  readonly previousCrc: number
}

export interface ScanFault {
  readonly offset: number
  readonly reason: string
}

export interface ScanEnd {
  /** End of the last good frame before any seal. */
  readonly offset: number
  /** Id of the last good event; one less than the start's when there was none. */
  readonly lastEventId: number
  readonly crc: number
  /** Start of the last batch, when the file ends inside it; with the id and chain before it. */
  readonly openBatch: { readonly offset: number; readonly lastEventId: number; readonly crc: number } | undefined
  /** The seal, when the segment has one: its body, and the length of its frame. */
  readonly seal: { readonly body: string; readonly bytes: number } | undefined
  readonly fault: ScanFault | undefined
}

export interface ScanOptions {
  /** The file is read no further than this. */
  readonly endOffset: number
  readonly chunkBytes?: number
  /** Called for every good frame but the seal; returning "stop" ends the scan behind that frame. */
  readonly onFrame?: (bytes: Bytes, start: number, offset: number) => "stop" | undefined
}

const CHUNK_BYTES = 1024 * 1024

interface Walk {
  offset: number
  nextEventId: number
  crc: number
  openBatch: { offset: number; lastEventId: number; crc: number } | undefined
  seal: ScanEnd["seal"]
  fault: ScanFault | undefined
  done: boolean
}

const chainFault = (walk: Walk, bytes: Bytes, start: number): string | undefined => {
  const { view } = bytes
  const isFirst = walk.offset === SEGMENT_HEADER_BYTES
  const kind = frameKindOf(view, start)
  const expected = kind === frameKind.seal ? walk.nextEventId - 1 : walk.nextEventId
  const eventId = frameEventId(view, start)
  if (eventId !== expected) return `event id ${eventId} where ${expected} belongs`
  if (framePreviousCrc(view, start) !== walk.crc) return "the chain to the frame before is broken"
  if (kind !== frameKind.seal && isFirst !== ((frameFlags(view, start) & flag.segmentFirst) !== 0))
    return "a frame of another place"
  return frameLastId(view, start) < eventId ? "a range that ends before it starts" : undefined
}

/** Moves over one good frame. */
const advance = (walk: Walk, bytes: Bytes, start: number): void => {
  const { view } = bytes
  const before = { offset: walk.offset, lastEventId: walk.nextEventId - 1, crc: walk.crc }
  const continues = (frameFlags(view, start) & flag.batchContinues) !== 0
  walk.openBatch = continues ? (walk.openBatch ?? before) : undefined
  walk.offset += frameBytes(view, start)
  walk.nextEventId = frameLastId(view, start) + 1
  walk.crc = frameCrc(view, start)
}

const finishAtSeal = (walk: Walk, bytes: Bytes, start: number, options: ScanOptions): void => {
  const end = start + frameBytes(bytes.view, start)
  const endOffset = walk.offset + (end - start)
  walk.seal = { body: bytes.buffer.toString("utf8", start + FRAME_HEADER_BYTES, end), bytes: end - start }
  walk.done = true
  if (endOffset < options.endOffset) walk.fault = { offset: endOffset, reason: "bytes behind the seal" }
}

/** Walks the good frames in `bytes`; returns how far it came. */
const walkBuffer = (walk: Walk, bytes: Bytes, end: number, options: ScanOptions): number => {
  let start = 0
  while (start < end && !walk.done) {
    const fault = checkFrame(bytes, start, end)
    if (fault === "short") return start
    const reason = fault ?? chainFault(walk, bytes, start)
    if (reason !== undefined) {
      walk.fault = { offset: walk.offset, reason }
      walk.done = true
    } else if (frameKindOf(bytes.view, start) === frameKind.seal) {
      finishAtSeal(walk, bytes, start, options)
    } else {
      const offset = walk.offset
      const frameEnd = start + frameBytes(bytes.view, start)
      advance(walk, bytes, start)
      if (options.onFrame?.(bytes, start, offset) === "stop") walk.done = true
      start = frameEnd
    }
  }
  return start
}

/** A buffer that surely holds the frame at the front of `bytes`, if its header can be believed. */
const roomFor = (bytes: Bytes, filled: number): number =>
  filled < FRAME_HEADER_BYTES
    ? FRAME_HEADER_BYTES
    : Math.min(frameBytes(bytes.view, 0), FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX)

export const scanFrames = async (file: DiskFile, from: ScanStart, options: ScanOptions): Promise<ScanEnd> => {
  const walk: Walk = {
    offset: from.offset,
    nextEventId: from.eventId,
    crc: from.previousCrc,
    openBatch: undefined,
    seal: undefined,
    fault: undefined,
    done: false
  }
  const chunkBytes = Math.min(
    options.chunkBytes ?? CHUNK_BYTES,
    Math.max(options.endOffset - from.offset, FRAME_HEADER_BYTES)
  )
  let bytes = bytesOf(Buffer.allocUnsafe(chunkBytes))
  let filled = 0
  let readOffset = from.offset
  while (!walk.done) {
    const wanted = Math.min(bytes.buffer.length - filled, options.endOffset - readOffset)
    const read = wanted > 0 ? await file.read(bytes.buffer, filled, wanted, readOffset) : 0
    readOffset += read
    filled += read
    const used = walkBuffer(walk, bytes, filled, options)
    if (walk.done) break
    if (read === 0) {
      if (filled > used) walk.fault = { offset: walk.offset, reason: "the file ends inside a frame" }
      break
    }
    bytes.buffer.copyWithin(0, used, filled)
    filled -= used
    const room = roomFor(bytes, filled)
    if (room > bytes.buffer.length) {
      const larger = bytesOf(Buffer.allocUnsafe(room))
      bytes.buffer.copy(larger.buffer, 0, 0, filled)
      bytes = larger
    }
  }
  const { offset, crc, openBatch, seal, fault } = walk
  return { offset, lastEventId: walk.nextEventId - 1, crc, openBatch, seal, fault }
}

/** Whether an intact frame, of this build or a newer one, starts anywhere in `[offset, endOffset)`: the mark of damage, as opposed to a torn end. */
export const findIntactFrame = async (
  file: DiskFile,
  offset: number,
  options: { readonly endOffset: number }
): Promise<number | undefined> => {
  const overlap = FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX
  const bytes = bytesOf(Buffer.alloc(Math.min(CHUNK_BYTES + overlap, options.endOffset - offset)))
  for (let position = offset; position < options.endOffset; position += CHUNK_BYTES) {
    const filled = await file.read(
      bytes.buffer,
      0,
      Math.min(bytes.buffer.length, options.endOffset - position),
      position
    )
    let start = bytes.buffer.indexOf("RUNE", 0, "latin1")
    while (start >= 0 && start < filled) {
      const fault = checkFrame(bytes, start, filled)
      if (fault === undefined || isUnsupported(fault)) return position + start
      start = bytes.buffer.indexOf("RUNE", start + 1, "latin1")
    }
  }
  return undefined
}

/** A seal is a few numbers and two digests; an unfinished one is no longer than this. */
export const SEAL_BYTES_MAX = 512

/** Whether a file of this size ends in an intact seal, whatever lies before it. */
export const endsInSeal = async (file: DiskFile, size: number): Promise<boolean> => {
  const from = Math.max(size - SEAL_BYTES_MAX, 0)
  const bytes = bytesOf(Buffer.alloc(size - from))
  await file.read(bytes.buffer, 0, bytes.buffer.length, from)
  const { buffer, view } = bytes
  for (let start = buffer.indexOf("RUNE"); start >= 0; start = buffer.indexOf("RUNE", start + 1)) {
    const isIntact = checkFrame(bytes, start, buffer.length) === undefined
    if (isIntact && frameKindOf(view, start) === frameKind.seal && start + frameBytes(view, start) === buffer.length)
      return true
  }
  return false
}
