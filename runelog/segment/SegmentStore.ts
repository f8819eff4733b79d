// Moves durable frames from memory into segment files. Durability never depends on it: until a sync covers
// them the frames are in the journal. Owns creation, writing, syncing and the `.idx` beside each segment.

import type { Slabs } from "../commit/Slabs.ts"
import type { Disk } from "../disk/Disk.ts"
import type { Extent, LogState, SegmentState } from "../LogState.ts"
import { isFull, isUnopened, SyncFailed } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { FileCache } from "./FileCache.ts"
import { bytesIn, Gatherer, NO_HEADER } from "./Gatherer.ts"
import { encodeIndex } from "./IndexFile.ts"
import { encodeSegmentHeader, indexFileName, SEGMENT_HEADER_BYTES, segmentFileName } from "./Segment.ts"

export interface SegmentStoreOptions {
  readonly disk: Disk
  /** The directory that holds a directory per log. */
  readonly directory: string
  readonly files: FileCache
  readonly slabs: Slabs
  readonly limits: Limits
  /** The log has nothing left that only the journal holds. */
  readonly onSynced: (log: LogState) => void
}

export class SegmentStore {
  private readonly options: SegmentStoreOptions
  private readonly gatherer = new Gatherer()
  private rootUnsynced = false
  private rootSyncing: Promise<void> | undefined
  /** The first sync that failed. A later one may claim success over what was lost with it: none is trusted any more. */
  private failure: SyncFailed | undefined

  constructor(options: SegmentStoreOptions) {
    this.options = options
  }

  /** The directory that holds a directory per log. */
  get directory(): string {
    return this.options.directory
  }

  logDirectory(log: string): string {
    return `${this.options.directory}/${log}`
  }

  segmentPath(log: string, segment: { readonly firstEventId: number }): string {
    return `${this.logDirectory(log)}/${segmentFileName(segment.firstEventId)}`
  }

  indexPath(log: string, segment: { readonly firstEventId: number }): string {
    return `${this.logDirectory(log)}/${indexFileName(segment.firstEventId)}`
  }

  /**
   * Writes the pending frames of a log; with `sync`, also makes its segments durable. One write and one sync per log at a
   * time; the frames that come during a sync need not wait for it.
   */
  async flush(log: LogState, options: { readonly sync: boolean }): Promise<void> {
    while (log.flushing !== undefined) await log.flushing.catch(() => undefined)
    log.flushing = this.writePending(log).finally(() => {
      log.flushing = undefined
    })
    await log.flushing
    if (options.sync) await this.sync(log)
  }

  private async writePending(log: LogState): Promise<void> {
    const extents = log.pending.length
    let index = 0
    while (index < extents) {
      const segment = log.pending[index]!.segment
      let end = index + 1
      while (end < extents && log.pending[end]!.segment === segment) end += 1
      await this.writeExtents(log, segment, log.pending.slice(index, end))
      index = end
    }
    this.dropWritten(log, extents)
  }

  private async writeExtents(log: LogState, segment: SegmentState, extents: ReadonlyArray<Extent>): Promise<void> {
    if (!segment.created) await this.create(log, segment)
    const last = extents[extents.length - 1]!
    segment.unsynced = true
    // The file comes into being with one write: its header goes with the first frames.
    const isNew = extents[0]!.position === SEGMENT_HEADER_BYTES
    const header = isNew ? encodeSegmentHeader({ log: log.name, ...segment }).buffer : NO_HEADER
    await this.options.files.use(this.segmentPath(log.name, segment), (file) =>
      this.gatherer.write(file, header, extents)
    )
    // A sync that began before the write ended may have missed it.
    segment.unsynced = true
    segment.writtenBytes = last.position + bytesIn(last)
    log.writtenEventId = last.lastEventId
  }

  private dropWritten(log: LogState, extents: number): void {
    for (const extent of log.pending.splice(0, extents)) {
      log.pendingBytes -= bytesIn(extent)
      this.options.slabs.release(extent.slab)
    }
  }

  /** Forgets the pending frames of a log that the journal can bring again. */
  dropPending(log: LogState): void {
    this.dropWritten(log, log.pending.length)
  }

  /** Forgets the frames of a log that is removed; returns the segments it had. */
  async discard(log: LogState): Promise<ReadonlyArray<SegmentState>> {
    for (let under = underWay(log); under !== undefined; under = underWay(log)) await under.catch(() => undefined)
    this.dropPending(log)
    log.durableSegments = 0
    return log.segments.splice(0)
  }

  /** The file comes into being with the write of its header and first frames. */
  private async create(log: LogState, segment: SegmentState): Promise<void> {
    const { disk, files } = this.options
    const path = this.segmentPath(log.name, segment)
    if ((await disk.makeDirectory(this.logDirectory(log.name))) !== undefined) this.rootUnsynced = true
    segment.entryUnsynced = true
    await files.create(path)
    segment.created = true
  }

