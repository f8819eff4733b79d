// Group commit. Appends are encoded into the open batch; once per turn of the event loop the waiting batch
// is written to the journal in one piece and synced, and only then is anyone told. At most one batch is
// unsynced at any time, so a hole in the journal can only be damage. The first failed sync poisons
// the writer for good; a write that finds no room is rolled back as if it never was.
import {
  type Batch,
  type Entry,
  encodeAppend,
  encodeRemoval,
  type Group,
  groupBytes,
  measure,
  openBatch
} from "./Batch.ts"
import { Busy, DiskFull, EventIdOutOfOrder, isFull, WriterClosed, WriterPoisoned } from "./Errors.ts"
import type { Journal, Placement } from "./Journal.ts"
import { alignPage, BATCH_HEADER_BYTES, groupKind, sealBatch } from "./JournalBatch.ts"
import type { Limits } from "./Limits.ts"
import { commitExtent, type LogState, rollBack } from "./LogState.ts"
import type { Slab, Slabs } from "./Slabs.ts"
import type { SyncPolicy } from "./SyncPolicy.ts"

export interface CommitterOptions {
  readonly path: string
  readonly journal: Journal
  readonly slabs: Slabs
  readonly limits: Limits
  readonly policy: SyncPolicy
  readonly nonce: bigint
  readonly firstSequence: number
  readonly nowMs: () => number
  /** Called after the groups of a batch became durable, before its appenders are told. */
  readonly onDurable: (groups: ReadonlyArray<Group>, sequence: number) => void
  /** Called when a batch finds no room in the journal. */
  readonly onNoRoom: () => void
  readonly onPoison: (error: WriterPoisoned) => void
}

const NO_HEADER = Buffer.alloc(BATCH_HEADER_BYTES)

export class Committer {
  private readonly options: CommitterOptions
  private open: Batch | undefined
  private slab: Slab | undefined
  /** Closed batches that wait for their turn, oldest first. */
  private readonly queue: Array<Batch> = []
  private scheduled = false
  private syncing = false
  /** The batch that is being synced in the pool. */
  private inFlight: Batch | undefined
  private waitingForRoom = false
  private full: DiskFull | undefined
  private poison: WriterPoisoned | undefined
  private closed = false
  private inFlightBytes = 0
  private readonly readyWaiters: Array<() => void> = []
  private readonly idleWaiters: Array<() => void> = []
  private previousHeaderCrc = 0
  /** The sequence of the next batch. */
  sequence: number

  constructor(options: CommitterOptions) {
    this.options = options
    this.sequence = options.firstSequence
  }

  /** Resolves when the entries are on stable storage. All appends of one batch share one promise. */
  append(
    log: LogState,
    firstEventId: number,
    entries: ReadonlyArray<Entry>,
    options: { readonly terminal: boolean }
  ): Promise<void> {
    const refusal = this.refusal(options.terminal)
    if (refusal !== undefined) return Promise.reject(refusal)
    const measured = measure(log, entries, this.options.limits)
    if (measured._tag === "Refused") return Promise.reject(measured.error)
    if (firstEventId !== log.nextEventId) {
      return Promise.reject(new EventIdOutOfOrder({ log: log.name, expected: log.nextEventId, got: firstEventId }))
    }
    const batch = this.batchFor(measured.bytesBound + groupBytes(log))
    const before = batch.end
    encodeAppend(batch, log, entries, this.options.limits)
    return this.enqueue(batch, batch.end - before, options.terminal)
  }

  /** Resolves when it is durable that the log is to be removed. */
  remove(log: LogState): Promise<void> {
    const refusal = this.refusal(true)
    if (refusal !== undefined) return Promise.reject(refusal)
    const batch = this.batchFor(groupBytes(log))
    encodeRemoval(batch, log)
    return this.enqueue(batch, groupBytes(log), true)
  }

