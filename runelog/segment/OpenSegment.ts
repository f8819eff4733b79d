// Brings one segment from its file into memory: header, sparse index, end. A segment before the last is opened
// when it is first needed, and must then reach to the next one and belong between its neighbors.
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { codeOf } from "../disk/DiskFault.ts"
import { frameEventId, framePreviousCrc } from "../Frame.ts"
import { emptyIndex, type LogState, type SegmentState } from "../LogState.ts"
import { FormatUnsupported, type LogDamaged, SegmentCorrupt } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Quarantine } from "../recovery/Quarantine.ts"
import type { FileCache } from "./FileCache.ts"
import { decodeIndex, type IndexContent } from "./IndexFile.ts"
import { findIntactFrame, type ScanEnd, type ScanFault, scanFrames } from "./Scan.ts"
import { parseSeal } from "./SealFrame.ts"
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, SEGMENT_VERSION } from "./Segment.ts"
import { isPacked } from "./SegmentFile.ts"
import type { SegmentStore } from "./SegmentStore.ts"

export interface OpenLogOptions {
  readonly disk: Disk
  readonly files: FileCache
  readonly store: SegmentStore
  readonly quarantine: Quarantine
  readonly limits: Limits
  /** Told of damage that was found in a log that is open. */
  readonly onDamage: (damage: LogDamaged) => void
}

/** A segment of which only the name of its file is known. */
export const unopened = (firstEventId: number): SegmentState => ({
  firstEventId,
  previousHeadCrc: 0,
  headerCrc: 0,
  headCrc: undefined,
  linked: false,
  followed: false,
  fault: undefined,
  index: emptyIndex(),
  indexDueId: 0,
  indexDueBytes: 0,
  bytes: 0,
  durableBytes: 0,
  writtenBytes: 0,
  created: true,
  unsynced: false,
  entryUnsynced: false,
  thinnable: true,
  closing: false,
  seal: undefined,
  sealBytes: 0,
  indexedEntries: 0,
  indexedBytes: 0
})

const isOpen = (segment: SegmentState): boolean => segment.bytes > 0

/** Uses a segment's file; a file that is gone is damage like any other. */
export const useSegmentFile = <A>(
  options: OpenLogOptions,
  log: string,
  path: string,
  body: (file: DiskFile) => Promise<A>
): Promise<A> =>
  options.files.use(path, body).catch((error) => {
    if (codeOf(error) !== "ENOENT") throw error
    throw new SegmentCorrupt({ log, file: path, offset: 0, reason: "the file is missing" })
  })

/** The index file beside a segment, if it is there and intact. */
export const readIndexFile = async (
  { disk, files, store }: OpenLogOptions,
  log: string,
  segment: { readonly firstEventId: number }
): Promise<IndexContent | undefined> => {
  const path = store.indexPath(log, segment)
  if (!(await disk.exists(path))) return undefined
  return files.use(path, async (file) => {
    const buffer = Buffer.alloc(await file.size())
    await file.read(buffer, 0, buffer.length, 0)
    return decodeIndex(buffer)
  })
}

export type OpenedHeader =
  | { readonly _tag: "Opened"; readonly segment: SegmentState }
  | { readonly _tag: "Fault"; readonly reason: string }

export interface SegmentPlace {
  readonly path: string
  readonly log: string
  readonly firstEventId: number
}

/** Reads the header of the file that should be this segment. */
export const openHeader = async (file: DiskFile, { path, log, firstEventId }: SegmentPlace): Promise<OpenedHeader> => {
  const buffer = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const read = await file.read(buffer, 0, SEGMENT_HEADER_BYTES, 0)
  const decoded = decodeSegmentHeader(buffer.subarray(0, read))
  if (decoded._tag === "Version") {
    throw new FormatUnsupported({ file: path, version: decoded.version, supported: SEGMENT_VERSION })
  }
  if (decoded._tag === "Fault") return decoded
  const { header, crc } = decoded
  if (header.log !== log) return { _tag: "Fault", reason: `the segment belongs to log "${header.log}"` }
  if (header.firstEventId !== firstEventId) {
    return { _tag: "Fault", reason: `the segment starts at event ${header.firstEventId}, not ${firstEventId}` }
  }
  const { previousHeadCrc } = header
  if (firstEventId === 1 && previousHeadCrc !== 0) {
    return { _tag: "Fault", reason: "the first segment claims to continue another" }
  }
  return { _tag: "Opened", segment: { ...unopened(firstEventId), previousHeadCrc, headerCrc: crc } }
}

