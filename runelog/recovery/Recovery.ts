// Brings the journal's frames back into the logs they belong to, after a stop without a clean close. Each log
// is cut to what precedes the journal and continued from it, so running recovery twice, or being killed
// in the middle of it, gives the same result. Where the journal speaks of many logs, recovery only notes where their
// frames lie (JournalIndex.ts).

import type { Slab, Slabs } from "../commit/Slabs.ts"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { frameEventId } from "../Frame.ts"
import { BATCH_HEADER_BYTES, type GroupAt, groupKind, readGroups } from "../journal/JournalBatch.ts"
import type { FoundBatch, JournalContent } from "../journal/JournalScan.ts"
import { emptyLog, type LogState } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import { adopt } from "./AdoptFrames.ts"
import { type OpenLogOptions, openLog } from "./OpenLog.ts"

export interface RecoveryOptions extends OpenLogOptions {
  readonly disk: Disk
  readonly journalDirectory: string
  readonly slabs: Slabs
  readonly limits: Limits
}

export interface RecoveryReport {
  readonly batches: number
  readonly frames: number
  /** The logs that the journal touched. */
  readonly names: ReadonlyArray<string>
  /** Those that were opened, as they are now. */
  readonly logs: ReadonlyMap<string, LogState>
  /** Those among them whose lives before a removal in the journal are over. */
  readonly removed: ReadonlySet<string>
}

/** Brings the logs up to what the journal holds; nothing when they are more than `logsMax`: then all is as if it had not begun. */
export const recover = async (
  options: RecoveryOptions,
  content: JournalContent,
  logsMax: number
): Promise<RecoveryReport | undefined> => {
  // While the journal is damaged it stays as it is, and nothing needs to be copied out of it.
  const keepsFrames = content.damage === undefined
  /** Per log, the batch of its last removal: earlier ones speak of a log that is gone. */
  const removals = removalsOf(content)
  const logs = new Map<string, LogState>()
  let frames = 0
  const body: BatchBody = async (batch, slab, groups) => {
    for (const group of groups) {
      if (logs.size > logsMax) return
      frames += await apply(options, { removals, logs, batch, slab, group, keepsFrames })
    }
  }
  const afterSlab = async (): Promise<boolean> => {
    await relieve(options, logs)
    return logs.size <= logsMax
  }
  await eachBatch(options, content.batches, { body, afterSlab })
  if (logs.size > logsMax) {
    for (const log of logs.values()) options.store.dropPending(log)
    return undefined
  }
  for (const log of logs.values()) await options.store.flush(log, { sync: true })
  options.store.markRootUnsynced()
  await options.store.syncRoot()
  return { batches: content.batches.length, frames, names: [...logs.keys()], logs, removed: new Set(removals.keys()) }
}

export const removalsOf = ({ batches }: JournalContent): Map<string, number> => {
  const removals = new Map<string, number>()
  for (const { removals: removed, sequence } of batches) for (const log of removed) removals.set(log, sequence)
  return removals
}

/** `from` is what a place in the slab is short of in the file. */
export type BatchBody = (batch: FoundBatch, slab: Slab, groups: ReadonlyArray<GroupAt>, from: number) => Promise<void>

interface BatchVisit {
  readonly body: BatchBody
  /** Called when the batches of a slab are through; says whether to go on. */
  readonly afterSlab: () => Promise<boolean>
}

/** Goes through the batches in order, opening each file once and reading a slab of it at a time. */
export const eachBatch = async (
  options: RecoveryOptions,
  batches: ReadonlyArray<FoundBatch>,
  { afterSlab, body }: BatchVisit
): Promise<void> => {
  const files = new Map<string, DiskFile>()
  try {
    for (let at = 0; at < batches.length; ) {
      const count = neighbors(batches, at, options.slabs.slabBytes)
      const { name } = batches[at]!
      const file = files.get(name) ?? (await options.disk.open(`${options.journalDirectory}/${name}`, "read"))
      files.set(name, file)
      await eachOf(options, file, batches.slice(at, at + count), body)
      if (!(await afterSlab())) return
      at += count
    }
  } finally {
    for (const file of files.values()) await file.close()
  }
}

const endOf = ({ offset, payloadBytes }: FoundBatch): number => offset + BATCH_HEADER_BYTES + payloadBytes

/** How many batches from `at` on lie behind each other in one file and in `bytesMax`; always the first. */
const neighbors = (batches: ReadonlyArray<FoundBatch>, at: number, bytesMax: number): number => {
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
      await body(batch, slab, readGroups(slab, payload, batch.groups), from)
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
  const { slab } = application
  const firstId = frameEventId(slab.view, group.start)
  const log = logs.get(group.log) ?? (await openLog(options, { log: group.log, journalFirstId: firstId }))
  logs.set(group.log, log)
  const { end, start } = group
  const { keepsFrames } = application
  const file = `${options.journalDirectory}/${batch.name}`
  return adopt(options, log, {
    slab,
    start,
    end,
    sequence: batch.sequence,
    file,
    offset: batch.offset,
    journal: undefined,
    fault: undefined,
    keepsFrames
  })
}
