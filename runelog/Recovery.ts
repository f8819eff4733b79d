// Brings the journal's frames back into the logs they belong to, after a stop without a clean close. Each log
// is cut to what precedes the journal and continued from it, so running recovery twice, or being killed
// in the middle of it, gives the same result.
import { indexFrame } from "./Chain.ts"
import type { Disk, DiskFile } from "./Disk.ts"
import { flag, frameBytes, frameCrc, frameEventId, frameFlags, framePreviousCrc } from "./Frame.ts"
import { BATCH_HEADER_BYTES, type GroupAt, groupKind, readGroups } from "./JournalBatch.ts"
import type { FoundBatch, JournalContent } from "./JournalScan.ts"
import type { Limits } from "./Limits.ts"
import { commitExtent, emptyLog, type LogState, lastSegment, startSegment } from "./LogState.ts"
import { type OpenLogOptions, openLog } from "./OpenLog.ts"
import type { Slab, Slabs } from "./Slabs.ts"

export interface RecoveryOptions extends OpenLogOptions {
  readonly disk: Disk
  readonly journalDirectory: string
  readonly slabs: Slabs
  readonly limits: Limits
}

export interface RecoveryReport {
  readonly batches: number
  readonly frames: number
  /** The logs that the journal touched, as they are now. */
  readonly logs: ReadonlyMap<string, LogState>
  /** Those among them whose lives before a removal in the journal are over. */
  readonly removed: ReadonlySet<string>
}

export const recover = async (options: RecoveryOptions, content: JournalContent): Promise<RecoveryReport> => {
  // While the journal is damaged it stays as it is, and nothing needs to be copied out of it.
  const keepsFrames = content.damage === undefined
  /** Per log, the batch of its last removal: earlier ones speak of a log that is gone. */
  const removals = new Map<string, number>()
  const logs = new Map<string, LogState>()
  let frames = 0
  for (const batch of content.batches) for (const log of batch.removals) removals.set(log, batch.sequence)
  const body: BatchBody = async (batch, slab, groups) => {
    for (const group of groups) frames += await apply(options, { removals, logs, batch, slab, group, keepsFrames })
  }
  await eachBatch(options, content.batches, { body, afterSlab: () => relieve(options, logs) })
  for (const log of logs.values()) await options.store.flush(log, { sync: true })
  options.store.markRootUnsynced()
  await options.store.syncRoot()
  return { batches: content.batches.length, frames, logs, removed: new Set(removals.keys()) }
}

type BatchBody = (batch: FoundBatch, slab: Slab, groups: ReadonlyArray<GroupAt>) => Promise<void>

interface BatchVisit {
  readonly body: BatchBody
  /** Called when the batches of a slab are through. */
  readonly afterSlab: () => Promise<void>
}

/** Goes through the batches in order, opening each file once and reading a slab of it at a time. */
const eachBatch = async (
  options: RecoveryOptions,
  batches: ReadonlyArray<FoundBatch>,
  { afterSlab, body }: BatchVisit
): Promise<void> => {
  const files = new Map<string, DiskFile>()
  try {
    for (let at = 0; at < batches.length; ) {
      const count = neighbours(batches, at, options.slabs.slabBytes)
      const { name } = batches[at]!
      const file = files.get(name) ?? (await options.disk.open(`${options.journalDirectory}/${name}`, "read"))
      files.set(name, file)
      await eachOf(options, file, batches.slice(at, at + count), body)
      await afterSlab()
      at += count
    }
  } finally {
    for (const file of files.values()) await file.close()
  }
}

const endOf = ({ offset, payloadBytes }: FoundBatch): number => offset + BATCH_HEADER_BYTES + payloadBytes

/** How many batches from `at` on lie behind each other in one file and in `bytesMax`; always the first. */
const neighbours = (batches: ReadonlyArray<FoundBatch>, at: number, bytesMax: number): number => {
  const first = batches[at]!
  let end = at + 1
  while (end < batches.length) {
    const batch = batches[end]!
    const isBehind = batch.name === first.name && batch.offset >= endOf(batches[end - 1]!)
    if (!isBehind || endOf(batch) - first.offset > bytesMax) break
    end += 1
  }
  return end - at
}

