// Brings one log from its directory into memory: which segments it has, where it ends, and whether that end
// can be trusted. Only the part behind the last index entry is read. What the journal still holds is
// cut away here, to be written again from there; any other bad end is judged: torn (cut, a copy kept) or
// damaged (read-only from there on).
import type { Disk, DiskFile } from "./Disk.ts"
import { ForeignFile, FormatUnsupported, SegmentCorrupt } from "./Errors.ts"
import type { FileCache } from "./FileCache.ts"
import { frameEventId } from "./Frame.ts"
import { type IndexContent, decodeIndex } from "./IndexFile.ts"
import { type LogState, type SegmentState, emptyLog } from "./LogState.ts"
import type { Quarantine } from "./Quarantine.ts"
import { type ScanEnd, findIntactFrame, scanFrames } from "./Scan.ts"
import { parseSeal } from "./SealFrame.ts"
import { SEGMENT_HEADER_BYTES, SEGMENT_VERSION, decodeSegmentHeader, parseLogFileName } from "./Segment.ts"
import type { SegmentStore } from "./SegmentStore.ts"

export interface OpenLogOptions {
  readonly disk: Disk
  readonly files: FileCache
  readonly store: SegmentStore
  readonly quarantine: Quarantine
}

export interface OpenLogRequest {
  readonly log: string
  /** The first event of this log that the journal holds, if it holds any. */
  readonly journalFirstId: number | undefined
}

/** The log as its directory has it; an empty state when there is nothing. */
export const openLog = async (options: OpenLogOptions, request: OpenLogRequest): Promise<LogState> => {
  const firstIds = await listSegments(options, request.log)
  const log = emptyLog(request.log)
  log.damage = await options.quarantine.recall(request.log)
  for (const firstEventId of firstIds) log.segments.push(unopened(firstEventId))
  const gap = log.segments[0]
  if (gap !== undefined && gap.firstEventId !== 1) {
    return damaged(options, log, { segment: gap, offset: 0, reason: `events 1 to ${gap.firstEventId - 1} are missing` })
  }
  await settleEnd(options, log, request.journalFirstId)
  log.durableSegments = log.segments.length
  log.nextEventId = log.durableEventId + 1
  log.writtenEventId = log.durableEventId
  log.crc = log.durableCrc
  return log
}

const listSegments = async (options: OpenLogOptions, log: string): Promise<ReadonlyArray<number>> => {
  const directory = options.store.logDirectory(log)
  if (!(await options.disk.exists(directory))) return []
  const firstIds: Array<number> = []
  for (const entry of await options.disk.list(directory)) {
    const parsed = entry.kind === "file" ? parseLogFileName(entry.name) : ({ _tag: "Foreign" } as const)
    if (parsed._tag === "Foreign") throw new ForeignFile({ file: `${directory}/${entry.name}` })
    if (parsed._tag === "Leftover") await options.disk.remove(`${directory}/${entry.name}`)
    if (parsed._tag === "Segment") firstIds.push(parsed.firstEventId)
  }
  return firstIds
}

const unopened = (firstEventId: number): SegmentState => ({
  firstEventId,
  previousHeadCrc: 0,
  headerCrc: 0,
  index: { ids: [], offsets: [] },
  bytes: 0,
  durableBytes: 0,
  writtenBytes: 0,
  created: true,
  unsynced: false,
  entryUnsynced: false,
  thinnable: true,
  closing: false,
  seal: undefined,
  indexedEntries: 0,
  indexedBytes: 0
})

/** Finds the end of the log, dropping what the journal will bring again. */
const settleEnd = async (options: OpenLogOptions, log: LogState, journalFirstId: number | undefined): Promise<void> => {
  while (log.segments.length > 0) {
    const at = log.segments.length - 1
    const end = await loadSegment(options, log, at, journalFirstId ?? Number.POSITIVE_INFINITY)
    const segment = log.segments[at]!
    if (end._tag === "Dropped") {
      await dropSegment(options, log, segment)
      continue
    }
    if (end._tag === "Damaged") {
      log.damage = await options.quarantine.record({ log: log.name, file: options.store.segmentPath(log.name, segment), ...end.fault })
    }
    return
  }
}

type LoadedEnd =
  | { readonly _tag: "Good" }
  /** Nothing in the file was ever acknowledged, or the journal has all of it. */
  | { readonly _tag: "Dropped" }
  | { readonly _tag: "Damaged"; readonly fault: { readonly offset: number; readonly reason: string } }

/** Opens one segment and reads from its last index entry to its end. */
const loadSegment = async (options: OpenLogOptions, log: LogState, at: number, journalFirstId: number): Promise<LoadedEnd> => {
  const path = options.store.segmentPath(log.name, log.segments[at]!)
  const hint = await readIndex(options, log.name, log.segments[at]!)
  return options.files.use(path, async (file) => {
    const size = await file.size()
    const reason = await openHeader(file, path, log, at)
    const judged = { file, log, at, size, hint, path, journalFirstId }
    return reason === undefined ? settleFrames(options, judged) : judgeHeader(options, { ...judged, reason })
  })
}

