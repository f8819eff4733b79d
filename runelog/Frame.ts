// The frame: one entry of one log as bytes (FORMAT.md, "Frame"). Owns the 32-byte header, its checksum
// and the chain to the frame before. Encoding and walking are plain loops over one buffer: they run
// for every rune that is written, read back or sent to a client.
import { crc32cOf } from "./Crc32c.ts"
import { getU64, setU64 } from "./U64.ts"

export const FRAME_MAGIC = 0x454e5552 // "RUNE"
export const FRAME_VERSION = 1
export const FRAME_HEADER_BYTES = 32
/** The most a body can have in this format; what may be appended is a limit of the writer's, below this. */
export const FRAME_BODY_BYTES_MAX = 16 * 1024 * 1024

/** What a frame holds: a caller's entry, a marker for a thinned range, or the seal of its segment. */
export const frameKind = { entry: 0, thinned: 1, seal: 2 } as const

/** Header flags. The two lowest bits are the visibility. */
export const flag = {
  visibilityMask: 0b0000_0011,
  /** The atomic batch goes on with the next frame. */
  batchContinues: 0b0000_0100,
  /** The first frame of its segment: its chain starts at the segment's header. */
  segmentFirst: 0b0000_1000,
  /** Worth keeping only until a later frame of the same stream supersedes it. */
  delta: 0b0001_0000,
  /** Supersedes the deltas of its stream before it. */
  supersedes: 0b0010_0000
} as const

const offset = {
  magic: 0,
  crc: 4,
  bodyBytes: 8,
  version: 12,
  flags: 13,
  kind: 14,
  family: 15,
  stream: 16,
  previousCrc: 20,
  eventId: 24
} as const
/** The checksum covers everything after itself. */
const CRC_FROM = 8

export interface FrameFields {
  readonly flags: number
  readonly kind: number
  readonly family: number
  readonly stream: number
  readonly previousCrc: number
  readonly eventId: number
}

/** A buffer with the view that reads and writes its integers; made once per buffer, never per frame. */
export interface Bytes {
  readonly buffer: Buffer
  readonly view: DataView
}

export const bytesOf = (buffer: Buffer): Bytes => ({
  buffer,
  view: new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
})

/** Writes the header for a body of `bodyBytes` that already lies behind it, all but the chain and the checksum. */
export const putFrameHeader = (
  { view }: Bytes,
  start: number,
  bodyBytes: number,
  fields: Omit<FrameFields, "previousCrc">
): void => {
  view.setUint32(start + offset.magic, FRAME_MAGIC, true)
  view.setUint32(start + offset.bodyBytes, bodyBytes, true)
  // Version, flags, kind and family are four bytes in a row.
  view.setUint32(
    start + offset.version,
    FRAME_VERSION | (fields.flags << 8) | (fields.kind << 16) | (fields.family << 24),
    true
  )
  view.setUint32(start + offset.stream, fields.stream, true)
  setU64(view, start + offset.eventId, fields.eventId)
}

/** Chains a frame whose header lacks nothing else to the one before it; returns its checksum. */
export const chainFrame = (bytes: Bytes, start: number, end: number, previousCrc: number): number => {
  bytes.view.setUint32(start + offset.previousCrc, previousCrc, true)
  const crc = crc32cOf(bytes, start + CRC_FROM, end, 0)
  bytes.view.setUint32(start + offset.crc, crc, true)
  return crc
}

/** Writes the whole header for a body of `bodyBytes` that already lies behind it; returns the frame's checksum. */
export const sealFrame = (bytes: Bytes, start: number, bodyBytes: number, fields: FrameFields): number => {
  putFrameHeader(bytes, start, bodyBytes, fields)
  return chainFrame(bytes, start, start + FRAME_HEADER_BYTES + bodyBytes, fields.previousCrc)
}

export const frameBodyBytes = (view: DataView, start: number): number => view.getUint32(start + offset.bodyBytes, true)
export const frameBytes = (view: DataView, start: number): number => FRAME_HEADER_BYTES + frameBodyBytes(view, start)
export const frameFlags = (view: DataView, start: number): number => view.getUint8(start + offset.flags)
export const frameKindOf = (view: DataView, start: number): number => view.getUint8(start + offset.kind)
export const frameFamily = (view: DataView, start: number): number => view.getUint8(start + offset.family)
export const frameStream = (view: DataView, start: number): number => view.getUint32(start + offset.stream, true)
export const frameCrc = (view: DataView, start: number): number => view.getUint32(start + offset.crc, true)
export const framePreviousCrc = (view: DataView, start: number): number =>
  view.getUint32(start + offset.previousCrc, true)
export const frameEventId = (view: DataView, start: number): number => getU64(view, start + offset.eventId)

/** The last event id a frame stands for: its own, or the end of the range that a thinned marker replaces. */
export const frameLastId = (view: DataView, start: number): number =>
  frameKindOf(view, start) === frameKind.thinned ? getU64(view, start + FRAME_HEADER_BYTES) : frameEventId(view, start)

export const THINNED_BODY_BYTES = 8

/** Writes a marker for the dropped range `[from, to]`; returns its checksum. */
export const sealThinned = (
  bytes: Bytes,
  start: number,
  range: { from: number; to: number; previousCrc: number; flags: number }
): number => {
  setU64(bytes.view, start + FRAME_HEADER_BYTES, range.to)
  return sealFrame(bytes, start, THINNED_BODY_BYTES, {
    flags: range.flags,
    kind: frameKind.thinned,
    family: 0,
    stream: 0,
    previousCrc: range.previousCrc,
    eventId: range.from
  })
}

export type FrameFault =
  | "short"
  | "not a frame"
  | "unknown frame version"
  | "length out of range"
  | "unknown frame kind"
  | "checksum mismatch"

/** Faults of frames whose checksum holds: a newer build wrote them, and they may say anything. */
const unsupported: ReadonlySet<string> = new Set<FrameFault>(["unknown frame version", "unknown frame kind"])

/** Whether what was found wrong means only that this build is too old. */
export const isUnsupported = (reason: string): boolean => unsupported.has(reason)

/**
 * Checks the frame at `start` alone, not its place in a chain. `short` means that the bytes end before the frame does;
 * the rest are faults of the bytes themselves. A version or a kind is unknown only where the checksum holds: bytes that a
 * crash left may look like anything.
 */
export const checkFrame = (bytes: Bytes, start: number, end: number): FrameFault | undefined => {
  if (end - start < FRAME_HEADER_BYTES) return "short"
  const { view } = bytes
  if (view.getUint32(start + offset.magic, true) !== FRAME_MAGIC) return "not a frame"
  const bodyBytes = frameBodyBytes(view, start)
  if (bodyBytes > FRAME_BODY_BYTES_MAX) return "length out of range"
  const frameEnd = start + FRAME_HEADER_BYTES + bodyBytes
  if (frameEnd > end) return "short"
  if (crc32cOf(bytes, start + CRC_FROM, frameEnd, 0) !== frameCrc(view, start)) return "checksum mismatch"
  return unsupportedFault(view, start)
}

/** What this build does not understand about a frame that is intact. */
export const unsupportedFault = (view: DataView, start: number): FrameFault | undefined => {
  if (view.getUint8(start + offset.version) !== FRAME_VERSION) return "unknown frame version"
  const kind = frameKindOf(view, start)
  const isThinnedOtherwise = kind === frameKind.thinned && frameBodyBytes(view, start) !== THINNED_BODY_BYTES
  return kind > frameKind.seal || isThinnedOtherwise ? "unknown frame kind" : undefined
}
