// Reads one segment from its first byte to its last: header, frames, chain, order, batch borders, seal, digest and the
// index beside it. One buffer is held at a time.
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { type Bytes, frameCrc, frameEventId, frameKind, frameKindOf, frameLastId, framePreviousCrc } from "../Frame.ts"
import { decodeIndex, type IndexContent } from "../segment/IndexFile.ts"
import { findIntactFrame, type ScanEnd, type ScanFault, SEAL_BYTES_MAX, scanFrames } from "../segment/Scan.ts"
import { parseSeal, type Seal } from "../segment/SealFrame.ts"
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES } from "../segment/Segment.ts"
import { segmentDigest } from "../segment/SegmentDigest.ts"
import { isPacked, SegmentFile } from "../segment/SegmentFile.ts"
import type { Findings } from "./VerifyReport.ts"

export interface SegmentPlace {
  readonly disk: Disk
  readonly log: string
  readonly path: string
  readonly indexPath: string | undefined
  readonly firstEventId: number
  /** The event that must be its last; unknown for the last segment. */
  readonly lastEventId: number | undefined
  /** The first event of the log that the journal holds; what is unsealed from there on is written again from it. */
  readonly journalFirstId: number
  readonly before: SegmentEnd | undefined
  /** Looks at every event. */
  readonly inspect: ((bytes: Bytes, at: number, offset: number) => void) | undefined
}

/** What the next segment, and the journal, must continue. */
export interface SegmentEnd {
  readonly lastEventId: number
  /** Checksum of the last frame as it was appended. */
  readonly headCrc: number
  readonly seal: Seal | undefined
  readonly path: string
  /** Where its frames end. */
  readonly offset: number
  /** Checksum of the frame before the journal's first, as it was appended, if it is in here. */
  readonly borderCrc: number | undefined
}

/** Verifies a segment; returns where it ends, unless it is too damaged to say. */
export const verifySegment = async (findings: Findings, place: SegmentPlace): Promise<SegmentEnd | undefined> => {
  const file = await SegmentFile.open(place.disk, place.path, "read")
  try {
    const size = await file.size()
    findings.segments += 1
    findings.bytes += size
    const headerCrc = await verifyHeader(findings, place, file)
    return headerCrc === undefined ? undefined : await verifyFrames(findings, place, { file, size, headerCrc })
  } finally {
    await file.close()
  }
}

const isCovered = ({ firstEventId, journalFirstId }: SegmentPlace): boolean => firstEventId >= journalFirstId

/** A fault, or no more than a note where the journal has what is lost. */
const report = (findings: Findings, place: SegmentPlace, fault: ScanFault, covered: boolean): undefined => {
  const { log, path } = place
  if (!covered) return findings.problem({ file: path, log, ...fault })
  const text = `the journal has what is at byte ${fault.offset} and behind (${fault.reason})`
  return findings.note({ file: path, log, text })
}

/** Returns the checksum that the first frame is chained to. */
const verifyHeader = async (findings: Findings, place: SegmentPlace, file: DiskFile): Promise<number | undefined> => {
  const { before, firstEventId, log } = place
  const buffer = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const read = await file.read(buffer, 0, SEGMENT_HEADER_BYTES, 0)
  const decoded = decodeSegmentHeader(buffer.subarray(0, read))
  const fail = (reason: string): undefined => report(findings, place, { offset: 0, reason }, isCovered(place))
  if (decoded._tag === "Version") return fail(`format version ${decoded.version} is not known`)
  if (decoded._tag === "Fault") return fail(decoded.reason)
  const { header, crc } = decoded
  if (header.log !== log) return fail(`the segment belongs to log "${header.log}"`)
  if (header.firstEventId !== firstEventId) return fail(`the segment starts at event ${header.firstEventId}`)
  const expected = firstEventId === 1 ? 0 : before?.headCrc
  if (expected !== undefined && header.previousHeadCrc !== expected) {
    return fail("the segment does not continue the one before it")
  }
  return crc
}

