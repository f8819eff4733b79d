// Opens a data directory: takes its lock, reads meta and journal, brings the logs up to what the journal holds and
// hands over the parts, ready to take appends. Whatever goes wrong on the way, the lock is given back.
import { randomBytes } from "node:crypto"
import { dirname, resolve } from "node:path"
import { Slabs } from "../commit/Slabs.ts"
import type { Disk, DiskLock, LockOutcome } from "../disk/Disk.ts"
import { makeDiskNode } from "../disk/DiskNode.ts"
import { isUnsupported } from "../Frame.ts"
import { Journal, type JournalFile } from "../journal/Journal.ts"
import { alignPage, BATCH_HEADER_BYTES } from "../journal/JournalBatch.ts"
import { copyLastBatch } from "../journal/JournalCopy.ts"
import { indexJournal } from "../journal/JournalIndex.ts"
import { JournalLogs } from "../journal/JournalLogs.ts"
import {
  type FoundBatch,
  type FoundFile,
  type JournalContent,
  listJournal,
  scanJournal
} from "../journal/JournalScan.ts"
import { type LogState, lastSegment } from "../LogState.ts"
import { Maintenance } from "../Maintenance.ts"
import { type ResolvedLimits, type RunelogOptions, resolveLimits } from "../Options.ts"
import { journalDirectory, logsDirectory, quarantineDirectory } from "../Paths.ts"
import { afterTimeout } from "../Retry.ts"
import {
  asDiskError,
  DirectoryLocked,
  FormatUnsupported,
  isFull,
  JournalCorrupt,
  LogDamaged,
  SegmentCorrupt,
  SyncFailed,
  syncFailed,
  WriterPoisoned
} from "../RunelogErrors.ts"
import { FileCache } from "../segment/FileCache.ts"
import type { ScanFault } from "../segment/Scan.ts"
import { sealSegments } from "../segment/Seal.ts"
import { isLogName } from "../segment/Segment.ts"
import { SegmentStore } from "../segment/SegmentStore.ts"
import { Watchers } from "../Watchers.ts"
import { generationOf, headFault, type LogHead, Manifest, readManifest } from "./Manifest.ts"
import { META_NAME, MetaFile } from "./MetaFile.ts"
import type { OpenLogOptions } from "./OpenLog.ts"
import { Quarantine } from "./Quarantine.ts"
import { type RecoveryReport, recover } from "./Recovery.ts"

export interface Parts extends OpenLogOptions {
  readonly options: RunelogOptions
  readonly limits: ResolvedLimits
  readonly lock: DiskLock
  readonly meta: MetaFile
  readonly manifest: Manifest
  readonly journal: Journal
  readonly journalLogs: JournalLogs
  readonly slabs: Slabs
  readonly maintenance: Maintenance
  readonly watchers: Watchers
}

export interface OpenDirectory {
  readonly parts: Parts
  readonly content: JournalContent
  readonly report: RecoveryReport
  /** The last writer closed in order. */
  readonly clean: boolean
  /** The sequence of the first batch to write. */
  readonly sequence: number
  /** Marks the batches of this writer, and of those that it continues. */
  readonly nonce: bigint
  /** Of the batch that the first one continues; 0 when it continues none. */
  readonly previousHeaderCrc: number
}

const randomHex = (options: RunelogOptions, bytes: number): string =>
  options.randomHex?.(bytes) ?? randomBytes(bytes).toString("hex")
/** One is left out, so that the remains of a torn batch can never pass for the next one. */
const nextSequence = (content: JournalContent): number => content.lastSequence + 2

const asOpenError = (error: unknown, path: string): unknown =>
  error instanceof SyncFailed ? new WriterPoisoned({ path, cause: error }) : asDiskError(error, path)

/** `logs: "settled"` leaves no log to the journal, however many it speaks of: for those who work on files alone. */
export const openDirectory = async (
  options: RunelogOptions,
  { logs }: { readonly logs: "settled" | "on demand" }
): Promise<OpenDirectory> => {
  const resolved = resolveLimits(options.limits)
  const limits = logs === "settled" ? { ...resolved, startLogsMax: Number.POSITIVE_INFINITY } : resolved
  const disk = options.disk ?? makeDiskNode()
  const outcome = await lockDirectory(disk, options.directory).catch((error) => {
    throw asOpenError(error, options.directory)
  })
  if (outcome._tag === "Held") throw new DirectoryLocked({ path: options.directory, pid: outcome.owner?.pid })
  try {
    return await openLocked({ options, limits, disk, lock: outcome.lock })
  } catch (error) {
    await outcome.lock.release()
    throw asOpenError(error, options.directory)
  }
}

