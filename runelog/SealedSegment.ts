// Whether a file is a whole, sealed segment in its place: header, every frame, the chain and the digest, which
// also covers the segment before. What holds here was neither altered nor cut since it was sealed.
import type { DiskFile } from "./Disk.ts"
import { frameKind, frameKindOf } from "./Frame.ts"
import { type ScanEnd, scanFrames } from "./Scan.ts"
import { parseSeal, type Seal } from "./SealFrame.ts"
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, type SegmentHeader } from "./Segment.ts"
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

const headerFault = ({ log, firstEventId, previous }: SegmentPlace, header: SegmentHeader): string | undefined => {
  if (header.log !== log) return `the segment belongs to log "${header.log}"`
  if (header.firstEventId !== firstEventId) {
    return `the segment starts at event ${header.firstEventId}, not ${firstEventId}`
  }
  return header.previousHeadCrc === (previous?.headCrc ?? 0) ? undefined : "the chain to the segment before is broken"
}

export const checkSealedSegment = async (file: DiskFile, size: number, place: SegmentPlace): Promise<SealedCheck> => {
  const buffer = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const read = await file.read(buffer, 0, SEGMENT_HEADER_BYTES, 0)
  const decoded = decodeSegmentHeader(buffer.subarray(0, read))
  if (decoded._tag === "Version") return fault(0, `format version ${decoded.version} is not known`)
  const reason = decoded._tag === "Fault" ? decoded.reason : headerFault(place, decoded.header)
  if (decoded._tag === "Fault" || reason !== undefined) return fault(0, reason ?? "")
  let frames = 0
  let isThinned = false
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: place.firstEventId, previousCrc: decoded.crc }
  const end = await scanFrames(file, start, {
    endOffset: size,
    onFrame: ({ view }, at) => {
      frames += 1
      isThinned ||= frameKindOf(view, at) === frameKind.thinned
      return undefined
    }
  })
  const seal = end.seal === undefined ? undefined : parseSeal(end.seal.body)
  const framesFault = faultOf(end, seal, { frames, isThinned })
  if (framesFault !== undefined || seal === undefined) return fault(end.fault?.offset ?? end.offset, framesFault ?? "")
  if (seal.previousSha256 !== (place.previous?.sha256 ?? "")) {
    return fault(end.offset, "the digest of the segment before is another")
  }
  const sha256 = await segmentDigest(file, end.offset, seal.previousSha256)
  if (sha256 !== seal.sha256) return fault(end.offset, "the digest does not match")
  return { _tag: "Sealed", content: { firstEventId: place.firstEventId, lastEventId: end.lastEventId, seal } }
}

const faultOf = (
  end: ScanEnd,
  seal: Seal | undefined,
  seen: { readonly frames: number; readonly isThinned: boolean }
): string | undefined => {
  if (end.fault !== undefined) return end.fault.reason
  if (end.seal === undefined) return "the segment is not sealed"
  if (seal === undefined) return "the seal cannot be read"
  if (end.openBatch !== undefined) return "the segment ends inside a batch"
  if (seal.frames !== seen.frames) return `${seen.frames} frames where the seal counts ${seal.frames}`
  // What was thinned has a chain of its own; what was not ends in the checksum it was appended with.
  return seen.isThinned || seal.headCrc === end.crc ? undefined : "the seal names another last frame"
}