interface Opened {
  readonly file: DiskFile
  readonly size: number
  readonly headerCrc: number
}

interface Walked {
  frames: number
  isThinned: boolean
  /** Checksum of the frame before the journal's first. */
  borderCrc: number | undefined
  /** Entries of the index that were met. */
  indexEntries: number
}

const verifyFrames = async (
  findings: Findings,
  place: SegmentPlace,
  opened: Opened
): Promise<SegmentEnd | undefined> => {
  const { file, headerCrc, size } = opened
  const index = await readIndex(findings, place)
  const walked: Walked = { frames: 0, isThinned: false, borderCrc: undefined, indexEntries: 0 }
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: place.firstEventId, previousCrc: headerCrc }
  const end = await scanFrames(file, start, {
    endOffset: size,
    onFrame: (bytes, at, offset) => walkFrame(findings, place, { walked, index, bytes, at, offset })
  })
  const isSound = await verifyEnd(findings, place, { ...opened, end, index })
  verifyIndex(findings, place, { end, index, walked })
  if (end.seal !== undefined) return verifySeal(findings, place, { ...opened, end, walked })
  if (!isSound) return undefined
  const good = end.openBatch ?? end
  const { crc: headCrc, lastEventId, offset } = good
  return { lastEventId, headCrc, seal: undefined, path: place.path, offset, borderCrc: walked.borderCrc }
}

interface Step {
  readonly walked: Walked
  readonly index: IndexContent | undefined
  readonly bytes: Bytes
  readonly at: number
  readonly offset: number
}

const walkFrame = (findings: Findings, place: SegmentPlace, { walked, index, bytes, at, offset }: Step): undefined => {
  const { view } = bytes
  const eventId = frameEventId(view, at)
  const lastEventId = frameLastId(view, at)
  walked.frames += 1
  place.inspect?.(bytes, at, offset)
  if (frameKindOf(view, at) === frameKind.thinned) {
    walked.isThinned = true
    findings.thinnedEvents += lastEventId - eventId + 1
  } else {
    findings.entries += 1
  }
  if (lastEventId === place.journalFirstId - 1) walked.borderCrc = frameCrc(view, at)
  const entry = walked.indexEntries
  const isIndexed =
    index?.index.offsets[entry] === offset &&
    index.index.ids[entry] === eventId &&
    index.index.crcs[entry] === framePreviousCrc(view, at)
  if (isIndexed) walked.indexEntries += 1
}

interface FoundEnd extends Opened {
  readonly end: ScanEnd
  readonly index: IndexContent | undefined
}

/** Whether the frames end where and how they must. */
const verifyEnd = async (findings: Findings, place: SegmentPlace, found: FoundEnd): Promise<boolean> => {
  const { end } = found
  const fault = endFault(place, end, found.index)
  if (fault === undefined) return true
  // What is missing behind a seal may be in the journal; what is wrong before it is not.
  const isBehind = end.seal === undefined || fault.offset === end.offset
  const covered = isBehind && (end.openBatch ?? end).lastEventId >= place.journalFirstId - 1
  if (!covered && (await isUnfinishedSeal(place, found))) {
    findings.note({ file: place.path, log: place.log, text: `a seal at byte ${fault.offset} was never finished` })
    return true
  }
  report(findings, place, fault, covered)
  return covered
}

/**
 * Whether what lies behind the good frames can be the seal that was being written when the machine stopped. The next
 * start cuts it off and keeps a copy.
 */
const isUnfinishedSeal = async (place: SegmentPlace, { end, file, index, size }: FoundEnd): Promise<boolean> => {
  if (end.fault === undefined || end.seal !== undefined || end.openBatch !== undefined || isPacked(file)) return false
  const isComplete = place.lastEventId === undefined || end.lastEventId === place.lastEventId
  const isPromised = index !== undefined && index.durableBytes > end.offset
  if (!isComplete || isPromised || size - end.offset > SEAL_BYTES_MAX) return false
  return (await findIntactFrame(file, end.offset, { endOffset: size })) === undefined
}