const readIndex = async (options: OpenLogOptions, log: string, segment: SegmentState): Promise<IndexContent | undefined> => {
  const path = options.store.indexPath(log, segment)
  if (!(await options.disk.exists(path))) return undefined
  return options.files.use(path, async (file) => {
    const buffer = Buffer.alloc(await file.size())
    await file.read(buffer, 0, buffer.length, 0)
    return decodeIndex(buffer)
  })
}

/** Reads the header into the segment's state; returns what is wrong with it, if anything. */
const openHeader = async (file: DiskFile, path: string, log: LogState, at: number): Promise<string | undefined> => {
  const buffer = Buffer.alloc(SEGMENT_HEADER_BYTES)
  const read = await file.read(buffer, 0, SEGMENT_HEADER_BYTES, 0)
  const decoded = decodeSegmentHeader(buffer.subarray(0, read))
  if (decoded._tag === "Version") throw new FormatUnsupported({ file: path, version: decoded.version, supported: SEGMENT_VERSION })
  if (decoded._tag === "Fault") return decoded.reason
  const { header, crc } = decoded
  const { firstEventId } = log.segments[at]!
  if (header.log !== log.name) return `the segment belongs to log "${header.log}"`
  if (header.firstEventId !== firstEventId) return `the segment starts at event ${header.firstEventId}, not ${firstEventId}`
  log.segments[at] = { ...unopened(firstEventId), previousHeadCrc: header.previousHeadCrc, headerCrc: crc }
  return undefined
}

interface Judged {
  readonly file: DiskFile
  readonly log: LogState
  readonly at: number
  readonly size: number
  readonly hint: IndexContent | undefined
  readonly path: string
  readonly journalFirstId: number
}

/** A bad header: a segment that was being created when the machine stopped, or damage. */
const judgeHeader = async (options: OpenLogOptions, judged: Judged & { readonly reason: string }): Promise<LoadedEnd> => {
  const { file, hint, size, reason } = judged
  if (judged.log.segments[judged.at]!.firstEventId >= judged.journalFirstId) return { _tag: "Dropped" }
  const frameAt = size > 0 ? await findIntactFrame(file, 0, { endOffset: size }) : undefined
  if (hint !== undefined || frameAt !== undefined) return { _tag: "Damaged", fault: { offset: 0, reason } }
  if (size > 0) await options.quarantine.keep(file, cutName(judged), 0, size)
  return { _tag: "Dropped" }
}

const cutName = ({ log, path }: { readonly log: LogState; readonly path: string }): string =>
  `${log.name}-${path.slice(path.lastIndexOf("/") + 1)}`

const settleFrames = async (options: OpenLogOptions, judged: Judged): Promise<LoadedEnd> => {
  const { file, log, size, hint, journalFirstId } = judged
  const segment = log.segments[judged.at]!
  const end = await scanFrom(file, segment, size, hint)
  adoptEnd(log, segment, end)
  if (segment.seal === undefined) {
    if (segment.firstEventId >= journalFirstId) return { _tag: "Dropped" }
    if (end.lastEventId >= journalFirstId - 1) return cutBehind(judged, segment)
  }
  if (end.fault === undefined && end.openBatch === undefined) return segment.seal !== undefined ? { _tag: "Good" } : shortened(hint, end)
  const torn = end.openBatch ?? end
  const promised = hint !== undefined && hint.durableBytes > torn.offset
  const intact = end.fault === undefined ? undefined : await findIntactFrame(file, end.fault.offset, { endOffset: size })
  if (promised || intact !== undefined || segment.seal !== undefined) {
    return { _tag: "Damaged", fault: end.fault ?? { offset: torn.offset, reason: "the file ends inside a batch" } }
  }
  await cutTornEnd(options, judged, torn)
  return segment.firstEventId > log.durableEventId ? { _tag: "Dropped" } : { _tag: "Good" }
}

const shortened = (hint: IndexContent | undefined, end: ScanEnd): LoadedEnd =>
  hint !== undefined && hint.durableBytes > end.offset
    ? { _tag: "Damaged", fault: { offset: end.offset, reason: `acknowledged bytes up to ${hint.durableBytes} are missing` } }
    : { _tag: "Good" }

/** Scans from the last index entry that the file still reaches; from the start when that entry does not hold. */
const scanFrom = async (file: DiskFile, segment: SegmentState, size: number, hint: IndexContent | undefined): Promise<ScanEnd> => {
  const entries = hint === undefined ? 0 : hint.index.offsets.findLastIndex((offset) => offset < size) + 1
  if (hint !== undefined && entries > 1) {
    segment.index = { ids: hint.index.ids.slice(0, entries), offsets: hint.index.offsets.slice(0, entries) }
    segment.indexedEntries = entries
    segment.indexedBytes = hint.durableBytes
    const start = { offset: segment.index.offsets[entries - 1]!, eventId: segment.index.ids[entries - 1]!, previousCrc: undefined }
    const end = await scanFrames(file, start, { endOffset: size })
    if (end.offset > start.offset) return end
  }
  segment.index = { ids: [], offsets: [] }
  segment.indexedEntries = 0
  segment.indexedBytes = hint?.durableBytes ?? 0
  return scanFrames(
    file,
    { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc },
    { endOffset: size, onFrame: sparseIndexer(segment) }
  )
}