const lockDirectory = async (disk: Disk, directory: string): Promise<LockOutcome> => {
  await disk.makeDirectory(directory)
  return disk.lock(directory)
}

type Base = Pick<Parts, "options" | "limits" | "disk" | "lock">

const openLocked = async (base: Base): Promise<OpenDirectory> => {
  const { disk, options } = base
  const { directory } = options
  const isNew = !(await disk.exists(`${directory}/${META_NAME}`))
  const meta = isNew ? await createMeta(disk, options) : await MetaFile.open(disk, directory)
  const manifest = await openManifest(disk, directory, meta)
  const parts = assembleParts({ ...base, meta, manifest })
  try {
    await disk.makeDirectory(journalDirectory(directory))
    await disk.makeDirectory(logsDirectory(directory))
    await disk.syncDirectory(directory)
    const content = await makeDurable(
      parts,
      await scanJournal({ disk, directory: journalDirectory(directory), ...meta.state })
    )
    const { clean } = meta.state
    const recovery = { ...parts, journalDirectory: journalDirectory(directory) }
    const report = await recover(recovery, withDefect(options, content), settledAtOnce(parts, content))
    if (report === undefined) return { parts, content, clean, ...(await continueJournal(parts, content)) }
    const sequence = nextSequence(content)
    await compareRecovered(parts, report)
    if (content.damage === undefined) await takeOverJournal(parts, { content, report, sequence })
    const nonce = BigInt(`0x${randomHex(options, 8)}`)
    return { parts, content, report, clean, sequence, nonce, previousHeaderCrc: 0 }
  } catch (error) {
    await closeFiles(parts)
    throw error
  }
}

const openManifest = async (disk: Disk, directory: string, meta: MetaFile): Promise<Manifest> => {
  try {
    return new Manifest({ disk, directory, meta }, await readManifest(disk, directory, meta.state.manifest))
  } catch (fault) {
    // It can vouch for nothing, and stops nobody.
    if (fault instanceof JournalCorrupt)
      return new Manifest({ disk, directory, meta, fault }, { logs: new Map(), items: new Map() })
    await meta.close()
    throw fault
  }
}

/** Holds the logs that the journal touched against the manifest; the others are when they are opened. */
const compareRecovered = async (parts: Parts, { logs, removed }: RecoveryReport): Promise<void> => {
  for (const log of logs.values()) {
    if (!removed.has(log.name)) await compareHead(parts, log, parts.manifest.head(log.name))
  }
}

/** A log that does not reach what was recorded of it has lost acknowledged events: nothing is built on that. */
export const compareHead = async (
  { quarantine, store }: Pick<OpenLogOptions, "quarantine" | "store">,
  log: LogState,
  expected: LogHead | undefined
): Promise<void> => {
  const reason = headFault(expected, { head: log.durableEventId, crc: log.durableCrc })
  if (reason === undefined || log.damage !== undefined) return
  const last = lastSegment(log)
  const file = last === undefined ? store.logDirectory(log.name) : store.segmentPath(log.name, last)
  log.damage = await quarantine.record({ log: log.name, file, offset: last?.durableBytes ?? 0, reason })
}

/** What recovery found out about logs, for the manifest; what it found damaged stays as it was recorded. */
const recoveredHeads = async (
  { disk, meta, options }: Parts,
  { logs }: RecoveryReport
): Promise<Map<string, LogHead | undefined>> => {
  const heads = new Map<string, LogHead | undefined>()
  if (meta.state.manifest.generation === 0) {
    // From before there was one: what is there has to stay there.
    for (const { kind, name } of await disk.list(logsDirectory(options.directory)))
      if (kind === "directory" && isLogName(name)) heads.set(name, { head: 0, crc: 0 })
  }
  for (const { damage, durableCrc, durableEventId, name } of logs.values()) {
    if (damage !== undefined) continue
    heads.set(name, durableEventId === 0 ? undefined : { head: durableEventId, crc: durableCrc })
  }
  return heads
}

