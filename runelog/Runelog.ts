// The runelog: append-only logs by name, crash-safe, in one directory with one writer.
//
// What it promises: an append that resolves is on stable storage; after any crash every log is a prefix without
// a gap that holds everything acknowledged; a batch is all there or not at all; damage is reported
// with file and offset, never skipped; event ids start at 1, are dense and are never reused.
import type { Group } from "./commit/Batch.ts"
import { Committer } from "./commit/Committer.ts"
import type { Entry } from "./commit/Entry.ts"
import { SyncPolicy } from "./commit/SyncPolicy.ts"
import { groupKind } from "./journal/JournalBatch.ts"
import { openFromJournal } from "./journal/JournalIndex.ts"
import type { LogState } from "./LogState.ts"
import { isUnknown, LogWork } from "./LogWork.ts"
import { OpenCalls } from "./OpenCalls.ts"
import type { RunelogOptions } from "./Options.ts"
import { journalDirectory } from "./Paths.ts"
import { ResidentLogs } from "./ResidentLogs.ts"
import {
  asDiskError,
  type JournalCorrupt,
  type LogDamaged,
  LogUnknown,
  type NoRoom,
  type WriterPoisoned
} from "./RunelogErrors.ts"
import {
  type Imported,
  importEntries,
  importSegments,
  type SealedFile,
  type SegmentSource,
  sealedFiles
} from "./recovery/Import.ts"
import { closeFiles, compareHead, noteDamage, type OpenDirectory, openDirectory, type Parts } from "./recovery/Open.ts"
import { openLog } from "./recovery/OpenLog.ts"
import { type Page, type RawPage, type RawRequest, type ReadFilter, readPage, readRaw } from "./segment/Reader.ts"
import type { Watchers } from "./Watchers.ts"

export interface AppendOptions {
  /** The append may use the room that is kept for the last words of a turn when the disk is full. */
  readonly terminal?: boolean
}

export interface ReadOptions {
  /** The last event the reader has; 0 for the beginning. */
  readonly after: number
  readonly bytesMax?: number
  readonly filter?: ReadFilter
}

export interface RemoveOptions {
  /** The newest event that whoever removes the log knows of. */
  readonly head?: number
}

export interface RunelogStats {
  readonly residentLogs: number
  /** Logs that are not in memory, of which the journal holds frames that no segment has. */
  readonly journalLogs: number
  readonly journalFiles: number
  readonly memoryBytes: number
  readonly sequence: number
}

export class Runelog {
  private readonly parts: Parts
  private readonly committer: Committer
  private readonly residents: ResidentLogs
  private readonly removing = new Map<string, Promise<void>>()
  private readonly calls: OpenCalls
  private readonly work: LogWork
  private readonly watchers: Watchers
  private closing: Promise<void> | undefined
  /** What recovery found at the last open. */
  readonly recovered: {
    readonly clean: boolean
    readonly batches: number
    readonly frames: number
    /** The logs that were written to since the last checkpoint. */
    readonly logs: ReadonlyArray<string>
  }
  /** Set when the journal is damaged: everything good can be read, nothing can be appended. */
  readonly readOnly: JournalCorrupt | undefined

  private constructor({ clean, content, nonce, parts, previousHeaderCrc, report, sequence }: OpenDirectory) {
    this.parts = parts
    this.watchers = parts.watchers
    this.residents = new ResidentLogs({
      open: (log) => this.openLog(log),
      logsMax: parts.limits.residentLogsMax,
      release: (log) => parts.maintenance.release(log),
      logs: report.logs
    })
    this.recovered = { clean, batches: report.batches, frames: report.frames, logs: report.names }
    this.readOnly = content.damage
    const { options, journal, slabs, limits } = parts
    this.committer = new Committer({
      path: options.directory,
      journal,
      slabs,
      limits,
      policy: new SyncPolicy(options.sync),
      nonce,
      firstSequence: sequence,
      previousHeaderCrc,
      nowMs: options.nowMs ?? (() => performance.now()),
      onDurable: (groups, sequence) => this.noteDurable(groups, sequence),
      onNoRoom: () => parts.maintenance.wantRoom(),
      onPoison: (error) => options.onPoison?.(error)
    })
    parts.maintenance.attach({
      committer: this.committer,
      onSettled: (log) => this.residents.settled(log),
      isResident: (log) => this.residents.get(log.name) === log,
      onReleased: (log) => this.residents.forget(log.name),
      use: (log, body) => this.residents.use(log, body)
    })
    this.calls = new OpenCalls({ path: options.directory, failure: (error) => parts.maintenance.failure(error) })
    this.work = new LogWork({ parts, committer: this.committer, residents: this.residents, readOnly: content.damage })
  }

  /** Opens the directory as its one writer, recovering what a crash left behind. */
  static async open(options: RunelogOptions): Promise<Runelog> {
    return new Runelog(await openDirectory(options, { logs: "on demand" }))
  }

