// The store of a data directory: the log, and beside it snapshots, blobs, the catalog and the archive, each a service,
// opened together and closed together. Everything but the log can be deleted and follows from it again, blobs and
// archives excepted.
import type { UnknownError } from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Runelog } from "#runelog/Runelog.ts"
import type { OpenError } from "#runelog/RunelogErrors.ts"
import type { MediaBlobs, OutputBlobs } from "../contract/Blobs.ts"
import { DurableNotices, type NoticeBus } from "../contract/DurableNotices.ts"
import { StoreFacts } from "../contract/ServerFacts.ts"
import type { ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { type Archive, ArchiveService, type Settled } from "./archive/Archive.ts"
import { BlobService, type Blobs } from "./Blobs.ts"
import { attempt, tagsOf } from "./Boundary.ts"
import type { Catalog } from "./catalog/Catalog.ts"
import { MEMORY } from "./catalog/CatalogDatabase.ts"
import type { ListPage, ListRequest } from "./catalog/CatalogList.ts"
import { CatalogService } from "./catalog/CatalogService.ts"
import { attemptOpen, LogEngine, type LogEngineOptions } from "./LogEngine.ts"
import type { Copied } from "./runes/Copy.ts"
import { exportLines, type ImportRequest, importLines } from "./runes/Export.ts"
import { type ForkRequest, fork } from "./runes/Fork.ts"
import type { RuneStore } from "./runes/RuneStore.ts"
import { StoredRunes } from "./runes/StoredRunes.ts"
import { SnapshotService } from "./SnapshotService.ts"
import type { Snapshots } from "./Snapshots.ts"
import type { ListInvalid } from "./StoreErrors.ts"
import { limits } from "./StoreLimits.ts"

export interface StoreOptions extends LogEngineOptions {
  /** Names the shape of snapshot values; see `Snapshots`. */
  readonly snapshotShape: string
}

/** What was found and put right after the store was opened. */
export interface CatchUp {
  /** Rows that were folded again. */
  readonly doubted: number
  readonly settled: ReadonlyMap<string, Settled>
}

interface StoreParts {
  readonly notices: NoticeBus
  readonly runelog: Runelog
  readonly runes: RuneStore
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  readonly catalog: Catalog
  readonly archive: Archive
  /** Ends when the catalog was held against the logs and interrupted archiving was finished. */
  readonly caughtUp: Effect.Effect<CatchUp, UnknownError>
  /** A crash touched very many conversations: which of them have work left is known when the catalog has caught up. */
  readonly isBehind: boolean
}

const attemptList = attempt<ListInvalid>(tagsOf<ListInvalid>({ ListInvalid: true }))

export class Store {
  readonly runelog: Runelog
  readonly runes: RuneStore
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  readonly catalog: Catalog
  readonly archive: Archive
  readonly caughtUp: StoreParts["caughtUp"]
  readonly isBehind: boolean
  private readonly notices: NoticeBus

  constructor(parts: StoreParts) {
    this.isBehind = parts.isBehind
    this.caughtUp = parts.caughtUp
    this.notices = parts.notices
    this.runelog = parts.runelog
    this.runes = parts.runes
    this.snapshots = parts.snapshots
    this.blobs = parts.blobs
    this.catalog = parts.catalog
    this.archive = parts.archive
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
}

type OpenParts = Pick<StoreParts, "runelog" | "catalog" | "archive" | "isBehind">

const archivedInLog = async ({ catalog, runelog }: OpenParts): Promise<ReadonlyArray<string>> => {
  const live = new Set(await runelog.list())
  const found: Array<string> = []
  for await (const conversationId of catalog.inState("archived")) {
    if (live.has(conversationId)) found.push(conversationId)
  }
  return found
}

/** Each step is over before a close goes on; none begins after that. */
const step = <A>(run: () => Promise<A>): Effect.Effect<A, UnknownError> =>
  Effect.uninterruptible(Effect.tryPromise(run))

const catchUp = Effect.fnUntraced(function* (parts: OpenParts) {
  const { archive, catalog, isBehind, runelog } = parts
  const wasClean = catalog.openState === "clean" && runelog.recovered.clean
  const { doubted } = yield* step(() =>
    catalog.check({
      suspects: isBehind ? runelog.recovered.logs : [],
      only: wasClean || catalog.openState === "fresh" ? "presence" : "all"
    })
  )
  const candidates = yield* step(() => archivedInLog(parts))
  return { doubted, settled: yield* step(() => archive.settle(candidates)) } satisfies CatchUp
})

/** Catches up once the server listens. A close ends the check early and waits for what is under way. */
const catchingUp = Effect.fnUntraced(function* (parts: OpenParts) {
  const caughtUp = yield* Deferred.make<CatchUp, UnknownError>()
  const ready = yield* ServerReady
  const nothing: CatchUp = { doubted: 0, settled: new Map() }
  yield* Effect.andThen(ready.await, catchUp(parts)).pipe(
    Effect.onInterrupt(() => Deferred.succeed(caughtUp, nothing)),
    Effect.onExit((exit) => Deferred.done(caughtUp, exit)),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => parts.catalog.stop()))
  return Deferred.await(caughtUp)
})

type Parts = LogEngine | StoredRunes | SnapshotService | BlobService | CatalogService | ArchiveService

/**
 * Conversations that a crash touched are in the catalog when it is built; if they are very many, when it has caught up:
 * until then lists say `rebuilding`.
 */
export class StoreService extends Context.Service<StoreService, Store>()("echs/store/Store") {
  static readonly layer: Layer.Layer<StoreService, OpenError, Parts | DurableNotices | ServerReady> = Layer.effect(
    StoreService,
    Effect.gen(function* () {
      const { runelog } = yield* LogEngine
      const catalog = yield* CatalogService
      const archive = yield* ArchiveService
      const suspects = runelog.recovered.logs
      const isBehind = suspects.length > limits.suspectsAtOpenMax
      if (isBehind) catalog.markBehind()
      else yield* attemptOpen(() => catalog.check({ suspects, only: "suspects" }))
      return new Store({
        ...{ runelog, catalog, archive, isBehind },
        notices: yield* DurableNotices,
        runes: yield* StoredRunes,
        snapshots: yield* SnapshotService,
        blobs: yield* BlobService,
        caughtUp: yield* catchingUp({ runelog, catalog, archive, isBehind })
      })
    })
  )
}

const storeFacts: Layer.Layer<StoreFacts, never, LogEngine | CatalogService> = Layer.effect(
  StoreFacts,
  Effect.gen(function* () {
    const { runelog } = yield* LogEngine
    const catalog = yield* CatalogService
    return {
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
    }
  })
)

type Offered = Parts | StoreService | OutputBlobs | MediaBlobs | StoreFacts

/** All services of the store, on one data directory. */
export const layer = (
  options: StoreOptions
): Layer.Layer<Offered, OpenError, DurableNotices | ServerLog | ServerReady> =>
  Layer.mergeAll(StoreService.layer, BlobService.ports, storeFacts).pipe(
    Layer.provideMerge(
      CatalogService.layer((data) => (options.disk === undefined ? `${data}/catalog.sqlite` : MEMORY))
    ),
    Layer.provideMerge([SnapshotService.layer(options.snapshotShape), BlobService.layer]),
    Layer.provideMerge(StoredRunes.layer),
    Layer.provideMerge(ArchiveService.layer),
    Layer.provideMerge(LogEngine.layer(options))
  )
