// Whether a file is a whole, sealed segment in its place: header, every frame, the chain and the digest, which
// also covers the segment before. What holds here was neither altered nor cut since it was sealed.
import type { DiskFile } from "../disk/Disk.ts"
import { frameKind, frameKindOf } from "../Frame.ts"
import { type ScanEnd, scanFrames } from "./Scan.ts"
import { parseSeal, type Seal } from "./SealFrame.ts"
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES } from "./Segment.ts"
import { segmentDigest } from "./SegmentDigest.ts"

export interface SegmentPlace {
  readonly log: string
  readonly firstEventId: number
  /** The seal of the segment before; none for the first. */
  readonly previous: Seal | undefined
}

export interface SealedContent {
  readonly firstEventId: number
  readonly lastEventId: number
  readonly seal: Seal
}

export type SealedCheck =
  | { readonly _tag: "Sealed"; readonly content: SealedContent }
  | { readonly _tag: "Fault"; readonly offset: number; readonly reason: string }

const fault = (offset: number, reason: string): SealedCheck => ({ _tag: "Fault", offset, reason })

type Step<A> = { readonly value: A } | { readonly offset: number; readonly reason: string }

export const checkSealedSegment = async (file: DiskFile, size: number, place: SegmentPlace): Promise<SealedCheck> => {
  const header = await checkHeader(file, place)
  if ("reason" in header) return fault(header.offset, header.reason)
  const frames = await checkFrames(file, size, { firstEventId: place.firstEventId, headerCrc: header.value })
  if ("reason" in frames) return fault(frames.offset, frames.reason)
  const { end, seal } = frames.value
  if (seal.previousSha256 !== (place.previous?.sha256 ?? "")) {
    return fault(end.offset, "the digest of the segment before is another")
  }
  if ((await segmentDigest(file, end.offset, seal.previousSha256)) !== seal.sha256) {
    return fault(end.offset, "the digest does not match")
  }
  return { _tag: "Sealed", content: { firstEventId: place.firstEventId, lastEventId: end.lastEventId, seal } }
}

/** The checksum the frames are chained to. */
const checkHeader = async (file: DiskFile, { firstEventId, log, previous }: SegmentPlace): Promise<Step<number>> => {
  const refuse = (reason: string) => ({ offset: 0, reason })
  const buffer = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const read = await file.read(buffer, 0, SEGMENT_HEADER_BYTES, 0)
  const decoded = decodeSegmentHeader(buffer.subarray(0, read))
  if (decoded._tag === "Version") return refuse(`format version ${decoded.version} is not known`)
  if (decoded._tag === "Fault") return refuse(decoded.reason)
  const { crc, header } = decoded
  if (header.log !== log) return refuse(`the segment belongs to log "${header.log}"`)
  if (header.firstEventId !== firstEventId) {
    return refuse(`the segment starts at event ${header.firstEventId}, not ${firstEventId}`)
  }
  return header.previousHeadCrc === (previous?.headCrc ?? 0)
    ? { value: crc }
    : refuse("the chain to the segment before is broken")
}

const checkFrames = async (
  file: DiskFile,
  size: number,
  from: { readonly firstEventId: number; readonly headerCrc: number }
): Promise<Step<{ readonly end: ScanEnd; readonly seal: Seal }>> => {
  let frames = 0
  let isThinned = false
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: from.firstEventId, previousCrc: from.headerCrc }
  const end = await scanFrames(file, start, {
    endOffset: size,
    onFrame: ({ view }, at) => {
      frames += 1
      isThinned ||= frameKindOf(view, at) === frameKind.thinned
      return undefined
    }
  })
  const refuse = (reason: string) => ({ offset: end.offset, reason })
  if (end.fault !== undefined) return end.fault
  if (end.seal === undefined) return refuse("the segment is not sealed")
  const seal = parseSeal(end.seal.body)
  if (seal === undefined) return refuse("the seal cannot be read")
  if (end.openBatch !== undefined) return refuse("the segment ends inside a batch")
  if (seal.frames !== frames) return refuse(`${frames} frames where the seal counts ${seal.frames}`)
  // What was thinned has a chain of its own; what was not ends in the checksum it was appended with.
  if (!isThinned && seal.headCrc !== end.crc) return refuse("the seal names another last frame")
  return { value: { end, seal } }
}
