// Goal: a layer with a bounded end leaves behind what hangs, says so, and hurts nothing below it. Method: layers whose
// finalizers write down that they ran, and time that the test owns.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { describe, expect, it } from "vitest"
import { bounded } from "#src/supervise/Bounded.ts"

const ending = (heard: Array<string>, name: string, end: Effect.Effect<unknown> = Effect.void) =>
  Layer.effectDiscard(
    Effect.addFinalizer(() =>
      Effect.map(end, () => {
        heard.push(name)
      })
    )
  )

const closing = Effect.fnUntraced(function* (layer: Layer.Layer<never>) {
  const scope = yield* Scope.make()
  yield* Layer.buildWithScope(layer, scope)
  return yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
})

const run = <A>(program: Effect.Effect<A>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.provide(program, TestClock.layer())))

describe("a layer with a bounded end", () => {
  const late = (heard: Array<string>) => (ms: number) => Effect.sync(() => void heard.push(`late after ${ms}`))

  it("ends like any other where nothing hangs", async () => {
    const heard: Array<string> = []
    const layer = ending(heard, "inner").pipe(
      bounded({ withinMs: 1_000, onLate: late(heard) }),
      Layer.provideMerge(ending(heard, "below"))
    )
    await run(Effect.flatMap(closing(layer), Fiber.join))
    expect(heard).toEqual(["inner", "below"])
  })

  it("is left when the time is up; what hung ends by itself later", async () => {
    const heard: Array<string> = []
    const program = Effect.gen(function* () {
      const hanging = yield* Deferred.make<void>()
      const layer = ending(heard, "inner", Deferred.await(hanging)).pipe(
        bounded({ withinMs: 1_000, onLate: late(heard) }),
        Layer.provideMerge(ending(heard, "below"))
      )
      const fiber = yield* closing(layer)
      yield* TestClock.adjust(999)
      expect(heard).toEqual([])
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      expect(heard).toEqual(["late after 1000", "below"])
      yield* Deferred.succeed(hanging, undefined)
      yield* Effect.yieldNow
    })
    await run(program)
    expect(heard).toEqual(["late after 1000", "below", "inner"])
  })
})