const endFault = (place: SegmentPlace, end: ScanEnd, index: IndexContent | undefined): ScanFault | undefined => {
  const good = end.openBatch ?? end
  if (end.fault !== undefined) return end.fault
  if (end.openBatch !== undefined) return { offset: good.offset, reason: "the file ends inside a batch" }
  const { lastEventId } = place
  if (lastEventId !== undefined && end.lastEventId < lastEventId) {
    return { offset: end.offset, reason: `events ${end.lastEventId + 1} to ${lastEventId} are missing` }
  }
  if (lastEventId !== undefined && end.lastEventId > lastEventId) {
    return { offset: end.offset, reason: `events from ${lastEventId + 1} on are also in the next segment` }
  }
  const bytes = end.offset + (end.seal?.bytes ?? 0)
  const promised = index?.durableBytes ?? 0
  return promised > bytes ? { offset: bytes, reason: `bytes up to ${promised} are missing` } : undefined
}

const verifySeal = async (
  findings: Findings,
  place: SegmentPlace,
  found: Opened & { readonly end: ScanEnd; readonly walked: Walked }
): Promise<SegmentEnd | undefined> => {
  const { end, file, walked } = found
  const { before, log, path } = place
  const problem = (reason: string): undefined => findings.problem({ file: path, log, offset: end.offset, reason })
  const seal = parseSeal(end.seal!.body)
  if (seal === undefined) return problem("the seal cannot be read")
  if (seal.frames !== walked.frames) problem(`${walked.frames} frames where the seal counts ${seal.frames}`)
  // What was thinned has a chain of its own; what was not ends in the checksum it was appended with.
  if (!walked.isThinned && seal.headCrc !== end.crc) problem("the seal names another last frame")
  const isChained = place.firstEventId === 1 ? seal.previousSha256 === "" : seal.previousSha256 !== ""
  const previous = before?.seal?.sha256 ?? seal.previousSha256
  if (!isChained || seal.previousSha256 !== previous) problem("the seal does not continue the one before it")
  if (before !== undefined && before.seal === undefined) {
    findings.note({ file: path, log, text: "the segment before it lost its seal; it is made again" })
  }
  if ((await segmentDigest(file, end.offset, seal.previousSha256)) === seal.sha256) findings.sealed += 1
  else problem("the digest does not match")
  const isBorder = end.lastEventId === place.journalFirstId - 1
  const inner = walked.isThinned ? undefined : walked.borderCrc
  return {
    lastEventId: end.lastEventId,
    headCrc: seal.headCrc,
    seal,
    path,
    offset: end.offset,
    borderCrc: isBorder ? seal.headCrc : inner
  }
}

/** Indexes are small; a file larger than this is none. */
const INDEX_BYTES_MAX = 64 * 1024 * 1024

const readIndex = async (
  findings: Findings,
  { disk, indexPath, log }: SegmentPlace
): Promise<IndexContent | undefined> => {
  if (indexPath === undefined) return undefined
  const file = await disk.open(indexPath, "read")
  try {
    const size = await file.size()
    findings.bytes += size
    const buffer = Buffer.alloc(Math.min(size, INDEX_BYTES_MAX))
    await file.read(buffer, 0, buffer.length, 0)
    const index = decodeIndex(buffer)
    if (index === undefined) findings.note({ file: indexPath, log, text: "the index is unfinished and not used" })
    return index
  } finally {
    await file.close()
  }
}

/** An index that points elsewhere is of another state of the segment: a power cut can bring one back. */
const verifyIndex = (
  findings: Findings,
  { indexPath, log }: SegmentPlace,
  found: { readonly end: ScanEnd; readonly index: IndexContent | undefined; readonly walked: Walked }
): void => {
  const entry = found.walked.indexEntries
  const offset = found.index?.index.offsets[entry]
  // What lies behind the good frames is told of the segment itself.
  if (offset === undefined || offset >= found.end.offset) return
  findings.note({ file: indexPath!, log, text: `entry ${entry} does not point at the frame it names; it is not used` })
}
