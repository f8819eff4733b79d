// The store of a data directory: the log, and beside it snapshots, blobs, the catalog and the archive, opened together
// and closed together. Everything but the log can be deleted and follows from it again, blobs and archives excepted.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Disk } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import type { RunelogOptions } from "#runelog/Options.ts"
import { Runelog } from "#runelog/Runelog.ts"
import type { OpenError } from "#runelog/RunelogErrors.ts"
import { importDirectory } from "#runelog/recovery/Import.ts"
import { MetaFile } from "#runelog/recovery/MetaFile.ts"
import { type BlobPort, MediaBlobs, type MediaPort, OutputBlobs } from "../contract/Blobs.ts"
import { DurableNotices, NoticeBus } from "../contract/DurableNotices.ts"
import { StoreFacts } from "../contract/ServerFacts.ts"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { mediaLimits } from "../rune/Media.ts"
import { Archive, type Settled } from "./archive/Archive.ts"
import { Blobs } from "./Blobs.ts"
import { attempt, tagsOf } from "./Boundary.ts"
import { Catalog, type CatalogFault } from "./catalog/Catalog.ts"
import { MEMORY } from "./catalog/CatalogDatabase.ts"
import type { ListPage, ListRequest } from "./catalog/CatalogList.ts"
import type { Copied } from "./runes/Copy.ts"
import { exportLines, type ImportRequest, importLines } from "./runes/Export.ts"
import { type ForkRequest, fork } from "./runes/Fork.ts"
import { RuneStore } from "./runes/RuneStore.ts"
import { type SnapshotReport, Snapshots } from "./Snapshots.ts"
import type { ListInvalid } from "./StoreErrors.ts"
import { limits } from "./StoreLimits.ts"

export interface StoreOptions {
  /** The data directory. */
  readonly directory: string
  readonly disk?: Disk
  readonly runelog?: Omit<RunelogOptions, "directory" | "disk">
  /** Names the shape of snapshot values; see `Snapshots`. */
  readonly snapshotShape: string
  /** Where the catalog is; `:memory:` where the disk is not the machine's. */
  readonly catalogPath?: string
  /** Where what became durable is announced. */
  readonly notices?: NoticeBus
  readonly onSnapshotReport?: (report: SnapshotReport) => void
  readonly onCatalogFault?: (fault: CatalogFault) => void
  /** Catching up begins when this has settled: what else a start does goes first. */
  readonly catchUpAfter?: Promise<unknown>
}

/** What was found and put right after the store was opened. */
export interface CatchUp {
  /** Rows that were folded again. */
  readonly doubted: number
  readonly settled: ReadonlyMap<string, Settled>
}

interface StoreParts {
  readonly notices: NoticeBus
  readonly disk: Disk
  readonly runelog: Runelog
  readonly runes: RuneStore
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  readonly catalog: Catalog
  readonly archive: Archive
}

const attemptList = attempt<ListInvalid>(tagsOf<ListInvalid>({ ListInvalid: true }))

export class Store {
  readonly runelog: Runelog
  readonly runes: RuneStore
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  readonly catalog: Catalog
  readonly archive: Archive
  private readonly notices: NoticeBus
  /** Resolves when the catalog was held against the logs and interrupted archiving was finished. */
  readonly caughtUp: Promise<CatchUp>
  /** A crash touched very many conversations: which of them have work left is known when the catalog has caught up. */
  readonly isBehind: boolean
  private closing: Promise<void> | undefined
  private readonly closeBegun = Promise.withResolvers<void>()

  private constructor(
    parts: StoreParts,
    { after, isBehind }: { readonly after: Promise<unknown>; readonly isBehind: boolean }
  ) {
    this.isBehind = isBehind
    this.notices = parts.notices
    this.runelog = parts.runelog
    this.runes = parts.runes
    this.snapshots = parts.snapshots
    this.blobs = parts.blobs
    this.catalog = parts.catalog
    this.archive = parts.archive
    this.caughtUp = this.catchUp(after)
    // Whoever wants to know waits for it; nobody has to.
    this.caughtUp.catch(() => undefined)
  }