/**
 * How many logs may be brought into their segments before the directory is open. A damaged journal is not continued, and
 * neither is one whose last batch may be in memory alone, nor one with the copies of many starts: then it is all of them.
 */
const settledAtOnce = ({ limits }: Parts, { batches, damage, files }: JournalContent): number => {
  const isDurable = batches[batches.length - 1]?.copyName !== undefined
  const isCrowded = files.length > limits.journalFilesMax * 2
  return damage === undefined && isDurable && !isCrowded ? limits.startLogsMax : Number.POSITIVE_INFINITY
}

/** Closes what was opened. */
export const closeFiles = async ({
  files,
  journal,
  manifest,
  meta
}: Pick<Parts, "files" | "journal" | "manifest" | "meta">): Promise<void> => {
  await files.closeAll()
  await journal.close()
  await manifest.close()
  await meta.close()
}

/** The file `meta` is the first that a new directory gets; where it is gone and the rest is not, nothing can be trusted. */
const createMeta = async (disk: Disk, options: RunelogOptions): Promise<MetaFile> => {
  const { directory } = options
  for (const path of [journalDirectory(directory), logsDirectory(directory)]) {
    if (!(await disk.exists(path)) || (await disk.list(path)).length === 0) continue
    const file = `${directory}/${META_NAME}`
    throw new JournalCorrupt({ file, offset: 0, reason: `the file is missing, but ${path} is not empty` })
  }
  await syncAncestors(disk, directory)
  return MetaFile.create(disk, directory, randomHex(options, 16))
}

/** A directory is durable only with the entries that lead to it, which an earlier start may have made and not synced. */
const syncAncestors = async (disk: Disk, directory: string): Promise<void> => {
  for (let path = resolve(directory); path !== dirname(path); path = dirname(path)) {
    await disk.syncDirectory(dirname(path)).catch((error: NodeJS.ErrnoException) => {
      // A directory that may not be opened is one that nothing was created in.
      if (error.code !== "EACCES" && error.code !== "EPERM") throw error
    })
  }
}

/**
 * What a killed writer left may be in memory only. Recovery builds on it, so it is made durable first: else a power
 * cut in the middle of recovery could keep the segments and lose the batches they were made from.
 */
const makeDurable = async ({ disk, meta, options }: Parts, content: JournalContent): Promise<JournalContent> => {
  const directory = journalDirectory(options.directory)
  for (const name of new Set(content.batches.map((batch) => batch.name))) {
    const path = `${directory}/${name}`
    const file = await disk.open(path, "write")
    try {
      await file.sync().catch(syncFailed(path))
    } finally {
      await file.close()
    }
  }
  const copy = await copyLastBatch({ disk, directory, directoryId: meta.state.directoryId }, content)
  if (copy === undefined) return content
  const last = { ...content.batches[content.batches.length - 1]!, copyName: copy.name }
  return { ...content, files: [...content.files, copy], batches: [...content.batches.slice(0, -1), last] }
}

const withDefect = (options: RunelogOptions, content: JournalContent): JournalContent =>
  options.defect === "recovery drops the last batch" ? { ...content, batches: content.batches.slice(0, -1) } : content

const assembleParts = (base: Base & { readonly meta: MetaFile; readonly manifest: Manifest }): Parts => {
  const { options, limits, disk, manifest, meta } = base
  const { directory } = options
  const files = new FileCache(disk, limits.openFilesMax)
  const slabs = new Slabs(limits.slabBytes)
  const quarantine = new Quarantine(disk, quarantineDirectory(directory))
  const journal = new Journal({
    disk,
    directory: journalDirectory(directory),
    directoryId: meta.state.directoryId,
    limits
  })
  const journalLogs = new JournalLogs()
  const store: SegmentStore = new SegmentStore({
    disk,
    directory: logsDirectory(directory),
    files,
    slabs,
    limits,
    onSynced: (log) => maintenance.noteSynced(log)
  })
  const watchers = new Watchers()
  const onDamage = (damage: LogDamaged): void => {
    options.onDamage?.(damage)
    watchers.tell(damage.log)
  }
  const opener: OpenLogOptions = { disk, files, store, quarantine, limits, onDamage }
  const maintenance: Maintenance = new Maintenance({
    path: directory,
    journal,
    manifest,
    journalLogs,
    store,
    slabs,
    limits,
    later: options.later ?? afterTimeout,
    seal: (log) => sealClosed(opener, log),
    removeFiles: (log) => removeFiles(opener, log)
  })
  return { ...opener, ...base, slabs, journal, journalLogs, maintenance, watchers }
}