  /** Resolves when an append would not be answered Busy. */
  ready(): Promise<void> {
    if (!this.isBusy) return Promise.resolve()
    return new Promise((resolve) => this.readyWaiters.push(resolve))
  }

  /** Resolves when nothing waits for the disk any more, whatever became of it. */
  idle(): Promise<void> {
    if (this.open === undefined && this.queue.length === 0 && !this.syncing) return Promise.resolve()
    return new Promise((resolve) => this.idleWaiters.push(resolve))
  }

  /** Resolves when everything taken so far was answered, whatever is taken meanwhile. */
  drained(): Promise<void> {
    const last = this.open ?? this.queue[this.queue.length - 1] ?? this.inFlight
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

  get overloaded(): boolean {
    const { limits, slabs } = this.options
    return this.inFlightBytes > limits.inFlightBytesMax || slabs.bytes > limits.pendingBytesMax
  }

  /** Waiting helps: there is too much in flight, and it will become less. */
  private get isBusy(): boolean {
    return this.overloaded && this.poison === undefined && !this.closed
  }

  /** The journal has room again: go on with what waits. */
  roomFound(): void {
    this.full = undefined
    this.waitingForRoom = false
    this.tellReady()
    this.schedule()
  }

  /** Neither a checkpoint nor a new file can make room: refuse what waits, and what comes, until there is some. */
  noRoomPossible(error: DiskFull): void {
    this.full = error
    if (!this.waitingForRoom) return
    this.waitingForRoom = false
    this.rejectAll(error)
  }

  private refusal(terminal: boolean): Busy | DiskFull | WriterClosed | WriterPoisoned | undefined {
    if (this.poison !== undefined) return this.poison
    if (this.closed) return new WriterClosed({ path: this.options.path })
    if (terminal) return undefined
    if (this.full !== undefined) {
      this.options.onNoRoom()
      return this.full
    }
    if (!this.overloaded) return undefined
    return new Busy({ inFlightBytes: this.inFlightBytes, inFlightBytesMax: this.options.limits.inFlightBytesMax })
  }

  private batchFor(bytesBound: number): Batch {
    const open = this.open
    const bytes = open === undefined ? 0 : open.end - open.start + bytesBound
    const fits =
      open !== undefined && open.start + bytes <= open.slab.buffer.length && bytes <= this.options.slabs.slabBytes
    if (fits) return open
    if (open !== undefined) this.closeOpen(open)
    const slab = this.slabFor(bytesBound)
    this.options.slabs.retain(slab)
    this.open = openBatch(slab)
    return this.open
  }

  private slabFor(bytesBound: number): Slab {
    const { slabs } = this.options
    const current = this.slab
    const needed = BATCH_HEADER_BYTES + bytesBound
    if (current !== undefined && alignPage(current.used) + needed <= current.buffer.length) return current
    if (current !== undefined) slabs.release(current)
    this.slab = slabs.take(alignPage(needed))
    return this.slab
  }

  private closeOpen(batch: Batch): void {
    batch.slab.used = alignPage(batch.end)
    this.queue.push(batch)
    this.open = undefined
  }

  private enqueue(batch: Batch, bytes: number, terminal: boolean): Promise<void> {
    if (!terminal) batch.terminal = false
    this.inFlightBytes += bytes
    this.schedule()
    return batch.durable
  }

  private schedule(): void {
    if (this.scheduled || this.syncing || this.waitingForRoom) return
    this.scheduled = true
    setImmediate(this.commitNext)
  }

  private readonly commitNext = (): void => {
    this.scheduled = false
    if (this.queue.length === 0 && this.open !== undefined) this.closeOpen(this.open)
    const batch = this.queue[0]
    if (batch === undefined || this.poison !== undefined) return
    const bytes = alignPage(batch.end) - batch.start
    const placement = this.options.journal.place(bytes, { mayUseReserve: batch.terminal })
    if (placement === undefined) {
      this.waitingForRoom = true
      this.options.onNoRoom()
      return
    }
    this.queue.shift()
    this.write(batch, placement, bytes)
  }

  private write(batch: Batch, placement: Placement, bytes: number): void {
    const { journal } = placement
    const headerCrc = sealBatch(batch.slab, batch.start, {
      payloadBytes: batch.end - batch.start - BATCH_HEADER_BYTES,
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
    this.previousHeaderCrc = headerCrc
    this.sync(batch, journal.file)
  }

  private sync(batch: Batch, file: { readonly sync: () => Promise<void>; readonly syncNow: () => void }): void {
    const { nowMs, policy } = this.options
    const startedMs = nowMs()
    if (policy.mode === "inline") {
      try {
        file.syncNow()
      } catch (error) {
        this.fail(batch, error)
        return
      }
      policy.observe(nowMs() - startedMs)
      this.settle(batch)
      return
    }
    this.syncing = true
    this.inFlight = batch
    file.sync().then(
      () => {
        this.syncing = false
        this.inFlight = undefined
        policy.observe(nowMs() - startedMs)
        if (this.poison === undefined) this.settle(batch)
        else this.fail(batch, this.poison)
      },
      (error) => {
        this.syncing = false
        this.inFlight = undefined
        this.fail(batch, error)
      }
    )
  }

  private settle(batch: Batch): void {
    const sequence = this.sequence
    this.sequence += 1
    this.inFlightBytes -= batch.end - batch.start - BATCH_HEADER_BYTES
    for (const group of batch.groups) {
      if (group.kind === groupKind.removal) continue
      group.sequence = sequence
      this.options.slabs.retain(group.slab)
      commitExtent(group.log, group, group.crc)
    }
    this.options.slabs.release(batch.slab)
    batch.resolve()
    this.tellReady()
    if (this.queue.length > 0 || this.open !== undefined) this.schedule()
    else this.tellIdle()
    // Those who wait go on only after this; it comes last because it runs code of others.
    this.options.onDurable(batch.groups, sequence)
  }

  private writeFailed(batch: Batch, placement: Placement, error: unknown): void {
    if (!isFull(error)) {
      this.fail(batch, error)
      return
    }
    try {
      // Some of it may have been written. What is refused here must not come back after a crash.
      placement.journal.file.writeNow(NO_HEADER, 0, NO_HEADER.length, placement.position)
      placement.journal.file.syncNow()
    } catch (second) {
      this.fail(batch, second)
      return
    }
    this.options.journal.unplace(placement)
    this.queue.unshift(batch)
    this.rejectAll(new DiskFull({ path: placement.journal.path, reason: (error as Error).message }))
  }

  private fail(batch: Batch, error: unknown): void {
    this.queue.unshift(batch)
    this.poisonWith(new WriterPoisoned({ path: this.options.path, cause: error }))
  }

  /** The disk failed: nothing is acknowledged from here on. */
  poisonWith(error: WriterPoisoned): void {
    const isFirst = this.poison === undefined
    this.poison ??= error
    // Also when poisoned before: the batch that failed now must be answered.
    this.rejectAll(this.poison)
    if (isFirst) this.options.onPoison(error)
  }

  /** Nothing that waits becomes durable: every log goes back to where it was acknowledged. */
  private rejectAll(error: DiskFull | WriterPoisoned): void {
    if (this.open !== undefined) this.closeOpen(this.open)
    for (const batch of this.queue.splice(0)) {
      for (const group of batch.groups) rollBack(group.log)
      this.inFlightBytes -= batch.end - batch.start - BATCH_HEADER_BYTES
      this.options.slabs.release(batch.slab)
      batch.reject(error)
    }
    this.tellReady()
    this.tellIdle()
  }

  /** Wakes appenders that were answered Busy, if there is room; also called when pending frames were written away. */
  tellReady(): void {
    if (this.isBusy) return
    for (const resolve of this.readyWaiters.splice(0)) resolve()
  }

  private tellIdle(): void {
    for (const resolve of this.idleWaiters.splice(0)) resolve()
  }
}
