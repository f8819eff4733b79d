// Resumes what the last stop or crash left unfinished, once the server listens. Work that the catalog knows of begins at
// once; a catalog that was behind is asked again when it has caught up.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { type Store, StoreService } from "../store/Store.ts"
import { ConversationService } from "./ConversationService.ts"
import type { Conversations, Recovered } from "./Conversations.ts"

const report = (log: Log, { failed, loaded, resumed }: Recovered): void => {
  if (loaded > 0 || failed.length > 0) log.write("info", "recovered", { loaded, resumed, failed: failed.length })
  for (const error of failed) log.write("error", "a conversation cannot be resumed", { cause: describeError(error) })
}

const recover = (conversations: Conversations, ids: Iterable<string>): Effect.Effect<Recovered> =>
  Effect.promise(() => conversations.recover(ids as Iterable<ConversationId>))

const unfinishedNow = (store: Store): ReadonlySet<string> =>
  new Set([...store.catalog.unfinished(), ...(store.isBehind ? [] : store.runelog.recovered.logs)])

/** A catalog that was behind, or had to be filled again, knows only when it has caught up who else has work. */
const resumeMissed = Effect.fnUntraced(function* (known: ReadonlySet<string>) {
  const store = yield* StoreService
  if (store.catalog.openState === "clean" && !store.isBehind) return
  yield* store.caughtUp
  const missed = store.catalog.unfinished().filter((id) => !known.has(id))
  report(yield* ServerLog, yield* recover(yield* ConversationService, missed))
})

export class ResumeWork extends Context.Service<
  ResumeWork,
  {
    /** What was known of at once is loaded. */
    readonly recovered: Effect.Effect<Recovered>
  }
>()("echs/ResumeWork") {
  static readonly layer: Layer.Layer<ResumeWork, never, ConversationService | StoreService | ServerLog | ServerReady> =
    Layer.effect(
      ResumeWork,
      Effect.gen(function* () {
        const recovered = yield* Deferred.make<Recovered>()
        yield* Effect.forkScoped(resume(recovered))
        return { recovered: Deferred.await(recovered) }
      })
    )
}

const resumeKnown = Effect.fnUntraced(function* (known: ReadonlySet<string>, recovered: Deferred.Deferred<Recovered>) {
  const found = yield* recover(yield* ConversationService, known)
  report(yield* ServerLog, found)
  yield* Deferred.succeed(recovered, found)
})

const resume = Effect.fnUntraced(function* (recovered: Deferred.Deferred<Recovered>) {
  yield* (yield* ServerReady).await
  const known = unfinishedNow(yield* StoreService)
  // A stop waits for it, because it reads the store; it ends by itself once conversations are closed.
  yield* Effect.uninterruptible(resumeKnown(known, recovered))
  yield* Effect.ignore(resumeMissed(known))
})