  private async sync(log: LogState): Promise<void> {
    while (log.syncing !== undefined) await log.syncing.catch(() => undefined)
    log.syncing = this.syncSegments(log).finally(() => {
      log.syncing = undefined
    })
    await log.syncing
  }

  private async syncSegments(log: LogState): Promise<void> {
    log.laterSequence = log.pending[0]?.sequence ?? 0
    for (const segment of log.segments) await this.syncSegment(log, segment)
    this.refuseDistrusted()
    log.unsyncedSequence = log.laterSequence
    if (log.unsyncedSequence === 0) this.options.onSynced(log)
  }

  /** Makes what is written of a segment durable, if it is not. */
  async syncSegment(log: LogState, segment: SegmentState): Promise<void> {
    if (!segment.unsynced) return
    const { files } = this.options
    const path = this.segmentPath(log.name, segment)
    const { writtenBytes } = segment
    segment.unsynced = false
    try {
      await this.trusted(path, () => files.use(path, (file) => file.sync()))
      if (segment.entryUnsynced) await this.syncEntries(log, segment)
    } catch (error) {
      // Where no file could be opened it is tried again; every other failure ends all trust.
      segment.unsynced = true
      throw error
    }
    if (segment.index.ids.length - segment.indexedEntries >= INDEX_WRITE_ENTRIES)
      await this.writeIndex(log, segment, writtenBytes)
  }

  /** Makes the entries of the log's directory durable; until it succeeds, the segment counts as unsynced. */
  async syncEntries(log: LogState, segment: SegmentState): Promise<void> {
    const directory = this.logDirectory(log.name)
    segment.entryUnsynced = true
    await this.trusted(directory, () => this.options.disk.syncDirectory(directory)).catch((error) => {
      segment.unsynced = true
      throw error
    })
    segment.entryUnsynced = false
  }

  /** Writes the `.idx` of a segment that is synced up to `writtenBytes`, and its seal if it has one. */
  async writeIndex(log: LogState, segment: SegmentState, writtenBytes = segment.writtenBytes): Promise<void> {
    const { disk, files } = this.options
    const path = this.indexPath(log.name, segment)
    const { ids, offsets, crcs } = segment.index
    const written = offsets.findLastIndex((offset) => offset < writtenBytes) + 1
    const durableBytes = writtenBytes + segment.sealBytes
    const content = encodeIndex({
      index: { ids: ids.slice(0, written), offsets: offsets.slice(0, written), crcs: crcs.slice(0, written) },
      durableBytes
    })
    try {
      if (segment.indexedBytes === 0 && !(await disk.exists(path))) await files.create(path)
      await files.use(path, (file) => file.write(content, 0, content.length, 0))
    } catch (error) {
      // It can be done without; what makes room must not fail for want of room.
      if (isFull(error) || isUnopened(error)) return
      throw error
    }
    segment.indexedEntries = written
    segment.indexedBytes = durableBytes
  }

  /** Leaves every segment with an index that speaks of all of it; the log must be synced. */
  async writeIndexes(log: LogState): Promise<void> {
    for (const segment of log.segments) {
      await this.syncSegment(log, segment)
      const durableBytes = segment.writtenBytes + segment.sealBytes
      if (segment.bytes > 0 && segment.indexedBytes !== durableBytes) await this.writeIndex(log, segment)
    }
  }

  /** The directory of logs has entries that no sync has covered. */
  markRootUnsynced(): void {
    this.rootUnsynced = true
  }

  /** Makes new log directories durable; a checkpoint is not complete before. */
  async syncRoot(): Promise<void> {
    // One under way may be what makes this one unnecessary, but only once it is done.
    while (this.rootSyncing !== undefined) await this.rootSyncing
    this.refuseDistrusted()
    if (!this.rootUnsynced) return
    this.rootUnsynced = false
    const { directory, disk } = this.options
    this.rootSyncing = this.trusted(directory, () => disk.syncDirectory(directory))
      .catch((error) => {
        this.rootUnsynced = true
        throw error
      })
      .finally(() => {
        this.rootSyncing = undefined
      })
    await this.rootSyncing
  }

  /** Throws once a sync has failed: nothing may be built on what came before it. */
  refuseDistrusted(): void {
    if (this.failure !== undefined) throw this.failure
  }

  /** Runs a sync whose failure ends all trust in syncs; one that could not begin leaves everything as it was. */
  async trusted(path: string, sync: () => Promise<void>): Promise<void> {
    this.refuseDistrusted()
    try {
      await sync()
    } catch (cause) {
      if (isUnopened(cause)) throw cause
      this.failure ??= new SyncFailed({ path, cause })
      throw this.failure
    }
  }
}

/** An index file is worth rewriting once it lacks this many entries. */
const INDEX_WRITE_ENTRIES = 16

const underWay = (log: LogState): Promise<void> | undefined => log.flushing ?? log.syncing