const INDEX_EVERY_BYTES = 64 * 1024

/** Rebuilds the sparse index while frames go by. */
export const sparseIndexer =
  (segment: SegmentState) =>
  (bytes: { readonly view: DataView }, start: number, offset: number): undefined => {
    const { ids, offsets } = segment.index
    if (offsets.length > 0 && offset - offsets[offsets.length - 1]! < INDEX_EVERY_BYTES) return
    ids.push(frameEventId(bytes.view, start))
    offsets.push(offset)
  }

const adoptEnd = (log: LogState, segment: SegmentState, end: ScanEnd): void => {
  const torn = end.openBatch ?? end
  adoptSegmentEnd(segment, end)
  log.durableEventId = torn.lastEventId
  // A thinned segment ends in another checksum than the one its successor is chained to.
  log.durableCrc = segment.seal?.headCrc ?? torn.crc ?? segment.headerCrc
}

const adoptSegmentEnd = (segment: SegmentState, end: ScanEnd): void => {
  const { offset } = end.openBatch ?? end
  segment.bytes = offset
  segment.durableBytes = offset
  segment.writtenBytes = offset
  segment.seal = end.seal === undefined ? undefined : parseSeal(end.seal)
}

/** Opens a segment before the last, which `openLog` left alone; rejects when it does not reach to the next one. */
export const loadClosedSegment = async (options: OpenLogOptions, log: LogState, at: number): Promise<SegmentState> => {
  const known = log.segments[at]!
  if (known.bytes > 0) return known
  const path = options.store.segmentPath(log.name, known)
  const hint = await readIndex(options, log.name, known)
  return options.files.use(path, async (file) => {
    const fail = (offset: number, reason: string) => new SegmentCorrupt({ log: log.name, file: path, offset, reason })
    const headerFault = await openHeader(file, path, log, at)
    if (headerFault !== undefined) throw fail(0, headerFault)
    const segment = log.segments[at]!
    const end = await scanFrom(file, segment, await file.size(), hint)
    const expected = log.segments[at + 1]!.firstEventId - 1
    if (end.fault === undefined && end.lastEventId === expected) {
      adoptSegmentEnd(segment, end)
      return segment
    }
    log.segments[at] = known
    throw fail(end.fault?.offset ?? end.offset, end.fault?.reason ?? `events ${end.lastEventId + 1} to ${expected} are missing`)
  })
}

const cutTornEnd = async (options: OpenLogOptions, judged: Judged, torn: { readonly offset: number }): Promise<void> => {
  const { file, size } = judged
  await options.quarantine.keep(file, cutName(judged), torn.offset, size)
  await file.truncate(torn.offset)
  await file.sync()
}

/** Forgets the frames from `journalFirstId` on: the journal has them. */
const cutBehind = async ({ file, log, journalFirstId }: Judged, segment: SegmentState): Promise<LoadedEnd> => {
  const lastEventId = journalFirstId - 1
  const from = segment.index.ids.findLastIndex((id) => id <= lastEventId)
  const start = { offset: segment.index.offsets[from]!, eventId: segment.index.ids[from]!, previousCrc: undefined }
  const end = await scanFrames(file, start, {
    endOffset: segment.bytes,
    onFrame: (bytes, at) => (frameEventId(bytes.view, at) >= lastEventId ? "stop" : undefined)
  })
  adoptEnd(log, segment, { ...end, openBatch: undefined })
  await file.truncate(end.offset)
  segment.index.ids.length = from + 1
  segment.index.offsets.length = from + 1
  segment.indexedEntries = Math.min(segment.indexedEntries, from + 1)
  // What a process wrote before it died may never have been synced.
  segment.unsynced = true
  segment.entryUnsynced = true
  return { _tag: "Good" }
}

const dropSegment = async (options: OpenLogOptions, log: LogState, segment: SegmentState): Promise<void> => {
  for (const path of [options.store.segmentPath(log.name, segment), options.store.indexPath(log.name, segment)]) {
    await options.files.forget(path)
    if (await options.disk.exists(path)) await options.disk.remove(path)
  }
  log.segments.pop()
  log.durableEventId = segment.firstEventId - 1
  log.durableCrc = segment.previousHeadCrc
}

const damaged = async (
  options: OpenLogOptions,
  log: LogState,
  fault: { readonly segment: SegmentState; readonly offset: number; readonly reason: string }
): Promise<LogState> => {
  const file = options.store.segmentPath(log.name, fault.segment)
  log.damage = await options.quarantine.record({ log: log.name, file, offset: fault.offset, reason: fault.reason })
  log.segments.length = 0
  return log
}
