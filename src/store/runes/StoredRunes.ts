// Runes in and out of the log, as a service: those of archived conversations too. What became durable is announced on the
// bus.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { ArchiveService } from "../archive/Archive.ts"
import { LogEngine } from "../LogEngine.ts"
import { RuneStore } from "./RuneStore.ts"

export class StoredRunes extends Context.Service<StoredRunes, RuneStore>()("echs/store/StoredRunes") {
  static readonly layer: Layer.Layer<StoredRunes, never, LogEngine | ArchiveService | DurableNotices> = Layer.effect(
    StoredRunes,
    Effect.gen(function* () {
      const { runelog } = yield* LogEngine
      return new RuneStore({ runelog, archive: yield* ArchiveService, notices: yield* DurableNotices })
    })
  )
}
