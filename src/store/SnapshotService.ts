// Snapshots as a service: each is tied to an event of the log, and one that is not used is reported.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ServerLog } from "../contract/ServerLog.ts"
import { LogEngine } from "./LogEngine.ts"
import { StoredRunes } from "./runes/StoredRunes.ts"
import { Snapshots, snapshotsIn } from "./Snapshots.ts"

export class SnapshotService extends Context.Service<SnapshotService, Snapshots>()("echs/store/Snapshots") {
  static readonly layer = (shape: string): Layer.Layer<SnapshotService, never, LogEngine | StoredRunes | ServerLog> =>
    Layer.effect(
      SnapshotService,
      Effect.gen(function* () {
        const { directory, disk } = yield* LogEngine
        const runes = yield* StoredRunes
        const log = yield* ServerLog
        return new Snapshots({
          disk,
          directory: snapshotsIn(directory),
          shape,
          eventSum: (conversationId, eventId) => runes.eventSumNow(conversationId, eventId),
          onReport: (report) => log.write("warn", "a snapshot was not used", { ...report })
        })
      })
    )
}