/** Finds the end of a segment, reading from its last index entry on; from the start when that entry does not hold. */
export const scanSegment = async (
  file: DiskFile,
  segment: SegmentState,
  size: number,
  known: { readonly hint: IndexContent | undefined; readonly limits: Limits }
): Promise<ScanEnd> => {
  const { hint } = known
  const entries = hint === undefined ? 0 : hint.index.offsets.findLastIndex((offset) => offset < size) + 1
  segment.indexedBytes = hint?.durableBytes ?? 0
  if (hint !== undefined && entries > 1) {
    const { ids, offsets, crcs } = hint.index
    segment.index = { ids: ids.slice(0, entries), offsets: offsets.slice(0, entries), crcs: crcs.slice(0, entries) }
    segment.indexedEntries = entries
    const start = { offset: offsets[entries - 1]!, eventId: ids[entries - 1]!, previousCrc: crcs[entries - 1]! }
    const end = await scanFrames(file, start, { endOffset: size })
    if (end.offset > start.offset) return end
  }
  segment.indexedEntries = 0
  return indexSegment(file, segment, size, known.limits)
}

/** Reads a whole segment and gives it a fresh index of its good frames. */
export const indexSegment = async (
  file: DiskFile,
  segment: SegmentState,
  endOffset: number,
  limits: Limits
): Promise<ScanEnd> => {
  const index = emptyIndex()
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  const end = await scanFrames(file, start, { endOffset, onFrame: sparseIndexer(index, limits) })
  segment.index = index
  segment.indexDueId = 0
  return end
}

/** Adds to a sparse index while frames go by. */
export const sparseIndexer =
  ({ ids, offsets, crcs }: SegmentState["index"], limits: Limits) =>
  (bytes: { readonly view: DataView }, start: number, offset: number): undefined => {
    const eventId = frameEventId(bytes.view, start)
    const last = ids.length - 1
    const isDue =
      last < 0 || eventId - ids[last]! >= limits.indexEveryFrames || offset - offsets[last]! >= limits.indexEveryBytes
    if (!isDue) return
    ids.push(eventId)
    offsets.push(offset)
    crcs.push(framePreviousCrc(bytes.view, start))
  }

/** Takes over where the good frames of a segment end; of a batch that was cut, none count. Returns its head checksum. */
export const adoptSegmentEnd = (segment: SegmentState, end: ScanEnd): number => {
  const { offset, crc } = end.openBatch ?? end
  segment.bytes = offset
  segment.durableBytes = offset
  segment.writtenBytes = offset
  segment.seal = end.seal === undefined ? undefined : parseSeal(end.seal.body)
  segment.sealBytes = segment.seal === undefined ? 0 : end.seal!.bytes
  // A seal that a killed process left may be in memory only; what follows must not build on it before it is synced.
  const mayBeUnsynced = segment.sealBytes > 0 && segment.indexedBytes < offset + segment.sealBytes
  segment.unsynced = mayBeUnsynced
  segment.entryUnsynced = mayBeUnsynced
  // A thinned segment ends in another checksum than the one its successor is chained to.
  const headCrc = segment.seal?.headCrc ?? crc
  segment.headCrc = headCrc
  return headCrc
}

/** Opens a segment before the last, which `openLog` left alone. Of one that is not whole, the good frames are left. */
export const loadClosedSegment = async (options: OpenLogOptions, log: LogState, at: number): Promise<SegmentState> => {
  const known = log.segments[at]!
  if (!isOpen(known)) {
    const opened = await openClosed(options, log, at)
    // Another reader may have been faster; there is one state per segment.
    if (log.segments[at] === known) log.segments[at] = opened
  }
  await checkLink(options, log, at)
  return log.segments[at]!
}

