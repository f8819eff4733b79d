// What somebody decides to do about damage. A log is cut back to its good prefix and can be appended to again; a journal
// is put aside once its good batches are in their logs. Everything that is taken away is copied to the quarantine
// before, and the record of the damage goes last: a repair that is interrupted is begun anew.
import type { DiskFile } from "../disk/Disk.ts"
import type { RunelogOptions } from "../Options.ts"
import { journalDirectory } from "../Paths.ts"
import { asDiskError, LogNameInvalid, LogUnknown } from "../RunelogErrors.ts"
import type { LogHead } from "../recovery/Manifest.ts"
import { closeFiles, type OpenDirectory, openDirectory, type Parts } from "../recovery/Open.ts"
import { openHeader } from "../segment/OpenSegment.ts"
import { scanFrames } from "../segment/Scan.ts"
import { parseSeal } from "../segment/SealFrame.ts"
import { isLogName, parseLogFileName, SEGMENT_HEADER_BYTES, segmentFileName } from "../segment/Segment.ts"
import { SegmentFile } from "../segment/SegmentFile.ts"

export interface LogRepair {
  readonly log: string
  /** The newest event that is left; 0 when nothing of the log was good. */
  readonly head: number
  /** Where that is kept which was cut off. */
  readonly copies: ReadonlyArray<string>
}

export interface JournalRepair {
  /** Batches before the damage, which are in their logs now. */
  readonly batches: number
  /** Where the files of the journal are kept, with what is behind the damage. */
  readonly copies: ReadonlyArray<string>
}

/** Cuts a log back to its good prefix. Nobody else may have the directory open. */
export const repairLog = async (options: RunelogOptions, log: string): Promise<LogRepair> => {
  if (!isLogName(log)) throw new LogNameInvalid({ log })
  return withDirectory(options, async ({ content, parts, sequence }) => {
    // What comes last in the log is still to come out of the journal.
    if (content.damage !== undefined) throw content.damage
    const repaired = await repairFiles(parts, log)
    const { crc, head } = repaired.end
    const logs = new Map([[log, head === 0 ? undefined : { head, crc }]])
    await parts.manifest.record({ logs }, { floor: sequence, sequence, clean: true })
    return { log, head, copies: repaired.copies }
  })
}

/** Puts a damaged journal aside. What it held before the damage is in the logs, what it held behind is in the copies. */
export const repairJournal = (options: RunelogOptions): Promise<JournalRepair> =>
  withDirectory(options, async ({ content, parts, report, sequence }) => {
    const { batches } = report
    const copies: Array<string> = []
    if (content.damage !== undefined) {
      for (const { name, path } of content.files) copies.push(...(await copyFrom(parts, path, { name, from: 0 })))
    }
    // Twice, for two slots: the older one must not ask for what is taken away.
    for (let slot = 0; slot < 2; slot++) await parts.meta.update({ floor: sequence, sequence, clean: true })
    if (content.damage === undefined) return { batches, copies }
    for (const { path } of content.files) await parts.disk.remove(path)
    await parts.disk.syncDirectory(journalDirectory(options.directory))
    return { batches, copies }
  })

const withDirectory = async <A>(options: RunelogOptions, body: (opened: OpenDirectory) => Promise<A>): Promise<A> => {
  const opened = await openDirectory(options, { logs: "settled" })
  try {
    return await body(opened)
  } catch (error) {
    throw asDiskError(error, options.directory)
  } finally {
    await closeFiles(opened.parts)
    await opened.parts.lock.release()
  }
}

interface RepairedFiles {
  readonly end: LogHead
  readonly copies: ReadonlyArray<string>
}

const repairFiles = async (parts: Parts, log: string): Promise<RepairedFiles> => {
  const { disk, quarantine, store } = parts
  const hasFiles = await disk.exists(store.logDirectory(log))
  const isMissing = parts.manifest.head(log) !== undefined
  if (!hasFiles && !isMissing && (await quarantine.recall(log)) === undefined) throw new LogUnknown({ log })
  const found = hasFiles ? await listFiles(parts, log) : { segments: [], indexes: [] }
  const good = await findGoodPrefix(parts, log, found.segments)
  const copies = await putAside(parts, log, found, good)
  if (hasFiles) await disk.syncDirectory(store.logDirectory(log))
  await quarantine.forget(log)
  return { end: { head: good.lastEventId, crc: good.headCrc }, copies }
}

interface LogFiles {
  readonly segments: ReadonlyArray<number>
  readonly indexes: ReadonlyArray<number>
}

const listFiles = async ({ disk, store }: Parts, log: string): Promise<LogFiles> => {
  const segments: Array<number> = []
  const indexes: Array<number> = []
  for (const { name } of await disk.list(store.logDirectory(log))) {
    const parsed = parseLogFileName(name)
    if (parsed._tag === "Segment") segments.push(parsed.firstEventId)
    if (parsed._tag === "Index") indexes.push(parsed.firstEventId)
  }
  return { segments, indexes }
}

