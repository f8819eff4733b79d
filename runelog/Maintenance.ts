// The work behind the commits: writes pending frames to segments when they grow heavy, checkpoints
// journal files that are full so that they can be recycled, makes new ones, and seals segments that
// rotation closed. Everything goes through the thread pool in small pieces, so no append waits for it
// unless the journal is truly out of room. What cannot be opened is tried again; only what fails on an open file is fatal.
import type { Committer } from "./commit/Committer.ts"
import type { Slabs } from "./commit/Slabs.ts"
import { codeOf } from "./disk/DiskFault.ts"
import { Flusher } from "./Flusher.ts"
import type { Journal } from "./journal/Journal.ts"
import type { JournalLogs } from "./journal/JournalLogs.ts"
import type { LogState } from "./LogState.ts"
import { type Later, Retry } from "./Retry.ts"
import {
  asDiskError,
  DiskFailed,
  DiskFull,
  isFull,
  isScarce,
  isUnopened,
  noRoomOf,
  ResourcesScarce,
  SyncFailed,
  WriterPoisoned
} from "./RunelogErrors.ts"
import type { Limits } from "./RunelogLimits.ts"
import type { LogHead, Manifest } from "./recovery/Manifest.ts"
import type { MetaChange } from "./recovery/MetaFile.ts"
import type { SegmentStore } from "./segment/SegmentStore.ts"

export interface MaintenanceOptions {
  readonly path: string
  readonly journal: Journal
  readonly manifest: Manifest
  /** Logs that are not in memory, of which the journal holds frames that no segment has. */
  readonly journalLogs: JournalLogs
  readonly store: SegmentStore
  readonly slabs: Slabs
  readonly limits: Limits
  readonly later: Later
  /** Seals the closed segments of a log. */
  readonly seal: (log: LogState) => Promise<void>
  /** Removes the files of a log whose removal is durable. */
  readonly removeFiles: (log: LogState) => Promise<void>
}

interface Removal {
  /** The batch that holds it; needed until the files are gone. */
  readonly sequence: number
  /** The removal of the files, once begun: a name may be used again as soon as it ends, so it must not run twice. */
  files: Promise<void> | undefined
}

const CHEAP_CHECKPOINT_LOGS = 64

/** Logs that are opened and synced at once when the journal is freed of them. */
const LANES = 3

/** What the work needs of those who hold the logs. */
export interface MaintenancePorts {
  readonly committer: Committer
  /** Told of logs of which the journal holds nothing any more. */
  readonly onSettled: (log: LogState) => void
  readonly isResident: (log: LogState) => boolean
  /** The log is in memory no more. */
  readonly onReleased: (log: LogState) => void
  /** Runs `body` with the state of a log. */
  readonly use: (log: string, body: (state: LogState) => Promise<void>) => Promise<void>
}

/** What runs beside each other; of each kind one at a time. */
/** What the manifest is to say of a log; without an end, that it is gone. */
interface Note {
  readonly end: LogHead | undefined
}

type Task = "free" | "flush" | "seal"

export class Maintenance {
  private readonly options: MaintenanceOptions
  private ports!: MaintenancePorts
  private readonly flusher: Flusher
  /** Logs with frames that only the journal makes durable. */
  private readonly unsynced = new Set<LogState>()
  private readonly closedSegments = new Set<LogState>()
  private readonly removals = new Map<LogState, Removal>()
  /** Logs whose removal is durable. Another of the same name has a state of its own. */
  private readonly gone = new WeakSet<LogState>()
  /** Heads of logs that the journal is about to forget, and logs that are gone: for the manifest. */
  private readonly unrecorded = new Map<string, Note>()
  private readonly running = new Map<Task, Promise<void>>()
  private roomWanted = false
  private stopped = false
  /** Somebody waits for the work under way: what can be left to the next start is. */
  private hurried = false
  private checkpoints = 0
  /** The disk had no room: work only when somebody asks for room again. */
  private full = false
  /** A file could not be made for want of room; not tried again until somebody asks for room. */
  private growthBlocked = false
  /** While it waits nothing is started: descriptors or memory ran out, which says nothing about the disk. */
  private readonly reopening: Retry
  /** While it waits no segment is sealed: the last seal found no room, or no descriptor. */
  private readonly sealing: Retry