const sealClosed = async (parts: OpenLogOptions, log: LogState): Promise<void> => {
  try {
    await sealSegments(parts, log, log.durableSegments - 1)
  } catch (error) {
    if (!(await noteDamage(parts, log, error))) throw error
  }
}

/** Whether the error means that the log is damaged; it is read-only from then on, and after a restart. */
export const noteDamage = async (
  { onDamage, quarantine }: Pick<OpenLogOptions, "onDamage" | "quarantine">,
  log: LogState,
  error: unknown
): Promise<boolean> => {
  const fault = damageOf(error)
  if (fault === undefined) return false
  if (log.damage !== undefined || log.removing) return true
  const record = { log: log.name, ...fault }
  log.damage = new LogDamaged(record)
  onDamage(log.damage)
  // What only a newer build understands is no damage to it, and must not be recorded as one.
  if (error instanceof FormatUnsupported || isUnsupported(fault.reason)) return true
  // Where the disk does not take the note, the next start finds the damage again.
  await quarantine.record(record).catch(() => undefined)
  return true
}

const damageOf = (error: unknown): (ScanFault & { readonly file: string }) | undefined => {
  if (error instanceof FormatUnsupported) return { file: error.file, offset: 0, reason: error.message }
  if (!(error instanceof SegmentCorrupt)) return undefined
  const { file, offset, reason } = error
  return { file, offset, reason }
}

/** Seals and page reads under way finish first; those that come later find no segments. */
const removeFiles = (parts: OpenLogOptions, log: LogState): Promise<void> =>
  log.upkeep.exclusive(async () => {
    await log.gate.exclusive(async () => {
      const segments = await parts.store.discard(log)
      for (const segment of segments) {
        await parts.files.forget(parts.store.segmentPath(log.name, segment))
        await parts.files.forget(parts.store.indexPath(log.name, segment))
      }
      await parts.disk.removeTree(parts.store.logDirectory(log.name))
    })
    await parts.quarantine.forget(log.name)
    parts.store.markRootUnsynced()
    await parts.store.syncRoot()
  })

const takeOverJournal = async (
  parts: Parts,
  { content, report, sequence }: Pick<OpenDirectory, "content" | "report" | "sequence">
): Promise<void> => {
  const { disk, journal, limits, manifest, meta, options } = parts
  const directory = journalDirectory(options.directory)
  await removeLeftovers(parts)
  if (content.torn !== undefined) await keepTorn(parts, content.torn)
  const isUsable = ({ bytes }: FoundFile): boolean => bytes === limits.journalFileBytes
  for (const { name, path, bytes } of content.files.filter(isUsable)) {
    journal.adopt({ name, path, file: await disk.open(path, "write"), bytes, lastSequence: 0 })
  }
  for (const { name } of content.files) journal.avoid(name)
  if (journal.files === 0) await journal.grow()
  // The names of files that a killed process made may be in memory only.
  else await disk.syncDirectory(directory).catch(syncFailed(directory))
  await manifest.replaceDamaged()
  await manifest.record({ logs: await recoveredHeads(parts, report) }, { floor: sequence, sequence, clean: false })
  // Twice, for two slots: should one rot, the other must not say that nothing is in use.
  await meta.update({})
  await dropManifests(parts)
  // Files of another size come from other settings; recovery emptied them.
  for (const { path } of content.files.filter((file) => !isUsable(file))) await disk.remove(path)
}

/** Manifests that were being written, or replaced, when the machine stopped. */
const dropManifests = async ({ disk, meta, options: { directory } }: Parts): Promise<void> => {
  for (const { name } of await disk.list(directory)) {
    const generation = generationOf(name)
    if (generation !== undefined && generation !== meta.state.manifest.generation)
      await disk.remove(`${directory}/${name}`)
  }
}

const removeLeftovers = async ({ disk, options }: Parts): Promise<void> => {
  const directory = journalDirectory(options.directory)
  for (const name of (await listJournal(disk, directory)).leftovers) await disk.remove(`${directory}/${name}`)
}

