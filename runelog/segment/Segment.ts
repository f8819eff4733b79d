// A segment file: a fixed header, then the frames of one log without a hole (FORMAT.md, "Segment").
// Owns the header's bytes and the file names; what follows the header is Frame's.
import { crc32c } from "../Crc32c.ts"
import { bytesOf } from "../Frame.ts"
import { getU64, setU64 } from "../U64.ts"

export const SEGMENT_HEADER_BYTES = 128
export const SEGMENT_VERSION = 1
/** The version in the header of a packed segment, whose frames are in compressed blocks. */
export const PACKED_VERSION = 2
const MAGIC = Buffer.from("ECHSSEG\n", "latin1")
const offset = { crc: 8, version: 12, nameBytes: 14, firstEventId: 16, previousHeadCrc: 24, name: 28 } as const

export interface SegmentHeader {
  readonly log: string
  readonly firstEventId: number
  /** Checksum of the last frame of the segment before, as it was appended; 0 for the first segment. */
  readonly previousHeadCrc: number
}

export interface EncodedSegmentHeader {
  readonly buffer: Buffer
  /** Where the chain of this segment's frames starts. */
  readonly crc: number
}

export const encodeSegmentHeader = (header: SegmentHeader, version = SEGMENT_VERSION): EncodedSegmentHeader => {
  const bytes = bytesOf(Buffer.alloc(SEGMENT_HEADER_BYTES))
  MAGIC.copy(bytes.buffer)
  bytes.view.setUint16(offset.version, version, true)
  bytes.view.setUint8(offset.nameBytes, header.log.length)
  setU64(bytes.view, offset.firstEventId, header.firstEventId)
  bytes.view.setUint32(offset.previousHeadCrc, header.previousHeadCrc, true)
  bytes.buffer.write(header.log, offset.name, "latin1")
  const crc = crc32c(bytes.buffer, offset.version, SEGMENT_HEADER_BYTES, 0)
  bytes.view.setUint32(offset.crc, crc, true)
  return { buffer: bytes.buffer, crc }
}

export type DecodedSegmentHeader =
  | { readonly _tag: "Header"; readonly header: SegmentHeader; readonly crc: number }
  | { readonly _tag: "Fault"; readonly reason: string }
  | { readonly _tag: "Version"; readonly version: number }

export const decodeSegmentHeader = (buffer: Buffer): DecodedSegmentHeader => {
  if (buffer.length < SEGMENT_HEADER_BYTES) return { _tag: "Fault", reason: "the segment header is cut short" }
  if (MAGIC.compare(buffer, 0, MAGIC.length) !== 0) return { _tag: "Fault", reason: "not a segment file" }
  const { view } = bytesOf(buffer)
  const crc = view.getUint32(offset.crc, true)
  const intact = crc32c(buffer, offset.version, SEGMENT_HEADER_BYTES, 0) === crc
  if (!intact) return { _tag: "Fault", reason: "segment header checksum mismatch" }
  const version = view.getUint16(offset.version, true)
  if (version !== SEGMENT_VERSION) return { _tag: "Version", version }
  const header = {
    log: buffer.toString("latin1", offset.name, offset.name + view.getUint8(offset.nameBytes)),
    firstEventId: getU64(view, offset.firstEventId),
    previousHeadCrc: view.getUint32(offset.previousHeadCrc, true)
  }
  return { _tag: "Header", header, crc }
}

const NAME_DIGITS = 16
export const segmentFileName = (firstEventId: number): string =>
  `${String(firstEventId).padStart(NAME_DIGITS, "0")}.seg`
export const indexFileName = (firstEventId: number): string => `${String(firstEventId).padStart(NAME_DIGITS, "0")}.idx`

export const isSegmentPath = (path: string): boolean => path.endsWith(".seg")

export type LogFile =
  | { readonly _tag: "Segment"; readonly firstEventId: number }
  | { readonly _tag: "Index"; readonly firstEventId: number }
  | { readonly _tag: "Leftover" }
  | { readonly _tag: "Foreign" }

/** What a name in a log's directory stands for. Leftovers are the engine's own unfinished files. */
export const parseLogFileName = (name: string): LogFile => {
  const match = /^(\d{16})\.(seg|idx)(\.tmp)?$/.exec(name)
  if (match === null) return { _tag: "Foreign" }
  if (match[3] !== undefined) return { _tag: "Leftover" }
  return { _tag: match[2] === "seg" ? "Segment" : "Index", firstEventId: Number(match[1]) }
}

/** A log's name is also its directory's: nothing that a path could be made of. */
export const isLogName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)