  constructor(options: MaintenanceOptions) {
    this.options = options
    const { later, limits } = options
    this.reopening = new Retry({
      delayMsMin: limits.reopenAfterMsMin,
      delayMsMax: limits.reopenAfterMsMax,
      later,
      run: () => this.tryAgain()
    })
    this.sealing = new Retry({
      delayMsMin: limits.sealAfterMsMin,
      delayMsMax: limits.sealAfterMsMax,
      later,
      run: () => this.wake()
    })
    this.flusher = new Flusher({
      ...options,
      onFlushed: () => this.committer.tellReady(),
      release: (log) => this.release(log)
    })
  }

  attach(ports: MaintenancePorts): void {
    this.ports = ports
  }

  private get committer(): Committer {
    return this.ports.committer
  }

  /** Logs of which the journal holds frames that no synced segment has. */
  get unsettledLogs(): number {
    return this.unsynced.size + this.options.journalLogs.size
  }

  /** A log was opened of which only the journal held the newest frames: it is in memory now. */
  noteOpened(log: LogState): void {
    this.options.journalLogs.delete(log.name)
    // What the journal holds may all be in sealed segments already: nothing is left to be synced then.
    this.noteHead(log)
    if (log.unsyncedSequence === 0) return
    this.unsynced.add(log)
    this.flusher.noteOpened(log)
    this.wake()
  }

  /**
   * Lets a log leave the memory of which the journal holds all that no segment has; says whether it did. Not during a
   * checkpoint, which would find it gone where it wants to write it.
   */
  release(log: LogState): boolean {
    const { journalLogs, store } = this.options
    if (this.checkpoints > 0 || !this.ports.isResident(log) || !journalLogs.take(log)) return false
    store.dropPending(log)
    this.flusher.forget(log)
    this.unsynced.delete(log)
    this.ports.onReleased(log)
    return true
  }

  /** Frames of this log became durable with the batch of this sequence. */
  noteDurable(log: LogState, sequence: number): void {
    this.flusher.noteDurable(log, sequence)
    if (log.unsyncedSequence === sequence) this.unsynced.add(log)
    const closed = log.segments[log.durableSegments - 2]
    const isSealDue = closed !== undefined && closed.seal === undefined
    if (!isSealDue || this.closedSegments.has(log)) return
    this.closedSegments.add(log)
    // The state must stay until its seal: a second one of the same log would know nothing of it.
    log.users += 1
  }

  noteRemoval(log: LogState, sequence: number): void {
    this.gone.add(log)
    this.removals.set(log, { sequence, files: undefined })
    this.options.journalLogs.noteRemoval(log.name, sequence)
  }

  noteSynced(log: LogState): void {
    this.noteHead(log)
    // Recovery syncs logs before anybody knows of them.
    if (this.unsynced.delete(log)) this.ports.onSettled(log)
  }

  /** What the manifest will say of the log: everything up to there is durable, in a segment or in the journal. */
  noteHead(log: LogState): void {
    const { damage, durableCrc, durableEventId, name } = log
    // A removal that was only asked for may still be refused: until it is durable the log has to be there.
    if (this.gone.has(log) || damage !== undefined || durableEventId === 0) return
    this.unrecorded.set(name, { end: { head: durableEventId, crc: durableCrc } })
  }

  /** The journal removes the log: what was recorded of it is over. */
  noteGone(log: string): void {
    this.unrecorded.set(log, { end: undefined })
  }

  /** A log came into being as a whole; resolves when the manifest knows of it. */
  recordHead(log: string, head: LogHead): Promise<void> {
    this.unrecorded.set(log, { end: head })
    return this.record()
  }

  /** What has to be there of a log, as the manifest says or will say; nothing when no such log has to be there. */
  expected(log: string): LogHead | undefined {
    const note = this.unrecorded.get(log)
    return note === undefined ? this.options.manifest.head(log) : note.end
  }

