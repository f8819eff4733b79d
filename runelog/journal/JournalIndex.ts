// Recovery of a journal that speaks of many logs: a start only notes where their frames lie, and each log is opened from
// there when somebody asks for it, or when the journal is to be freed.

import { type Bytes, checkFrame, frameBytes, frameEventId } from "../Frame.ts"
import type { LogState } from "../LogState.ts"
import { adopt } from "../recovery/AdoptFrames.ts"
import { openLog } from "../recovery/OpenLog.ts"
import {
  type BatchBody,
  eachBatch,
  type RecoveryOptions,
  type RecoveryReport,
  removalsOf
} from "../recovery/Recovery.ts"
import type { JournalFile } from "./Journal.ts"
import { groupKind } from "./JournalBatch.ts"
import type { JournalGroup, JournalLogs } from "./JournalLogs.ts"
import type { JournalContent } from "./JournalScan.ts"

/** Notes for each log where its frames lie in the journal, whose files these are, and removes those that it removes. */
export const indexJournal = async (
  options: RecoveryOptions,
  content: JournalContent,
  { files, journalLogs }: { readonly files: ReadonlyMap<string, JournalFile>; readonly journalLogs: JournalLogs }
): Promise<RecoveryReport> => {
  const removals = removalsOf(content)
  let frames = 0
  const body: BatchBody = async (batch, slab, groups, from) => {
    const journal = files.get(batch.name)!
    for (const group of groups) {
      if (batch.sequence < (removals.get(group.log) ?? 0)) continue
      if (group.kind === groupKind.removal) {
        journalLogs.delete(group.log)
        continue
      }
      const firstEventId = frameEventId(slab.view, group.start)
      journalLogs.add(group.log, {
        journal,
        position: from + group.start,
        bytes: group.frameBytes,
        firstEventId,
        lastEventId: firstEventId + group.frames - 1,
        sequence: batch.sequence
      })
      frames += group.frames
    }
  }
  await eachBatch(options, content.batches, { body, afterSlab: async () => true })
  await removeAll(options, new Set(removals.keys()))
  for (const [log, sequence] of removals) journalLogs.noteRemoval(log, sequence)
  const names = new Set([...journalLogs.names(), ...removals.keys()])
  return {
    batches: content.batches.length,
    frames,
    names: [...names],
    logs: new Map(),
    removed: new Set(removals.keys())
  }
}

/** Removes what is left of logs that the journal removes. It is durable before the journal is freed of their removal. */
const removeAll = async (options: RecoveryOptions, logs: ReadonlySet<string>): Promise<void> => {
  const { disk, quarantine, store } = options
  for (const { name } of await disk.list(store.directory)) {
    if (logs.has(name)) await disk.removeTree(store.logDirectory(name))
  }
  await quarantine.forgetAll(logs)
  store.markRootUnsynced()
}

/** Opens a log of which the journal holds the newest frames; the files that they lie in are `groups[…].journal`. */
export const openFromJournal = async (
  options: RecoveryOptions,
  name: string,
  groups: ReadonlyArray<JournalGroup>
): Promise<LogState> => {
  const first = groups[0]!
  const log = await openLog(options, { log: name, journalFirstId: first.firstEventId })
  try {
    for (let at = 0; at < groups.length; ) {
      const run = runAt(groups, at, options.limits.segmentWriteBytes)
      await adoptRun(options, log, run)
      if (log.pendingBytes >= options.limits.segmentWriteBytes) await options.store.flush(log, { sync: false })
      at += run.length
    }
  } catch (error) {
    options.store.dropPending(log)
    throw error
  }
  // What was cut has to be durable before the journal is free, also where nothing was added.
  if (log.unsyncedSequence === 0 && log.segments.some(({ unsynced }) => unsynced)) log.unsyncedSequence = first.sequence
  return log
}

/** Bytes of others between two groups that are read along, rather than reading twice. */
const GAP_BYTES = 16 * 1024

/** The groups from `at` on that are read together: near each other in one file, in `bytesMax`; always the first. */
const runAt = (groups: ReadonlyArray<JournalGroup>, at: number, bytesMax: number): ReadonlyArray<JournalGroup> => {
  const first = groups[at]!
  let end = at + 1
  for (; end < groups.length; end++) {
    const before = groups[end - 1]!
    const group = groups[end]!
    const gap = group.position - before.position - before.bytes
    const isNear = group.journal === first.journal && gap >= 0 && gap <= GAP_BYTES
    if (!isNear || group.position + group.bytes - first.position > bytesMax) break
  }
  return groups.slice(at, end)
}

const adoptRun = async (options: RecoveryOptions, log: LogState, run: ReadonlyArray<JournalGroup>): Promise<void> => {
  const { journal, position: from } = run[0]!
  const last = run[run.length - 1]!
  const slab = options.slabs.takeExact(last.position + last.bytes - from)
  try {
    const read = await journal.file.read(slab.buffer, 0, slab.buffer.length, from)
    // What was not read must not pass for what is there.
    slab.buffer.fill(0, read)
    for (const { bytes, position, sequence } of run) {
      const start = position - from
      const addition = { slab, start, end: start + bytes, sequence, file: journal.path, offset: position }
      await adopt(options, log, { ...addition, journal, fault: faultIn(slab, start, start + bytes), keepsFrames: true })
    }
  } finally {
    options.slabs.release(slab)
  }
}

/** What is wrong with the frames, which were whole when the journal was scanned. */
const faultIn = (bytes: Bytes, start: number, end: number): string | undefined => {
  for (let at = start; at < end; at += frameBytes(bytes.view, at)) {
    const fault = checkFrame(bytes, at, end)
    if (fault !== undefined) return fault
  }
  return undefined
}
