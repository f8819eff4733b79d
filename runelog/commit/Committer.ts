// Group commit. Appends are encoded into the open batch; once per turn of the event loop, or sooner when it is
// large, the waiting batch is written to the journal in one piece and synced, and only then is anyone told. At
// most one batch is unsynced at any time, so a hole in the journal can only be damage. The first failed sync poisons
// the writer for good; a write that finds no room is rolled back as if it never was.

import type { DiskFile } from "../disk/Disk.ts"
import type { Placement } from "../journal/Journal.ts"
import { alignPage, sealBatch } from "../journal/JournalBatch.ts"
import { JournalSync, type SyncPlace } from "../journal/JournalSync.ts"
import type { LogState } from "../LogState.ts"
import {
  type Busy,
  EventIdOutOfOrder,
  isFull,
  type NoRoom,
  noRoomOf,
  WriterClosed,
  WriterPoisoned
} from "../RunelogErrors.ts"
import { Backpressure } from "./Backpressure.ts"
import { type Batch, commitGroups, payloadBytes, rollBackGroups } from "./Batch.ts"
import { BatchQueue } from "./BatchQueue.ts"
import type { AppendMode, CommitterOptions } from "./CommitterOptions.ts"
import { encodeAppend, encodeRemoval, groupBytes } from "./Encode.ts"
import { type Entry, measure } from "./Entry.ts"

interface TerminalAppend {
  readonly log: LogState
  readonly firstEventId: number
  readonly entries: ReadonlyArray<Entry>
  readonly bytesBound: number
}

export class Committer {
  private readonly options: CommitterOptions
  private readonly queue: BatchQueue
  private scheduled = false
  private readonly syncing: JournalSync
  /** The batch that is being synced. */
  private inFlight: Batch | undefined
  private waitingForRoom = false
  private full: NoRoom | undefined
  private poison: WriterPoisoned | undefined
  private closed = false
  private readonly pressure: Backpressure
  private readonly idleWaiters: Array<() => void> = []
  private previousHeaderCrc: number
  /** The sequence of the next batch. */
  sequence: number

  constructor(options: CommitterOptions) {
    this.options = options
    this.queue = new BatchQueue(options.slabs, options.limits)
    this.syncing = new JournalSync(options)
    this.pressure = new Backpressure(options)
    this.sequence = options.firstSequence
    this.previousHeaderCrc = options.previousHeaderCrc
  }

  /** Resolves when the entries are on stable storage. All appends of one batch share one promise. */
  append(log: LogState, firstEventId: number, entries: ReadonlyArray<Entry>, options: AppendMode): Promise<void> {
    const refusal = this.refusal(options)
    if (refusal !== undefined) return Promise.reject(refusal)
    const bytesBound = measure(log, entries, this.options.limits)
    if (typeof bytesBound !== "number") return Promise.reject(bytesBound)
    if (firstEventId !== log.nextEventId) {
      return Promise.reject(new EventIdOutOfOrder({ log: log.name, expected: log.nextEventId, got: firstEventId }))
    }
    if (!options.terminal) return this.take(log, entries, bytesBound, options)
    return this.takeTerminal({ log, firstEventId, entries, bytesBound })
  }

  private take(log: LogState, entries: ReadonlyArray<Entry>, bytesBound: number, options: AppendMode): Promise<void> {
    const batch = this.queue.batchFor(bytesBound + groupBytes(log))
    const before = batch.end
    encodeAppend(batch, log, entries, this.options.limits)
    return this.enqueue(batch, batch.end - before, options)
  }

  /**
   * A terminal append that is refused for want of room may be refused for what is beside it or before it. While the disk
   * is full others are refused at the door, so it is tried once more and has the reserve for itself.
   */
  private takeTerminal({ bytesBound, entries, firstEventId, log }: TerminalAppend): Promise<void> {
    const take = (): Promise<void> => this.take(log, entries, bytesBound, { terminal: true })
    return take().catch((error) => {
      const isNext = log.nextEventId === firstEventId && !log.removing && log.damage === undefined
      // Only the want of room leaves a writer that takes more.
      const isTried = isNext && this.refusal({ terminal: true }) === undefined
      return isTried ? take() : Promise.reject(error)
    })
  }