const openClosed = (options: OpenLogOptions, log: LogState, at: number): Promise<SegmentState> => {
  const { firstEventId } = log.segments[at]!
  const path = options.store.segmentPath(log.name, { firstEventId })
  const lastEventId = log.segments[at + 1]!.firstEventId - 1
  return useSegmentFile(options, log.name, path, async (file) => {
    const opened = await openHeader(file, { path, log: log.name, firstEventId })
    if (opened._tag === "Fault") throw corrupt(log, path, { offset: 0, reason: opened.reason })
    const hint = await readIndexFile(options, log.name, { firstEventId })
    const size = await file.size()
    const end = await scanSegment(file, opened.segment, size, { hint, limits: options.limits })
    const fault = await closedFault(file, end, { size, lastEventId, promisedBytes: hint?.durableBytes ?? 0 })
    adoptSegmentEnd(opened.segment, end)
    if (fault !== undefined) opened.segment.fault = { ...fault, lastEventId: (end.openBatch ?? end).lastEventId }
    return opened.segment
  })
}

const corrupt = (log: LogState, file: string, fault: ScanFault): SegmentCorrupt =>
  new SegmentCorrupt({ log: log.name, file, ...fault })

/** What is wrong with a segment that must end with `lastEventId`. A seal that was cut short while it was written is not. */
export const closedFault = async (
  file: DiskFile,
  end: ScanEnd,
  place: { readonly size: number; readonly lastEventId: number; readonly promisedBytes: number }
): Promise<ScanFault | undefined> => {
  const { size, lastEventId, promisedBytes } = place
  if (end.lastEventId !== lastEventId) {
    const missing = { offset: end.offset, reason: `events ${end.lastEventId + 1} to ${lastEventId} are missing` }
    return end.fault ?? missing
  }
  if (end.openBatch !== undefined) return { offset: end.openBatch.offset, reason: "the segment ends inside a batch" }
  if (end.seal !== undefined) return end.fault ?? sealFault(end)
  if (promisedBytes > end.offset) return end.fault ?? { offset: end.offset, reason: "the seal is missing" }
  if (end.fault === undefined || isPacked(file)) return end.fault
  const intact = await findIntactFrame(file, end.fault.offset, { endOffset: size })
  return intact === undefined ? undefined : end.fault
}

/** A seal whose bytes are intact and that says nothing this version understands. */
export const sealFault = (end: ScanEnd): ScanFault | undefined =>
  end.seal === undefined || parseSeal(end.seal.body) !== undefined
    ? undefined
    : { offset: end.offset, reason: "the seal cannot be read" }

/**
 * A whole segment of another life of the same log passes every check of its own. Its neighbors give it away: the
 * one before, when that is open; else the header of the one behind.
 */
export const checkLink = async (options: OpenLogOptions, log: LogState, at: number): Promise<void> => {
  const segment = log.segments[at]!
  if (segment.linked) return
  const before = log.segments[at - 1]
  const path = options.store.segmentPath(log.name, segment)
  if (before === undefined || !isOpen(before) || before.fault !== undefined) {
    if (segment.followed || segment.fault !== undefined) return
    const expected = await expectedHeadCrc(options, log, at + 1)
    segment.followed = expected === undefined || expected === segment.headCrc
    if (segment.followed) return
    throw corrupt(log, path, { offset: segment.bytes, reason: "the next segment continues another one" })
  }
  if (before.headCrc !== segment.previousHeadCrc) {
    throw corrupt(log, path, { offset: 0, reason: "the segment does not continue the one before it" })
  }
  segment.linked = true
}

/** What the header of a segment says the one before it ends in; unknown when there is none that can be read. */
const expectedHeadCrc = async (options: OpenLogOptions, log: LogState, at: number): Promise<number | undefined> => {
  const next = log.segments[at]
  if (next === undefined || isOpen(next)) return next?.previousHeadCrc
  const path = options.store.segmentPath(log.name, next)
  try {
    const opened = await options.files.use(path, (file) => openHeader(file, { ...next, path, log: log.name }))
    return opened._tag === "Opened" ? opened.segment.previousHeadCrc : undefined
  } catch (error) {
    // Whoever reads on to that segment is told what is wrong with it.
    if (error instanceof FormatUnsupported || codeOf(error) === "ENOENT") return undefined
    throw error
  }
}
