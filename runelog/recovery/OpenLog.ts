// Brings one log from its directory into memory: which segments it has, where it ends, and whether that end
// can be trusted. Only the part behind the last index entry is read. What the journal still holds is
// cut away here, to be written again from there; any other bad end is judged: torn (cut, a copy kept) or
// damaged (read-only from there on). Nothing of a log that is known to be damaged is cut.
import type { DiskFile } from "../disk/Disk.ts"
import { frameEventId, isUnsupported } from "../Frame.ts"
import { emptyLog, type LogState, type SegmentState } from "../LogState.ts"
import { ForeignFile, FormatUnsupported, LogDamaged } from "../RunelogErrors.ts"
import { KIB } from "../RunelogLimits.ts"
import type { IndexContent } from "../segment/IndexFile.ts"
import {
  adoptSegmentEnd,
  type OpenLogOptions,
  openHeader,
  readIndexFile,
  scanSegment,
  sealFault,
  unopened,
  useSegmentFile
} from "../segment/OpenSegment.ts"
import { endsInSeal, findIntactFrame, type ScanEnd, type ScanFault, scanFrames } from "../segment/Scan.ts"
import { parseLogFileName } from "../segment/Segment.ts"
import { isPacked } from "../segment/SegmentFile.ts"

export { loadClosedSegment, type OpenLogOptions } from "../segment/OpenSegment.ts"

export interface OpenLogRequest {
  readonly log: string
  /** The first event of this log that the journal holds, if it holds any. */
  readonly journalFirstId: number | undefined
}

/** The log as its directory has it; an empty state when there is nothing. */
export const openLog = async (options: OpenLogOptions, request: OpenLogRequest): Promise<LogState> => {
  const journalFirstId = request.journalFirstId ?? Number.POSITIVE_INFINITY
  const found = await listSegments(options, request.log)
  const log = emptyLog(request.log)
  log.damage = await options.quarantine.recall(request.log)
  for (const firstEventId of found.segments) log.segments.push(unopened(firstEventId))
  const missing = await missingSegment(options, log, found, journalFirstId)
  if (missing !== undefined) await recordDamage(options, log, missing)
  await settleEnd(options, log, journalFirstId)
  await refuseGap(options, log)
  log.durableSegments = log.segments.length
  log.nextEventId = log.durableEventId + 1
  log.writtenEventId = log.durableEventId
  log.crc = log.durableCrc
  return log
}

interface FoundSegments {
  readonly segments: ReadonlyArray<number>
  readonly indexes: ReadonlyArray<number>
}

const listSegments = async (options: OpenLogOptions, log: string): Promise<FoundSegments> => {
  const directory = options.store.logDirectory(log)
  const segments: Array<number> = []
  const indexes: Array<number> = []
  if (!(await options.disk.exists(directory))) return { segments, indexes }
  for (const entry of await options.disk.list(directory)) {
    const parsed = entry.kind === "file" ? parseLogFileName(entry.name) : ({ _tag: "Foreign" } as const)
    if (parsed._tag === "Foreign") throw new ForeignFile({ file: `${directory}/${entry.name}` })
    if (parsed._tag === "Leftover") await options.disk.remove(`${directory}/${entry.name}`)
    if (parsed._tag === "Segment") segments.push(parsed.firstEventId)
    if (parsed._tag === "Index") indexes.push(parsed.firstEventId)
  }
  return { segments, indexes }
}

type Damage = ScanFault & { readonly segment: { readonly firstEventId: number }; readonly unsupported?: true }

/** An index is written after the segment beside it is durable: where only the index is left, acknowledged events are gone. */
const missingSegment = async (
  options: OpenLogOptions,
  log: LogState,
  found: FoundSegments,
  journalFirstId: number
): Promise<Damage | undefined> => {
  for (const firstEventId of found.indexes) {
    if (firstEventId >= journalFirstId || found.segments.includes(firstEventId)) continue
    const index = await readIndexFile(options, log.name, { firstEventId })
    if (index === undefined) continue
    return { segment: { firstEventId }, offset: 0, reason: "the file is missing, its index is there" }
  }
  return undefined
}

const recordDamage = async (
  options: OpenLogOptions,
  log: LogState,
  { segment, unsupported, ...fault }: Damage
): Promise<void> => {
  const file = options.store.segmentPath(log.name, segment)
  const damage = { log: log.name, file, ...fault }
  // What only a newer build understands is no damage to it, and must not be recorded as one.
  if (unsupported === true || isUnsupported(fault.reason)) log.damage ??= new LogDamaged(damage)
  else log.damage = await options.quarantine.record(damage)
}

