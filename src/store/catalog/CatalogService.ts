// The catalog as a service: opened with the scope and closed with it. It follows the logs by durable notices.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OpenError } from "#runelog/RunelogErrors.ts"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { ServerLog } from "../../contract/ServerLog.ts"
import { type Archive, ArchiveService } from "../archive/Archive.ts"
import { attemptOpen, type Engine, LogEngine } from "../LogEngine.ts"
import type { RuneStore } from "../runes/RuneStore.ts"
import { StoredRunes } from "../runes/StoredRunes.ts"
import { Catalog, type CatalogSource } from "./Catalog.ts"

const sourceOf = (runelog: Engine["runelog"], runes: RuneStore, archive: Archive): CatalogSource => ({
  conversations: async () => [...(await runelog.list()), ...(await archive.list())],
  head: (conversationId) => runes.headNow(conversationId),
  pages: (conversationId, after) => runes.pagesNow(conversationId, { after }),
  archivedRow: async (conversationId) =>
    (await runelog.head(conversationId)) > 0 ? undefined : archive.row(conversationId)
})

/** The file of the catalog; `:memory:` where the disk is not the machine's. */
export type CatalogPath = (dataDirectory: string) => string

type Needs = LogEngine | StoredRunes | ArchiveService | DurableNotices | ServerLog

export class CatalogService extends Context.Service<CatalogService, Catalog>()("echs/store/Catalog") {
  static readonly layer = (path: CatalogPath): Layer.Layer<CatalogService, OpenError, Needs> =>
    Layer.effect(
      CatalogService,
      Effect.gen(function* () {
        const { directory, directoryId, disk, runelog } = yield* LogEngine
        const log = yield* ServerLog
        const options = {
          ...{ disk, directoryId, path: path(directory) },
          source: sourceOf(runelog, yield* StoredRunes, yield* ArchiveService),
          onFault: (fault: object) => log.write("warn", "the catalog had to be mended", { ...fault })
        }
        const catalog = yield* Effect.acquireRelease(
          attemptOpen(() => Catalog.open(options)),
          (opened) => Effect.promise(() => opened.close())
        )
        yield* DurableNotices.listen({
          name: "catalog",
          appended: (conversationId, appended) => catalog.observe(conversationId, appended),
          // A restored one changes by the runes that follow.
          appeared: (conversationId, how) => (how === "restored" ? undefined : catalog.doubt(conversationId))
        })
        return catalog
      })
    )
}