  /** A batch waits for journal room. */
  wantRoom(): void {
    this.roomWanted = true
    this.wake()
  }

  /**
   * Starts the work there is; cheap to call after every commit. Segments are written, checkpointed and sealed beside
   * each other: frames must leave the memory also while a checkpoint waits for the disk.
   */
  wake(): void {
    if (this.stopped || this.reopening.isWaiting) return
    this.growJournal()
    if (this.roomWanted || (!this.full && (this.removals.size > 0 || this.checkpointDue))) this.start("free")
    if (this.full) return
    if (this.flusher.isDue) this.start("flush")
    if (this.closedSegments.size > 0 && !this.sealing.isWaiting) this.start("seal")
  }

  private start(task: Task): void {
    if (this.running.has(task)) return
    const ended = this.work(task).finally(() => {
      this.running.delete(task)
      this.wake()
    })
    this.running.set(task, ended)
  }

  private async work(task: Task): Promise<void> {
    try {
      if (task === "flush") await this.flusher.flushDue()
      else if (task === "seal") await this.sealAll()
      else await this.free()
      this.reopening.succeeded()
    } catch (error) {
      if (isScarce(error)) this.postpone(error)
      else if (isFull(error) || isUnopened(error) || error instanceof DiskFull) this.noRoom(error)
      else this.poison(error)
    }
  }

  /** Appends go on while memory and journal have room; where they have none, those that wait are told. */
  private postpone(error: unknown): void {
    if (this.committer.needsRoom) this.committer.noRoomPossible(noRoomOf(error, this.options.path))
    this.reopening.plan()
  }

  private tryAgain(): void {
    if (this.committer.needsRoom) this.roomWanted = true
    this.wake()
  }

  /**
   * Full journal files are worth a checkpoint at once while few logs wait for it. With many, each costs a sync
   * of its own, so the journal is first let grow to half of what it may.
   */
  private get checkpointDue(): boolean {
    const { journal, limits } = this.options
    if (journal.checkpointTarget === 0) return false
    return this.unsettledLogs <= CHEAP_CHECKPOINT_LOGS || journal.usedFiles * 2 > limits.journalFilesMax
  }

  /** Frees the journal of what is removed and of what is in segments. */
  private async free(): Promise<void> {
    const roomWanted = this.roomWanted
    this.roomWanted = false
    if (roomWanted) this.growthBlocked = false
    // Removals first: a checkpoint frees nothing that still waits for them.
    await this.removeAll()
    if (roomWanted) await this.checkpoint(this.committer.sequence)
    else if (this.checkpointDue) await this.checkpoint(this.options.journal.checkpointTarget)
    this.full = false
    this.committer.roomFound()
  }

  /** A new file is filled beside all other work: waiting for a checkpoint is what it is there to avoid. */
  private growJournal(): void {
    const { journal } = this.options
    if (!journal.wantsGrowth || this.growthBlocked) return
    journal.grow().then(
      () => {
        this.full = false
        this.committer.roomFound()
        this.wake()
      },
      (error) => {
        if (isScarce(error)) this.postpone(error)
        else if (isFull(error) || isUnopened(error)) this.growthBlocked = true
        else this.poison(error)
      }
    )
  }

  /** Brings every frame of batches up to `target` into synced segments, then frees the journal behind them. */
  async checkpoint(target: number): Promise<void> {
    this.checkpoints += 1
    try {
      // With many logs to open, whoever waits for room gets it file by file.
      const steps = this.options.journalLogs.size > 0 ? this.options.journal.targetsBelow(target) : []
      for (const step of steps) {
        await this.checkpointUpTo(step)
        this.committer.roomFound()
      }
      await this.checkpointUpTo(target)
    } finally {
      this.checkpoints -= 1
    }
  }