/** A log whose first events are gone has no good prefix. */
const refuseGap = async (options: OpenLogOptions, log: LogState): Promise<void> => {
  const first = log.segments[0]
  if (first === undefined || first.firstEventId === 1) return
  await recordDamage(options, log, {
    segment: first,
    offset: 0,
    reason: `events 1 to ${first.firstEventId - 1} are missing`
  })
  log.segments.length = 0
  log.durableEventId = 0
  log.durableCrc = 0
}

/** Finds the end of the log, dropping what the journal will bring again. */
const settleEnd = async (options: OpenLogOptions, log: LogState, journalFirstId: number): Promise<void> => {
  while (log.segments.length > 0) {
    const segment = log.segments[log.segments.length - 1]!
    const end = await loadLast(options, log, journalFirstId).catch((error) => tooNew(error, journalFirstId))
    if (end._tag === "Good") return
    if (end._tag === "Dropped") {
      await dropSegment(options, log, segment)
      continue
    }
    await recordDamage(options, log, {
      segment,
      ...end.fault,
      ...(end.unsupported === true ? { unsupported: true } : {})
    })
    if (end.fault.offset > 0) return
    // Without its header a segment says nothing; the good prefix ends with the one before.
    log.segments.pop()
  }
}

type LoadedEnd =
  | { readonly _tag: "Good" }
  /** Nothing in the file was ever acknowledged, or the journal has all of it. */
  | { readonly _tag: "Dropped" }
  | { readonly _tag: "Damaged"; readonly fault: ScanFault; readonly unsupported?: true }

/** A segment of a newer build ends what can be read. While the journal goes on behind it, nothing is touched at all. */
const tooNew = (error: unknown, journalFirstId: number): LoadedEnd => {
  if (!(error instanceof FormatUnsupported) || Number.isFinite(journalFirstId)) throw error
  return { _tag: "Damaged", fault: { offset: 0, reason: error.message }, unsupported: true }
}

interface Judged {
  readonly file: DiskFile
  readonly log: LogState
  readonly segment: SegmentState
  readonly size: number
  readonly hint: IndexContent | undefined
  readonly path: string
  readonly journalFirstId: number
}

/** Opens the last segment and reads from its last index entry to its end. */
const loadLast = async (options: OpenLogOptions, log: LogState, journalFirstId: number): Promise<LoadedEnd> => {
  const at = log.segments.length - 1
  const { firstEventId } = log.segments[at]!
  const path = options.store.segmentPath(log.name, { firstEventId })
  const hint = await readIndexFile(options, log.name, { firstEventId })
  return useSegmentFile(options, log.name, path, async (file) => {
    const size = await file.size()
    const opened = await openHeader(file, { path, log: log.name, firstEventId })
    const segment = opened._tag === "Opened" ? opened.segment : log.segments[at]!
    log.segments[at] = segment
    const judged = { file, log, segment, size, hint, path, journalFirstId }
    return opened._tag === "Opened" ? settleFrames(options, judged) : judgeHeader(options, judged, opened.reason)
  })
}

/** A bad header: a segment that was being created when the machine stopped, or damage. */
const judgeHeader = async (options: OpenLogOptions, judged: Judged, reason: string): Promise<LoadedEnd> => {
  const { file, hint, log, segment, size } = judged
  if (segment.firstEventId >= judged.journalFirstId) return { _tag: "Dropped" }
  const frameAt = await findIntactFrame(file, 0, { endOffset: size })
  if (hint !== undefined || frameAt !== undefined || log.damage !== undefined || isPacked(file)) {
    return { _tag: "Damaged", fault: { offset: 0, reason } }
  }
  if (size > 0) await options.quarantine.keep(file, cutName(judged), 0, size)
  return { _tag: "Dropped" }
}

/** About what lies between two index entries. */
const CUT_CHUNK_BYTES = 128 * KIB

const cutName = ({ log, path }: { readonly log: LogState; readonly path: string }): string =>
  `${log.name}-${path.slice(path.lastIndexOf("/") + 1)}`