const eachOf = async (
  options: RecoveryOptions,
  file: DiskFile,
  batches: ReadonlyArray<FoundBatch>,
  body: BatchBody
): Promise<void> => {
  const from = batches[0]!.offset
  const bytes = endOf(batches[batches.length - 1]!) - from
  const slab = options.slabs.take(bytes)
  try {
    await file.read(slab.buffer, 0, bytes, from)
    for (const batch of batches) {
      const payload = batch.offset - from + BATCH_HEADER_BYTES
      await body(batch, slab, readGroups(slab, payload, batch.groups))
    }
  } finally {
    options.slabs.release(slab)
  }
}

/** Writes the logs with many frames, so that few slabs serve for all of the journal; all logs once memory is crowded. */
const relieve = async (options: RecoveryOptions, logs: ReadonlyMap<string, LogState>): Promise<void> => {
  const { limits, slabs, store } = options
  const isCrowded = slabs.bytes * 2 > limits.pendingBytesMax
  const bytesMin = isCrowded ? 1 : limits.segmentWriteBytes
  for (const log of logs.values()) if (log.pendingBytes >= bytesMin) await store.flush(log, { sync: false })
}

interface Application {
  readonly removals: ReadonlyMap<string, number>
  readonly logs: Map<string, LogState>
  readonly batch: FoundBatch
  readonly slab: Slab
  readonly group: GroupAt
  /** Frames that cannot be applied are copied before the journal is used again. */
  readonly keepsFrames: boolean
}

/** Applies one group; returns how many frames of it were new to the segments. */
const apply = async (options: RecoveryOptions, application: Application): Promise<number> => {
  const { batch, group, logs } = application
  if (batch.sequence < (application.removals.get(group.log) ?? 0)) return 0
  if (group.kind === groupKind.removal) {
    await options.disk.removeTree(options.store.logDirectory(group.log))
    await options.quarantine.forget(group.log)
    logs.set(group.log, emptyLog(group.log))
    return 0
  }
  const firstId = frameEventId(application.slab.view, group.start)
  const log = logs.get(group.log) ?? (await openLog(options, { log: group.log, journalFirstId: firstId }))
  logs.set(group.log, log)
  return adopt(options, application, log)
}

/** Adds the frames at the end of the log. Damage further back does not matter to them. */
const adopt = async (options: RecoveryOptions, application: Application, log: LogState): Promise<number> => {
  const { batch, group, slab } = application
  let start = group.start
  while (start < group.end && frameEventId(slab.view, start) <= log.durableEventId)
    start += frameBytes(slab.view, start)
  if (start === group.end) return 0
  const firstEventId = log.nextEventId
  const isFirst = (frameFlags(slab.view, start) & flag.segmentFirst) !== 0
  const segment = isFirst ? startSegment(log) : lastSegment(log)
  const fits =
    segment !== undefined &&
    segment.seal === undefined &&
    frameEventId(slab.view, start) === firstEventId &&
    framePreviousCrc(slab.view, start) === log.crc
  if (!fits) {
    const reason = `the log ends at event ${log.durableEventId}, the journal goes on with ${frameEventId(slab.view, start)}`
    if (isFirst) log.segments.pop()
    const file = `${options.journalDirectory}/${batch.name}`
    const { log: name } = group
    if (application.keepsFrames) {
      await options.quarantine.keepBytes(
        `${name}-batch-${batch.sequence}.frames`,
        slab.buffer.subarray(start, group.end)
      )
    }
    log.damage ??= await options.quarantine.record({ log: name, file, offset: batch.offset, reason })
    return 0
  }
  segment.thinnable = true
  const position = segment.bytes
  let frames = 0
  for (let at = start; at < group.end; at += frameBytes(slab.view, at)) {
    indexFrame(segment, { eventId: log.nextEventId, offset: segment.bytes, crc: log.crc }, options.limits)
    segment.bytes += frameBytes(slab.view, at)
    log.nextEventId += 1
    log.crc = frameCrc(slab.view, at)
    frames += 1
  }
  options.slabs.retain(slab)
  const extent = {
    slab,
    start,
    end: group.end,
    firstEventId,
    lastEventId: log.nextEventId - 1,
    sequence: batch.sequence,
    segment,
    position
  }
  commitExtent(log, extent, log.crc)
  return frames
}
