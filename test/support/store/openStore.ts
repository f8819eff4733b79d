// The store as the server has it, for tests and benchmarks that hold its parts in their hands: opened with a scope of its
// own, which `close` ends.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { DurableNotices, NoticeBus } from "#src/contract/DurableNotices.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { ServerReady } from "#src/contract/ServerReady.ts"
import { type CatchUp, layer, type Store, type StoreOptions, StoreService } from "#src/store/Store.ts"

export type OpenStore = Store & { readonly close: () => Promise<void> }

export interface OpenOptions extends StoreOptions {
  /** Where what became durable is announced. */
  readonly notices?: NoticeBus
  /** Catching up begins when it opens; at once, unless told. */
  readonly ready?: Latch.Latch
}

export const openStore = async ({ notices, ready, ...options }: OpenOptions): Promise<OpenStore> => {
  const scope = Scope.makeUnsafe()
  const around = Layer.mergeAll(
    Layer.succeed(ServerLog, { level: "error", write: () => undefined }),
    Layer.succeed(DurableNotices, notices ?? new NoticeBus()),
    Layer.succeed(ServerReady, ready ?? Latch.makeUnsafe(true))
  )
  const building = Layer.buildWithScope(layer(options).pipe(Layer.provide(around)), scope)
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= Effect.runPromise(Scope.close(scope, Exit.void)))
  try {
    return Object.assign(Context.get(await Effect.runPromise(building), StoreService), { close })
  } catch (error) {
    await close()
    throw error
  }
}

export const caughtUp = (store: Store): Promise<CatchUp> => Effect.runPromise(store.caughtUp)