const settleFrames = async (options: OpenLogOptions, judged: Judged): Promise<LoadedEnd> => {
  const { file, log, segment, size, hint, journalFirstId } = judged
  const early = await settleAtJournal(judged)
  if (early !== undefined) return early
  const end = await scanSegment(file, segment, size, { hint, limits: options.limits })
  adoptEnd(log, segment, end)
  if (end.seal === undefined) {
    if (segment.firstEventId >= journalFirstId) return { _tag: "Dropped" }
    if (log.durableEventId >= journalFirstId - 1) return cutAt(judged, await scanToJournal(judged, segment.bytes))
  }
  const fault = await endFault(judged, end)
  if (fault !== undefined) return { _tag: "Damaged", fault }
  if (end.fault === undefined && end.openBatch === undefined) return { _tag: "Good" }
  if (log.damage !== undefined) return { _tag: "Good" }
  await cutTornEnd(options, judged)
  return segment.firstEventId > log.durableEventId ? { _tag: "Dropped" } : { _tag: "Good" }
}

/** What the journal brings again need not be read, unless it is sealed: nothing when the segment has to be read to its end. */
const settleAtJournal = async (judged: Judged): Promise<LoadedEnd | undefined> => {
  const { file, hint, journalFirstId, segment, size } = judged
  if (!Number.isFinite(journalFirstId) || (await endsInSeal(file, size))) return undefined
  if (segment.firstEventId >= journalFirstId) return { _tag: "Dropped" }
  if (hint === undefined || !(hint.index.ids[0]! < journalFirstId)) return undefined
  segment.index = hint.index
  segment.indexedEntries = hint.index.ids.length
  segment.indexedBytes = hint.durableBytes
  const end = await scanToJournal(judged, size)
  return end.lastEventId === journalFirstId - 1 ? cutAt(judged, end) : undefined
}

/** Why the end of a segment is damage and not just torn; nothing when it is good or torn. */
const endFault = async ({ file, hint, journalFirstId, size }: Judged, end: ScanEnd): Promise<ScanFault | undefined> => {
  const good = end.openBatch ?? end
  const torn = end.fault ?? { offset: good.offset, reason: "the file ends inside a batch" }
  if (end.seal !== undefined) return end.fault ?? sealFault(end)
  if (hint !== undefined && hint.durableBytes > good.offset) {
    const isWhole = end.fault === undefined && end.openBatch === undefined
    return isWhole ? { offset: good.offset, reason: `bytes up to ${hint.durableBytes} are missing` } : torn
  }
  if (Number.isFinite(journalFirstId)) {
    const reason = `events ${good.lastEventId + 1} to ${journalFirstId - 1} are missing before the journal goes on`
    return end.fault ?? { offset: good.offset, reason }
  }
  if (end.fault === undefined) return undefined
  if (isPacked(file)) return torn
  const intact = await findIntactFrame(file, end.fault.offset, { endOffset: size })
  return intact === undefined ? undefined : torn
}

const adoptEnd = (log: LogState, segment: SegmentState, end: ScanEnd): void => {
  log.durableCrc = adoptSegmentEnd(segment, end)
  log.durableEventId = (end.openBatch ?? end).lastEventId
}

const cutTornEnd = async (options: OpenLogOptions, judged: Judged): Promise<void> => {
  const { file, segment, size } = judged
  await options.quarantine.keep(file, cutName(judged), segment.bytes, size)
  await file.truncate(segment.bytes)
  await file.sync()
}

/** Reads from the last index entry before the journal to the last frame before it. */
const scanToJournal = ({ file, journalFirstId, segment }: Judged, endOffset: number): Promise<ScanEnd> => {
  const { ids, offsets, crcs } = segment.index
  const from = ids.findLastIndex((id) => id < journalFirstId)
  const start = { offset: offsets[from]!, eventId: ids[from]!, previousCrc: crcs[from]! }
  const isLast = (eventId: number): boolean => eventId >= journalFirstId - 1
  return scanFrames(file, start, {
    endOffset,
    chunkBytes: CUT_CHUNK_BYTES,
    onFrame: (bytes, at) => (isLast(frameEventId(bytes.view, at)) ? "stop" : undefined)
  })
}

/** Forgets the frames behind `end`: the journal has them. */
const cutAt = async ({ file, log, segment }: Judged, end: ScanEnd): Promise<LoadedEnd> => {
  adoptEnd(log, segment, { ...end, openBatch: undefined })
  await file.truncate(end.offset)
  const { ids, offsets, crcs } = segment.index
  const entries = offsets.findLastIndex((offset) => offset < end.offset) + 1
  segment.index = { ids: ids.slice(0, entries), offsets: offsets.slice(0, entries), crcs: crcs.slice(0, entries) }
  segment.indexedEntries = Math.min(segment.indexedEntries, entries)
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
  // Until the segment before says otherwise: when there is none, the journal starts the log anew.
  log.durableEventId = 0
  log.durableCrc = 0
}