  /** Resolves once the entries are durable; they get the ids from `firstEventId` on, which must be the log's next. */
  append(log: string, firstEventId: number, entries: ReadonlyArray<Entry>, options?: AppendOptions): Promise<void> {
    const state = this.residents.get(log)
    if (state !== undefined) return this.appendTo(state, firstEventId, entries, options)
    return this.appendOnceOpen(log, firstEventId, entries, options)
  }

  private appendOnceOpen(
    log: string,
    firstEventId: number,
    entries: ReadonlyArray<Entry>,
    options?: AppendOptions
  ): Promise<void> {
    return this.find(log).then((opened) =>
      // It may have been forgotten again before this could run.
      this.residents.get(log) === opened
        ? this.appendTo(opened, firstEventId, entries, options)
        : this.append(log, firstEventId, entries, options)
    )
  }

  private appendTo(
    state: LogState,
    firstEventId: number,
    entries: ReadonlyArray<Entry>,
    options?: AppendOptions
  ): Promise<void> {
    if (state.removing) return Promise.reject(new LogUnknown({ log: state.name }))
    if (state.damage !== undefined) return Promise.reject(state.damage)
    if (this.readOnly !== undefined) return Promise.reject(this.readOnly)
    return this.committer.append(state, firstEventId, entries, { terminal: options?.terminal ?? false })
  }

  /** Resolves when an append would not be answered Busy. */
  ready(): Promise<void> {
    return this.committer.ready()
  }

  /** An append would be answered Busy. */
  get busy(): boolean {
    return this.committer.busy
  }

  /** Why nothing more can be appended to a log before a restart or a repair, as far as is known; nothing when it can. */
  async refusal(log: string): Promise<LogDamaged | JournalCorrupt | WriterPoisoned | undefined> {
    return (await this.find(log)).damage ?? this.readOnly ?? this.poisoned
  }

  /** The newest durable event of a log; 0 when there is none. */
  async head(log: string): Promise<number> {
    const inJournal = this.residents.get(log) === undefined ? this.parts.journalLogs.head(log) : undefined
    if (inJournal !== undefined && this.calls.refusal === undefined) return inJournal
    return (await this.find(log)).durableEventId
  }

  read(log: string, options: ReadOptions): Promise<Page> {
    return this.using(log, (state) => {
      if (isUnknown(state)) throw new LogUnknown({ log })
      const request = {
        after: options.after,
        bytesMax: options.bytesMax ?? this.parts.limits.pageBytes,
        filter: options.filter
      }
      return this.notingDamage(state, readPage(this.parts, state, request))
    })
  }

  /** A page of frames as they lie in their segment, in the caller's buffer; nothing when `read` has them in memory. */
  readRaw(log: string, request: RawRequest): Promise<RawPage | undefined> {
    return this.using(log, (state) => {
      if (isUnknown(state)) throw new LogUnknown({ log })
      return this.notingDamage(state, readRaw(this.parts, state, request))
    })
  }

  private notingDamage<A>(state: LogState, reading: Promise<A>): Promise<A> {
    return reading.catch(async (error) => {
      await noteDamage(this.parts, state, error)
      throw asDiskError(error, this.parts.store.logDirectory(state.name))
    })
  }

  /** Calls `listener` whenever the log has new durable events or is removed; returns how to stop. It must not throw. */
  watch(log: string, listener: () => void): () => void {
    return this.watchers.add(log, listener)
  }

  /** As `watch`, for every log. */
  watchAll(listener: (log: string) => void): () => void {
    return this.watchers.addEverywhere(listener)
  }

  /** Closes and seals all of the log so far, dropping superseded deltas; returns the newest digest. */
  seal(log: string): Promise<string> {
    return this.using(log, (state) => this.work.seal(state))
  }

  /** As `seal`, and what is sealed takes less room from then on. For logs at rest: reading them costs a little more. */
  pack(log: string): Promise<void> {
    return this.using(log, (state) => this.work.pack(state))
  }

  /** Bytes that a seal of the log would go through; 0 when it is not in memory or cannot be sealed. */
  unsealedBytes(log: string): number {
    const state = this.residents.get(log)
    return state === undefined ? 0 : this.work.unsealedBytes(state)
  }

  /** Removes a log and its files, if it ends at `head` where one is given; resolves when that is durable. */
  remove(log: string, options?: RemoveOptions): Promise<void> {
    const removing =
      this.removing.get(log) ??
      this.using(log, (state) => this.work.remove(state, options?.head)).finally(() => this.removing.delete(log))
    this.removing.set(log, removing)
    return removing
  }

  /** Seals all of a log; its files can then be copied as they are, until something is appended. */
  async sealedFiles(log: string): Promise<ReadonlyArray<SealedFile>> {
    await this.seal(log)
    return this.using(log, (state) => sealedFiles(this.parts, state))
  }