  /** Resolves when it is durable that the log is to be removed. */
  remove(log: LogState): Promise<void> {
    const refusal = this.refusal({ terminal: true })
    if (refusal !== undefined) return Promise.reject(refusal)
    const batch = this.queue.batchFor(groupBytes(log))
    encodeRemoval(batch, log)
    return this.enqueue(batch, groupBytes(log), { terminal: true })
  }

  /** Resolves when an append would not be answered Busy. */
  ready(): Promise<void> {
    return this.busy ? this.pressure.wait() : Promise.resolve()
  }

  /** Resolves when nothing waits for the disk any more, whatever became of it. */
  idle(): Promise<void> {
    if (this.queue.isEmpty && !this.syncing.isUnderWay) return Promise.resolve()
    return new Promise((resolve) => this.idleWaiters.push(resolve))
  }

  /** Resolves when everything taken so far was answered, whatever is taken meanwhile. */
  drained(): Promise<void> {
    const last = this.queue.last ?? this.inFlight
    return last === undefined ? Promise.resolve() : last.durable.catch(() => undefined)
  }

  /** No append is taken from here on; those taken before are still committed. */
  close(): void {
    this.closed = true
    this.tellReady()
  }

  get poisoned(): WriterPoisoned | undefined {
    return this.poison
  }

  /** An append would be answered Busy: waiting helps, for there is too much in flight and it will become less. */
  get busy(): boolean {
    return this.pressure.isTooMuch && this.poison === undefined && !this.closed && this.full === undefined
  }

  get noRoom(): NoRoom | undefined {
    return this.full
  }

  /** Somebody waits for room in the journal or in memory, or is refused for want of it. */
  get needsRoom(): boolean {
    return this.waitingForRoom || this.full !== undefined || this.pressure.isTooMuch
  }

  /** The journal has room again: go on with what waits. */
  roomFound(): void {
    this.full = undefined
    this.waitingForRoom = false
    this.tellReady()
    this.schedule()
  }

  /** Neither a checkpoint nor a new file can make room: refuse what waits, and what comes, until there is some. */
  noRoomPossible(error: NoRoom): void {
    this.full = error
    this.tellReady()
    if (!this.waitingForRoom) return
    this.waitingForRoom = false
    this.rejectAll(error)
  }

  private refusal({ terminal }: AppendMode): Busy | NoRoom | WriterClosed | WriterPoisoned | undefined {
    if (this.poison !== undefined) return this.poison
    if (this.closed) return new WriterClosed({ path: this.options.path })
    if (terminal) return undefined
    if (this.full !== undefined) {
      this.options.onNoRoom()
      return this.full
    }
    return this.busy ? this.pressure.refusal() : undefined
  }

  private enqueue(batch: Batch, bytes: number, { terminal }: AppendMode): Promise<void> {
    if (!terminal) batch.terminal = false
    this.pressure.inFlightBytes += bytes
    if (this.isWorthOverlap(batch)) this.commitNext("beside")
    else this.schedule()
    return batch.durable
  }

  /** A large batch is synced while the next is filled; a small one is not worth a thread of its own. */
  private isWorthOverlap({ end, start }: Batch): boolean {
    const { limits, policy } = this.options
    return end - start >= limits.earlyCommitBytes && !this.mustWait && policy.mayUsePool
  }

  /** What is encoded has to wait for the disk, or for room in the journal. */
  private get mustWait(): boolean {
    return this.syncing.isUnderWay || this.waitingForRoom
  }

  private schedule(): void {
    if (this.scheduled || this.mustWait) return
    this.scheduled = true
    setImmediate(this.commitScheduled)
  }

