// Goal: work of others ends in time, one way or the other, and nobody waits longer than said. Method: effects on a clock
// that the test moves.
import { it as itEffect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { describe, expect, it } from "vitest"
import { messageOf, timerMs, underDeadline } from "#src/turn/Deadline.ts"
import { limits } from "#src/turn/TurnLimits.ts"

const at = { timeoutMs: 100 }
const deaf = Effect.uninterruptible(Effect.never)

describe("work under a deadline", () => {
  itEffect.effect("returns what it returns", () =>
    Effect.gen(function* () {
      const ended = yield* underDeadline(Effect.succeed("done"), at)
      expect(ended).toEqual({ _tag: "Returned", value: "done", late: false })
    })
  )

  itEffect.effect("that breaks, before it is an effect or in it, ends as thrown", () =>
    Effect.gen(function* () {
      const early = Effect.suspend((): Effect.Effect<never> => {
        throw new Error("early")
      })
      expect(yield* underDeadline(early, at)).toMatchObject({ _tag: "Threw", cause: { message: "early" }, late: false })
      const later = Effect.die(new Error("later"))
      expect(yield* underDeadline(later, at)).toMatchObject({ _tag: "Threw", cause: { message: "later" }, late: false })
    })
  )

  itEffect.effect("is interrupted when its time is over, and may still wind up", () =>
    Effect.gen(function* () {
      let last: string | undefined
      const work = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          last = "what I have"
        })
      )
      const running = yield* Effect.forkChild(underDeadline<string>(work, { ...at, last: () => last }))
      yield* TestClock.adjust(99)
      expect(last).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(running)).toEqual({ _tag: "Returned", value: "what I have", late: true })
    })
  )

  itEffect.effect("that says nothing when it is interrupted ends late", () =>
    Effect.gen(function* () {
      const running = yield* Effect.forkChild(underDeadline(Effect.never, at))
      yield* TestClock.adjust(100)
      expect(yield* Fiber.join(running)).toMatchObject({ _tag: "Threw", late: true })
    })
  )

  itEffect.effect("that does not wind up is not waited for", () =>
    Effect.gen(function* () {
      const running = yield* Effect.forkChild(underDeadline(deaf, at))
      yield* TestClock.adjust(100 + limits.windUpMs - 1)
      expect(running.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(running)).toEqual({ _tag: "Overran" })
    })
  )

  itEffect.effect("that is interrupted from outside is interrupted itself, and not waited for", () =>
    Effect.gen(function* () {
      const told = yield* Deferred.make<void>()
      const work = Effect.onInterrupt(Effect.never, () => Effect.andThen(Deferred.succeed(told, undefined), deaf))
      const running = yield* Effect.forkChild(underDeadline(work, at))
      yield* TestClock.adjust(1)
      yield* Fiber.interrupt(running)
      yield* Deferred.await(told)
    })
  )

  it("may have any time a number can say", () => {
    expect(timerMs(-5)).toBe(0)
    expect(timerMs(1e15)).toBe(limits.timerMsMax)
    expect(timerMs(20)).toBe(20)
  })
})

describe("what went wrong", () => {
  it("is told in few and well-formed words", () => {
    expect(messageOf(new Error("plain"))).toBe("plain")
    expect(messageOf(undefined)).toBe("undefined")
    expect(messageOf("x".repeat(10_000)).length).toBe(limits.errorCharsMax)
    expect(messageOf(new Error("\ud800")).isWellFormed()).toBe(true)
  })
})
