// Goal: waiting ends with the change that is waited for, or when time is up, and leaves nothing behind. Method: the test
// clock; nothing here takes time.
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { describe, expect } from "vitest"
import { Condition } from "#src/server/Condition.ts"

describe("a condition", () => {
  it.effect("that is met already is not waited for", () => new Condition().waitFor(() => true, 1_000))

  it.effect("is looked at with every change, and waited for until it is met", () =>
    Effect.gen(function* () {
      const condition = new Condition()
      let left = 2
      const waiting = yield* Effect.forkChild(
        condition.waitFor(() => left === 0, 1_000),
        { startImmediately: true }
      )
      for (const now of [1, 0]) {
        expect(waiting.pollUnsafe()).toBeUndefined()
        left = now
        condition.notify()
        yield* Effect.yieldNow
      }
      yield* Fiber.join(waiting)
    })
  )

  it.effect("is given up when time is up, and not looked at again", () =>
    Effect.gen(function* () {
      const condition = new Condition()
      let looks = 0
      const isMet = (): boolean => {
        looks += 1
        return false
      }
      const waiting = yield* Effect.forkChild(condition.waitFor(isMet, 1_000), { startImmediately: true })
      yield* TestClock.adjust(999)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      yield* Fiber.join(waiting)
      condition.notify()
      expect(looks).toBe(1)
    })
  )

  it.effect("is given up in time in the finalizer of a scope as well", () =>
    Effect.gen(function* () {
      const condition = new Condition()
      const closing = Effect.scoped(Effect.addFinalizer(() => condition.waitFor(() => false, 1_000)))
      const waiting = yield* Effect.forkChild(closing, { startImmediately: true })
      yield* TestClock.adjust(1_000)
      yield* Fiber.join(waiting)
    })
  )
})