interface GoodPrefix {
  /** Segments that are good as a whole. */
  readonly segments: number
  /** Of the next one, so many bytes are good; 0 when none are. */
  readonly bytes: number
  readonly lastEventId: number
  readonly headCrc: number
}

/** Reads from the first frame on; an index proves nothing here. */
const findGoodPrefix = async (parts: Parts, log: string, firstIds: ReadonlyArray<number>): Promise<GoodPrefix> => {
  let lastEventId = 0
  let headCrc = 0
  for (const [at, firstEventId] of firstIds.entries()) {
    if (firstEventId !== lastEventId + 1) return { segments: at, bytes: 0, lastEventId, headCrc }
    const path = parts.store.segmentPath(log, { firstEventId })
    const file = await SegmentFile.open(parts.disk, path, "read")
    const end = await goodEnd(file, { path, log, firstEventId, headCrc }).finally(() => file.close())
    if (!end.isWhole) return { segments: at, bytes: end.bytes, lastEventId: end.lastEventId, headCrc: end.headCrc }
    lastEventId = end.lastEventId
    headCrc = end.headCrc
  }
  return { segments: firstIds.length, bytes: 0, lastEventId, headCrc }
}

interface GoodEnd {
  readonly isWhole: boolean
  readonly bytes: number
  readonly lastEventId: number
  readonly headCrc: number
}

const goodEnd = async (
  file: DiskFile,
  place: { readonly path: string; readonly log: string; readonly firstEventId: number; readonly headCrc: number }
): Promise<GoodEnd> => {
  const { firstEventId, headCrc } = place
  const nothing = { isWhole: false, bytes: 0, lastEventId: firstEventId - 1, headCrc }
  const opened = await openHeader(file, place)
  if (opened._tag === "Fault" || opened.segment.previousHeadCrc !== headCrc) return nothing
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: firstEventId, previousCrc: opened.segment.headerCrc }
  const end = await scanFrames(file, start, { endOffset: await file.size() })
  const { crc, lastEventId, offset } = end.openBatch ?? end
  if (lastEventId < firstEventId) return nothing
  const seal = end.seal === undefined ? undefined : parseSeal(end.seal.body)
  const isWhole =
    end.fault === undefined && end.openBatch === undefined && (seal === undefined) === (end.seal === undefined)
  return { isWhole, bytes: offset, lastEventId, headCrc: seal?.headCrc ?? crc! }
}

/** Copies what is not good, then takes it away, the newest first. */
const putAside = async (
  parts: Parts,
  log: string,
  found: LogFiles,
  good: GoodPrefix
): Promise<ReadonlyArray<string>> => {
  const { disk, store } = parts
  const bad = found.segments.slice(good.segments)
  const from = (firstEventId: number): number => (firstEventId === bad[0] ? good.bytes : 0)
  const copies: Array<string> = []
  for (const firstEventId of bad) {
    const path = store.segmentPath(log, { firstEventId })
    const name = `${log}-${segmentFileName(firstEventId)}`
    copies.push(...(await copyFrom(parts, path, { name, from: from(firstEventId) })))
  }
  // Those of what is cut promise too much, and those without a segment promise what is gone.
  const kept = new Set(found.segments.slice(0, good.segments))
  for (const firstEventId of found.indexes) {
    if (!kept.has(firstEventId)) await disk.remove(store.indexPath(log, { firstEventId }))
  }
  for (const firstEventId of bad.toReversed()) {
    await cutTo(parts, store.segmentPath(log, { firstEventId }), from(firstEventId))
  }
  return copies
}

const copyFrom = async (
  { disk, quarantine }: Parts,
  path: string,
  copy: { readonly name: string; readonly from: number }
): Promise<ReadonlyArray<string>> => {
  const from = (await isPackedAt(disk, path)) ? 0 : copy.from
  const file = await disk.open(path, "read")
  try {
    const size = await file.size()
    return size > from ? [await quarantine.keep(file, copy.name, from, size)] : []
  } finally {
    await file.close()
  }
}

/** Of a packed segment the whole file is kept: what is bad in it cannot be told by its place. */
const isPackedAt = async (disk: Parts["disk"], path: string): Promise<boolean> => {
  const file = await SegmentFile.open(disk, path, "read")
  await file.size().finally(() => file.close())
  return file.isPacked
}

const cutTo = async ({ disk, files }: Parts, path: string, bytes: number): Promise<void> => {
  if (bytes === 0) {
    await disk.remove(path)
    return
  }
  await files.use(path, async (file) => {
    await file.truncate(bytes)
    await file.sync()
  })
}
