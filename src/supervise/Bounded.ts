// A layer whose end takes bounded time: what hangs then is left behind, and the finalizers below it run all the same.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"

export interface BoundedOptions<R> {
  readonly withinMs: number
  /** Run when the time is up. */
  readonly onLate: (withinMs: number) => Effect.Effect<void, never, R>
}

// Finalizers cannot be interrupted, so they run in a fiber of their own that can be left.
const closeWithin = Effect.fnUntraced(function* <R>(scope: Scope.Closeable, { onLate, withinMs }: BoundedOptions<R>) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true })
  const done = yield* Effect.timeoutOption(Fiber.await(closing), withinMs)
  if (Option.isNone(done)) yield* onLate(withinMs)
})

export const bounded =
  <R2>(options: BoundedOptions<R2>) =>
  <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R | R2> =>
    Layer.fromBuild((memoMap, scope) =>
      Effect.gen(function* () {
        const services = yield* Effect.context<R2>()
        const inner = yield* Scope.make()
        yield* Scope.addFinalizer(scope, Effect.provideContext(closeWithin(inner, options), services))
        return yield* Layer.buildWithMemoMap(layer, memoMap, inner)
      })
    )