  private async checkpointUpTo(target: number): Promise<void> {
    await this.settleUnopened(target)
    const due = new Set([...this.unsynced].filter((log) => log.unsyncedSequence <= target))
    const flushed = [...due]
    await this.flusher.flush(due, { sync: true })
    await this.removeAll()
    // Taken before the sync of the root: a log that a seal syncs meanwhile may have its directory only since.
    const floor = this.lowestNeeded()
    for (const log of flushed) if (this.unsynced.has(log)) this.noteHead(log)
    await this.options.store.syncRoot()
    // The journal is overwritten only once it is durable that recovery does not need it.
    await this.record({ floor })
    this.options.journalLogs.forgetRemovals(floor)
    this.options.journal.recycle(floor)
    await this.options.journal.removeOdd(floor)
  }

  /** Opens the logs that only the journal has the news of, and brings those into their segments. */
  private async settleUnopened(target: number): Promise<void> {
    const names = this.options.journalLogs.upTo(target).values()
    let failed = false
    const lane = async (): Promise<void> => {
      for (const name of names) {
        if (this.hurried || failed) return
        await this.ports
          .use(name, (log) => this.flusher.flush(new Set([log]), { sync: true }))
          .catch((error) => {
            failed = true
            // What became of the disk is judged by what the system said.
            throw error instanceof DiskFailed || error instanceof ResourcesScarce ? error.cause : error
          })
      }
    }
    const lanes = Array.from({ length: LANES }, lane)
    await Promise.allSettled(lanes)
    await Promise.all(lanes)
  }

  /** Makes what the manifest lacks durable, and with it a change of meta. */
  async record(meta: MetaChange = {}): Promise<void> {
    const notes = new Map(this.unrecorded)
    const logs = new Map([...notes].map(([name, { end }]) => [name, end]))
    await this.options.manifest.record({ logs }, meta)
    // Each note by itself: that a log is gone may have been noted a second time since, behind a life of its own.
    for (const [name, note] of notes) if (this.unrecorded.get(name) === note) this.unrecorded.delete(name)
  }

  private lowestNeeded(): number {
    let lowest = Math.min(this.committer.sequence, this.options.journalLogs.lowestSequence)
    for (const log of this.unsynced) lowest = Math.min(lowest, log.unsyncedSequence)
    for (const { sequence } of this.removals.values()) lowest = Math.min(lowest, sequence)
    return lowest
  }

  /** Removes the files of logs whose removal is durable. */
  async removeAll(): Promise<void> {
    for (const [log, removal] of [...this.removals]) {
      removal.files ??= this.remove(log)
      await removal.files.catch((error) => {
        removal.files = undefined
        throw error
      })
    }
  }

  private async remove(log: LogState): Promise<void> {
    this.flusher.forget(log)
    this.sealDone(log)
    await this.options.removeFiles(log)
    this.unsynced.delete(log)
    this.removals.delete(log)
    this.unrecorded.set(log.name, { end: undefined })
  }

  /** A log whose seal finds no room keeps its place: it is sealed when there is some. */
  private async sealAll(): Promise<void> {
    for (const log of this.closedSegments) {
      try {
        await this.options.seal(log)
        this.sealDone(log)
      } catch (error) {
        if (!isFull(error) && !isUnopened(error)) {
          this.sealDone(log)
          throw error
        }
        this.sealing.plan()
      }
    }
    if (!this.sealing.isWaiting) this.sealing.succeeded()
  }

  private sealDone(log: LogState): void {
    if (this.closedSegments.delete(log)) log.users -= 1
  }

  private noRoom(error: unknown): void {
    this.full = true
    this.committer.noRoomPossible(noRoomOf(error, this.options.path))
  }

  /** What a call is told when its work fails; a disk that fails on a change fails for good. */
  failure(error: unknown): unknown {
    const isOfDisk = codeOf(error) !== undefined && !isFull(error) && !isUnopened(error)
    if (!(error instanceof SyncFailed || isOfDisk)) return asDiskError(error, this.options.path)
    this.poison(error)
    return this.committer.poisoned
  }

  private poison(error: unknown): void {
    this.stopped = true
    this.committer.poisonWith(new WriterPoisoned({ path: this.options.path, cause: error }))
  }

  /** Waits for the work under way, then starts no more. */
  async stop(): Promise<void> {
    this.stopped = true
    this.reopening.stop()
    this.sealing.stop()
    this.hurried = true
    await Promise.all(this.running.values())
    this.hurried = false
  }
}