  /**
   * Opens the directory as its one writer. Conversations that a crash touched are in the catalog when it resolves; if
   * they are very many, when it has caught up: until then lists say `rebuilding`.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const disk = options.disk ?? makeDiskNode()
    const { directory } = options
    const runelog = await Runelog.open({ ...options.runelog, directory, disk })
    let catalog: Catalog | undefined
    try {
      await disk.removeTree(importDirectory(directory))
      const parts = await assemble(options, disk, runelog)
      catalog = parts.catalog
      await parts.blobs.sweep()
      const isBehind = runelog.recovered.logs.length > limits.suspectsAtOpenMax
      if (isBehind) catalog.markBehind()
      else await catalog.check({ suspects: runelog.recovered.logs, only: "suspects" })
      return new Store(parts, { isBehind, after: options.catchUpAfter ?? Promise.resolve() })
    } catch (error) {
      await catalog?.close()
      await runelog.close()
      throw error
    }
  }

  /** What is true now: rows that wait are written first. */
  async listNow(request: ListRequest = {}): Promise<ListPage> {
    await this.catalog.flush()
    return this.catalog.list(request)
  }

  list(request: ListRequest = {}): Effect.Effect<ListPage, ListInvalid> {
    return attemptList(() => this.listNow(request))
  }

  async fork(request: ForkRequest): Promise<Copied> {
    const copied = await fork({ runelog: this.runelog, runes: this.runes }, request)
    this.notices.appeared(copied.conversationId, "forked")
    return copied
  }

  async importLines(request: ImportRequest): Promise<Copied> {
    const copied = await importLines(this.runelog, request)
    this.notices.appeared(copied.conversationId, "imported")
    return copied
  }

  /** Brings an archived conversation back into the log. */
  async restore(conversationId: string): Promise<void> {
    await this.archive.restore(conversationId)
    this.notices.appeared(conversationId, "restored")
  }

  exportLines(...args: [conversationId: string, options?: Parameters<typeof exportLines>[2]]): AsyncGenerator<Buffer> {
    return exportLines(this.runes, ...args)
  }

  /** Finishes what was taken and leaves everything clean. */
  close(): Promise<void> {
    this.closing ??= this.closeNow()
    this.closeBegun.resolve()
    return this.closing
  }

  private async closeNow(): Promise<void> {
    this.catalog.stop()
    await this.caughtUp.catch(() => undefined)
    await this.catalog.close()
    await this.runelog.close()
  }

  private async catchUp(after: Promise<unknown>): Promise<CatchUp> {
    await Promise.race([Promise.allSettled([after]), this.closeBegun.promise])
    if (this.closing !== undefined) return { doubted: 0, settled: new Map() }
    const wasClean = this.catalog.openState === "clean" && this.runelog.recovered.clean
    const { doubted } = await this.catalog.check({
      suspects: this.isBehind ? this.runelog.recovered.logs : [],
      only: wasClean || this.catalog.openState === "fresh" ? "presence" : "all"
    })
    if (this.closing !== undefined) return { doubted, settled: new Map() }
    const live = new Set(await this.runelog.list())
    const candidates: Array<string> = []
    for await (const conversationId of this.catalog.inState("archived")) {
      if (live.has(conversationId)) candidates.push(conversationId)
    }
    const settled = await this.archive.settle(candidates)
    return { doubted, settled }
  }
}

const assemble = async (options: StoreOptions, disk: Disk, runelog: Runelog): Promise<StoreParts> => {
  const { directory, notices = new NoticeBus(), onCatalogFault, onSnapshotReport } = options
  const { directoryId } = await MetaFile.read(disk, directory)
  const blobs = new Blobs({ disk, directory: `${directory}/blobs` })
  const snapshots = new Snapshots({
    disk,
    directory: `${directory}/snapshots`,
    shape: options.snapshotShape,
    eventSum: (conversationId, eventId) => runes.eventSumNow(conversationId, eventId),
    ...(onSnapshotReport === undefined ? {} : { onReport: onSnapshotReport })
  })
  const archive = new Archive({ runelog, disk, directory, onArchived: (id) => snapshots.remove(id) })
  const runes: RuneStore = new RuneStore({ runelog, archive, notices })
  const catalog = await Catalog.open({
    disk,
    directoryId,
    path: options.catalogPath ?? (options.disk === undefined ? `${directory}/catalog.sqlite` : MEMORY),
    source: {
      conversations: async () => [...(await runelog.list()), ...(await archive.list())],
      head: (conversationId) => runes.headNow(conversationId),
      pages: (conversationId, after) => runes.pagesNow(conversationId, { after }),
      archivedRow: async (conversationId) =>
        (await runelog.head(conversationId)) > 0 ? undefined : archive.row(conversationId)
    },
    ...(onCatalogFault === undefined ? {} : { onFault: onCatalogFault })
  })
  notices.subscribe({
    name: "catalog",
    appended: (conversationId, appended) => catalog.observe(conversationId, appended),
    // A restored one changes by the runes that follow.
    appeared: (conversationId, how) => (how === "restored" ? undefined : catalog.doubt(conversationId))
  })
  return { disk, notices, runelog, runes, snapshots, blobs, catalog, archive }
}