type Continued = Pick<OpenDirectory, "nonce" | "previousHeaderCrc" | "report" | "sequence">

/**
 * Leaves the batches where they are and goes on behind the last of them, as their writer would have: a start that comes
 * before all of them are in segments finds one row of batches.
 */
const continueJournal = async (parts: Parts, content: JournalContent): Promise<Continued> => {
  const { disk, journal, journalLogs, maintenance, manifest, meta, options } = parts
  const directory = journalDirectory(options.directory)
  await removeLeftovers(parts)
  if (content.torn !== undefined) await eraseTorn(parts, content.torn)
  const first = content.batches[0]!
  const last = content.batches[content.batches.length - 1]!
  const { files, surplus } = await adoptFiles(parts, content)
  journal.resume(last.name, alignPage(last.offset + BATCH_HEADER_BYTES + last.payloadBytes))
  const recovery = { ...parts, journalDirectory: directory }
  const report = await indexJournal(recovery, withDefect(options, content), { files, journalLogs })
  if (journal.wantsGrowth) await growIfPossible(journal)
  await disk.syncDirectory(directory).catch(syncFailed(directory))
  for (const log of report.removed) maintenance.noteGone(log)
  await manifest.replaceDamaged()
  const change = { floor: first.sequence, sequence: last.sequence, clean: false }
  await manifest.record({ logs: await recoveredHeads(parts, report) }, change)
  // Twice, as for a journal that is taken over.
  await meta.update({})
  await dropManifests(parts)
  for (const { path } of surplus) await disk.remove(path)
  return { report, sequence: last.sequence + 1, nonce: last.nonce, previousHeaderCrc: last.headerCrc }
}

/** Takes over the journal files, those with batches as used ones; returns the rest, which is of no use. */
const adoptFiles = async (
  { disk, journal, limits }: Parts,
  content: JournalContent
): Promise<{ readonly files: ReadonlyMap<string, JournalFile>; readonly surplus: ReadonlyArray<FoundFile> }> => {
  const lastSequences = new Map<string, number>()
  for (const { copyName, name, sequence } of content.batches) {
    lastSequences.set(name, sequence)
    if (copyName !== undefined) lastSequences.set(copyName, sequence)
  }
  const files = new Map<string, JournalFile>()
  const surplus: Array<FoundFile> = []
  for (const found of content.files) {
    const { bytes, name, path } = found
    const lastSequence = lastSequences.get(name) ?? 0
    journal.avoid(name)
    if (lastSequence === 0 && bytes !== limits.journalFileBytes) {
      surplus.push(found)
      continue
    }
    const file = { name, path, bytes, lastSequence, file: await disk.open(path, "write") }
    if (lastSequence === 0) journal.adopt(file)
    else journal.adoptUsed(file)
    files.set(name, file)
  }
  return { files, surplus }
}

/** A full disk is no reason not to start while there are files: room comes with the next checkpoint. */
const growIfPossible = (journal: Journal): Promise<void> =>
  journal.grow().catch((error) => {
    if (!isFull(error) || journal.files === 0) throw error
  })

/** The next batch gets its sequence: nothing of it may pass for that one. */
const eraseTorn = async (parts: Parts, torn: FoundBatch): Promise<void> => {
  await keepTorn(parts, torn)
  const path = `${journalDirectory(parts.options.directory)}/${torn.name}`
  const file = await parts.disk.open(path, "write")
  try {
    await file.write(Buffer.alloc(BATCH_HEADER_BYTES), 0, BATCH_HEADER_BYTES, torn.offset)
    await file.sync().catch(syncFailed(path))
  } finally {
    await file.close()
  }
}

/** It was not acknowledged, as far as can be known; a copy settles doubts. */
const keepTorn = async ({ disk, options, quarantine }: Parts, torn: FoundBatch): Promise<void> => {
  const file = await disk.open(`${journalDirectory(options.directory)}/${torn.name}`, "read")
  try {
    const end = Math.min(torn.offset + BATCH_HEADER_BYTES + torn.payloadBytes, await file.size())
    await quarantine.keep(file, `journal-batch-${torn.sequence}`, torn.offset, end)
  } finally {
    await file.close()
  }
}