  private readonly commitScheduled = (): void => {
    this.scheduled = false
    // Another batch may have gone before the end of the turn; the next one is scheduled when it is done.
    if (!this.mustWait) this.commitNext("by policy")
  }

  private commitNext(where: SyncPlace): void {
    const batch = this.queue.peek()
    if (batch === undefined || this.poison !== undefined) return
    const bytes = alignPage(batch.end) - batch.start
    const placement = this.options.journal.place(bytes, { mayUseReserve: batch.terminal })
    if (placement === undefined) {
      this.waitingForRoom = true
      this.options.onNoRoom()
      return
    }
    this.queue.shift()
    this.write(batch, placement, bytes, where)
  }

  private write(batch: Batch, placement: Placement, bytes: number, where: SyncPlace): void {
    const { journal } = placement
    const headerCrc = sealBatch(batch.slab, batch.start, {
      payloadBytes: payloadBytes(batch),
      sequence: this.sequence,
      nonce: this.options.nonce,
      previousHeaderCrc: this.previousHeaderCrc,
      groups: batch.groups.length
    })
    batch.slab.buffer.fill(0, batch.end, batch.start + bytes)
    try {
      journal.file.writeNow(batch.slab.buffer, batch.start, bytes, placement.position)
    } catch (error) {
      this.writeFailed(batch, placement, error)
      return
    }
    journal.lastSequence = this.sequence
    batch.placement = placement
    this.previousHeaderCrc = headerCrc
    this.sync(batch, journal.file, where)
  }

  private sync(batch: Batch, file: DiskFile, where: SyncPlace): void {
    this.inFlight = batch
    this.syncing.run(file, where, (failure) => {
      this.inFlight = undefined
      // Other work may have poisoned the writer while the sync ran in the pool.
      const cause = failure ?? this.poison
      if (cause === undefined) this.settle(batch)
      else this.fail(batch, cause)
    })
  }

  private settle(batch: Batch): void {
    const sequence = this.sequence
    this.sequence += 1
    this.pressure.inFlightBytes -= payloadBytes(batch)
    commitGroups(batch, sequence, this.options.slabs)
    batch.resolve()
    this.tellReady()
    if (this.queue.isEmpty) this.tellIdle()
    else this.schedule()
    // Those who wait go on only after this; it comes last because it runs code of others.
    this.options.onDurable(batch.groups, sequence)
  }

  private writeFailed(batch: Batch, placement: Placement, error: unknown): void {
    if (!isFull(error)) {
      this.fail(batch, error)
      return
    }
    try {
      this.options.journal.retract(placement)
    } catch (second) {
      this.fail(batch, second)
      return
    }
    this.rejectAll(noRoomOf(error, placement.journal.path), batch)
  }

  private fail(batch: Batch, error: unknown): void {
    this.poisonWith(new WriterPoisoned({ path: this.options.path, cause: error }), batch)
  }

  /** The disk failed: nothing is acknowledged from here on, `batch` included. */
  poisonWith(error: WriterPoisoned, batch?: Batch): void {
    const isFirst = this.poison === undefined
    this.poison ??= error
    // Also when poisoned before: the batch that failed now must be answered.
    this.rejectAll(this.poison, batch)
    if (isFirst) this.options.onPoison(error)
  }

  /** Nothing that waits becomes durable: every log goes back to where it was acknowledged. */
  private rejectAll(error: NoRoom | WriterPoisoned, first?: Batch): void {
    const waiting = this.queue.takeAll()
    for (const batch of first === undefined ? waiting : [first, ...waiting]) {
      this.pressure.inFlightBytes -= payloadBytes(batch)
      rollBackGroups(batch, this.options.slabs)
      batch.reject(error)
    }
    this.tellReady()
    this.tellIdle()
  }

  /** Wakes appenders that were answered Busy, if there is room; also called when pending frames were written away. */
  tellReady(): void {
    if (!this.busy) this.pressure.tell()
  }

  private tellIdle(): void {
    for (const resolve of this.idleWaiters.splice(0)) resolve()
  }
}