const openTags = tagsOf<OpenError>({
  DirectoryLocked: true,
  FormatUnsupported: true,
  ForeignFile: true,
  JournalCorrupt: true,
  DiskFull: true,
  DiskFailed: true,
  ResourcesScarce: true,
  WriterPoisoned: true,
  LimitInvalid: true,
  GuardUnusable: true
})

export class StoreService extends Context.Service<StoreService, Store>()("echs/store/Store") {}

const outputBlobs = ({ blobs }: Store): BlobPort => ({
  keep: (source, mediaType = "text/plain") => blobs.keep(source, { mediaType }),
  read: (sha256, range) => blobs.read(sha256, range)
})

const mediaBlobs = ({ blobs }: Store): MediaPort => ({
  keep: (bytes, mediaType) => blobs.keep(bytes, { mediaType }),
  read: (sha256) => blobs.readAll(sha256, { bytesMax: mediaLimits.fileBytesMax })
})

const storeFacts = ({ catalog, runelog }: Store): StoreFacts["Service"] => ({
  writeRefusal: () => (runelog.readOnly ?? runelog.poisoned ?? runelog.noRoom)?.message,
  figures: () => {
    const { journalFiles, memoryBytes, residentLogs, sequence } = runelog.stats
    return {
      conversations: catalog.count(),
      log_resident: residentLogs,
      log_journal_files: journalFiles,
      log_memory_bytes: memoryBytes,
      log_batches_total: sequence,
      log_poisoned: runelog.poisoned === undefined ? 0 : 1
    }
  }
})

/** What goes wrong with the log is written down, and told to those who write. */
const reporting = (options: StoreLayerOptions, log: Log, notices: NoticeBus): StoreOptions => ({
  ...options,
  notices,
  runelog: {
    ...options.runelog,
    onPoison: (error) => {
      log.write("error", "the log writes no more", { cause: describeError(error) })
      notices.refused(error)
    },
    onDamage: (damage) => {
      log.write("error", "a conversation is read-only from now on", { cause: describeError(damage) })
      notices.refused(damage, damage.log)
    }
  },
  onSnapshotReport: (report) => log.write("warn", "a snapshot was not used", { ...report }),
  onCatalogFault: (fault) => log.write("warn", "the catalog had to be mended", { ...fault })
})

export type StoreLayerOptions = Omit<StoreOptions, "notices" | "onSnapshotReport" | "onCatalogFault" | "catchUpAfter">

/** The store as services: opened with the scope, closed with it, and announcing on the bus. */
export const layer = (
  options: StoreLayerOptions
): Layer.Layer<
  StoreService | OutputBlobs | MediaBlobs | StoreFacts,
  OpenError,
  DurableNotices | ServerLog | ServerReady
> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const catchUpAfter = Effect.runPromise((yield* ServerReady).await)
      const given = { ...reporting(options, yield* ServerLog, yield* DurableNotices), catchUpAfter }
      const store = yield* Effect.acquireRelease(
        attempt<OpenError>(openTags)(() => Store.open(given)),
        (opened) => Effect.promise(() => opened.close())
      )
      return Context.make(StoreService, store).pipe(
        Context.add(OutputBlobs, outputBlobs(store)),
        Context.add(MediaBlobs, mediaBlobs(store)),
        Context.add(StoreFacts, storeFacts(store))
      )
    })
  )