  /** Makes copies of sealed segments the log of that name, which must not exist; all of it or nothing. */
  importSegments(log: string, segments: AsyncIterable<SegmentSource>): Promise<Imported> {
    return this.using(log, (state) => this.work.import(state, (options) => importSegments(options, log, segments)))
  }

  /** As `importSegments`, from entries, which get the ids from 1 on. */
  importEntries(log: string, entries: AsyncIterable<Entry>): Promise<Imported> {
    return this.using(log, (state) => this.work.import(state, (options) => importEntries(options, log, entries)))
  }

  /** The names of all logs with durable events. */
  list(): Promise<ReadonlyArray<string>> {
    return this.calls.run(() => this.work.list())
  }

  /** Files beside the logs that must be there, each with what tells it from another. */
  get items(): ReadonlyMap<string, string> {
    return this.parts.manifest.items
  }

  /** Records which files beside the logs must be there, or no longer (`undefined`); resolves when that is durable. */
  recordItems(items: ReadonlyMap<string, string | undefined>): Promise<void> {
    return this.calls.run(() => this.work.recordItems(items))
  }

  /** Brings everything durable into synced segments and frees the journal. */
  checkpoint(): Promise<void> {
    return this.calls.run(() => this.work.checkpoint())
  }

  /** Nobody needs the log for a while: what memory holds of it is forgotten if nothing is lost by that. */
  rest(log: string): void {
    this.residents.rest(log)
    this.parts.slabs.trim()
  }

  get stats(): RunelogStats {
    const { journal, journalLogs, slabs } = this.parts
    return {
      residentLogs: this.residents.size,
      journalLogs: journalLogs.size,
      journalFiles: journal.files,
      memoryBytes: slabs.bytes,
      sequence: this.committer.sequence
    }
  }

  /** Why appends are refused until there is room again, if they are. */
  get noRoom(): NoRoom | undefined {
    return this.committer.noRoom
  }

  get poisoned(): WriterPoisoned | undefined {
    return this.committer.poisoned
  }

  /** Finishes what was taken, leaves the directory clean and gives the lock back. */
  close(): Promise<void> {
    this.closing ??= this.closeNow(this.poisoned)
    return this.closing
  }

  private async closeNow(poisonedBefore: WriterPoisoned | undefined): Promise<void> {
    const { lock, maintenance } = this.parts
    this.calls.refuse()
    this.committer.close()
    this.watchers.tellAll()
    await this.committer.idle()
    await this.calls.settled()
    await this.residents.idle()
    await maintenance.stop()
    try {
      if (this.poisoned === undefined && this.readOnly === undefined) await this.work.leaveClean()
    } catch (error) {
      throw maintenance.failure(error)
    } finally {
      await closeFiles(this.parts)
      await lock.release()
    }
    // Whoever was told that the disk failed knows; whoever closed in good faith must hear it here.
    if (poisonedBefore === undefined && this.poisoned !== undefined) throw this.poisoned
  }

  /** The state of a log; it may be forgotten before the caller goes on. */
  private find(log: string): Promise<LogState> {
    return this.calls.refusal === undefined ? this.residents.find(log) : Promise.reject(this.calls.refusal)
  }

  /** Runs `body` with the state of a log, which is not forgotten meanwhile. */
  private using<A>(log: string, body: (state: LogState) => Promise<A>): Promise<A> {
    return this.calls.run(() => this.residents.use(log, body))
  }

  private async openLog(log: string): Promise<LogState> {
    const { journalLogs, maintenance, options } = this.parts
    try {
      const state = journalLogs.has(log)
        ? await openFromJournal(
            { ...this.parts, journalDirectory: journalDirectory(options.directory) },
            log,
            journalLogs.groups(log)
          )
        : await openLog(this.parts, { log, journalFirstId: undefined })
      const expected = maintenance.expected(log)
      await compareHead(this.parts, state, expected)
      if (journalLogs.has(log)) maintenance.noteOpened(state)
      // From before there was a manifest, or from an import that was cut short behind its last step.
      if (expected === undefined || expected.head === 0) maintenance.noteHead(state)
      return state
    } catch (error) {
      // Nothing that was acknowledged depends on it: no reason to stop writing.
      throw asDiskError(error, this.parts.store.logDirectory(log))
    }
  }

  private noteDurable(groups: ReadonlyArray<Group>, sequence: number): void {
    const { maintenance } = this.parts
    for (const { log, kind } of groups) {
      if (kind === groupKind.removal) maintenance.noteRemoval(log, sequence)
      else maintenance.noteDurable(log, sequence)
    }
    maintenance.wake()
    if (!this.watchers.isEmpty) for (const { log } of groups) this.watchers.tell(log.name)
  }
}
