// Goal: a call is bounded in time and silence, can be interrupted at any moment, and frees everything at once. Method:
// the scripted provider on the test clock for the limits; real stalled connections, with short limits, for the sockets.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll } from "vitest"
import { call } from "#src/provider/Call.ts"
import type { ModelProvider, ProviderEvent } from "#src/provider/Provider.ts"
import { limits } from "#src/provider/ProviderLimits.ts"
import { parseScenario } from "#src/provider/scripted/Scenario.ts"
import { makeScripted } from "#src/provider/scripted/Scripted.ts"
import { count, reportCount } from "../support/counts.ts"
import { plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const scripted = (play: ReadonlyArray<object>): ModelProvider => {
  const scenario = parseScenario("test", { name: "test", replies: [{ play }] })
  return makeScripted({ load: () => Effect.fromResult(scenario) })
}

const ignore = () => Effect.void

/** Lets promises and fibers that are ready run; no time passes. */
const settle = Effect.promise(async () => {
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
})

const begun = Effect.fnUntraced(function* (provider: ModelProvider) {
  const events: Array<ProviderEvent> = []
  const fiber = yield* Effect.forkChild(
    call(provider, sampleRequest(), (some) => Effect.sync(() => events.push(...some)))
  )
  yield* settle
  return { events, fiber }
})

const advance = Effect.fnUntraced(function* (totalMs: number, stepMs: number) {
  for (let passed = 0; passed < totalMs; passed += stepMs) {
    yield* TestClock.adjust(stepMs)
    yield* settle
  }
})

describe("a call on the test clock", () => {
  it.effect("ends by itself when the answer is complete", () =>
    Effect.gen(function* () {
      const done = yield* call(scripted([{ text: "hi" }]), sampleRequest(), ignore)
      assert.deepStrictEqual(done, { stopReason: "end_turn" })
    })
  )

  it.effect("is ended by the idle limit when the stream goes silent, not before", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* begun(scripted([{ text: "some text" }, { stall: true }]))
      yield* advance(limits.idleMs - 3000, 3000)
      assert.isUndefined(fiber.pollUnsafe())
      yield* advance(limits.idleMs * 0.1 + 3000, 3000)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.strictEqual(error.kind, "timeout")
      assert.isTrue(error.retryable)
      assert.strictEqual(error.message, "the stream was silent for 60000 ms")
      assert.strictEqual(events.at(-1)?.type, "assistant_delta")
    })
  )

  it.effect("is not ended by the idle limit while something arrives", () =>
    Effect.gen(function* () {
      const beat = { text: ".", delay_ms: 40_000 }
      const { fiber } = yield* begun(scripted([beat, beat]))
      yield* advance(85_000, 5000)
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "end_turn" })
    })
  )

  it.effect("waits 120 s for a provider that does not begin to answer", () =>
    Effect.gen(function* () {
      const { fiber } = yield* begun(scripted([{ stall: true }]))
      yield* advance(limits.firstEventMs - 3000, 3000)
      assert.isUndefined(fiber.pollUnsafe())
      yield* advance(6000, 3000)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.strictEqual(error.message, "no answer began within 120000 ms")
    })
  )

  it.effect("lets a healthy answer of ten minutes end by itself", () =>
    Effect.gen(function* () {
      const { fiber } = yield* begun(scripted([{ text: "x".repeat(20), chunk_chars: 1, delay_ms: 30_000 }]))
      yield* advance(615_000, 5000)
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "end_turn" })
    })
  )

  it.effect("is ended by the call limit of an hour however lively the stream is", () =>
    Effect.gen(function* () {
      const { fiber } = yield* begun(scripted([{ text: "x".repeat(150), chunk_chars: 1, delay_ms: 30_000 }]))
      yield* advance(limits.callMs + 30_000, 30_000)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.strictEqual(error.message, "no complete answer within 3600000 ms")
    })
  )

  it.effect("is interrupted without an error, and nothing is delivered afterwards", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* begun(scripted([{ text: "one two three", chunk_chars: 4, delay_ms: 1000 }]))
      const before = events.length
      assert.isAbove(before, 0)
      yield* Fiber.interrupt(fiber)
      yield* advance(5000, 1000)
      assert.strictEqual(events.length, before)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.hasInterrupts(exit))
    })
  )

  it.effect("dies of a listener that dies, and fails with what it fails with", () =>
    Effect.gen(function* () {
      const dying = call(scripted([{ text: "hi" }]), sampleRequest(), () => Effect.die(new Error("broken")))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(dying)))
      const failing = call(scripted([{ text: "hi" }]), sampleRequest(), () => Effect.fail("enough"))
      assert.strictEqual(yield* Effect.flip(failing), "enough")
    })
  )

  it.effect("takes a stream that completes without its terminal event for truncated", () =>
    Effect.gen(function* () {
      const breaking: ModelProvider = { name: "broken", stream: () => Stream.empty }
      const error = yield* Effect.flip(call(breaking, sampleRequest(), ignore))
      assert.strictEqual(error.kind, "truncated")
    })
  )
})

describe.each(formats)("a stalled $name connection", (format) => {
  it.live("ends at the idle limit, not before, and is closed", () =>
    Effect.gen(function* () {
      const body = format.stream(toolAnswer)
      server.respond(() => ({ body, cutAfter: Math.floor(body.length / 3), ending: "stall" }))
      const rounds = count("stalled streams", { fast: 3, soak: 30 })
      const idleMs = 300
      for (let round = 0; round < rounds; round++) {
        const startedMs = performance.now()
        const error = yield* Effect.flip(call(format.provider(server.url), sampleRequest(), ignore, { idleMs }))
        const tookMs = performance.now() - startedMs
        assert.strictEqual(error.kind, "timeout")
        assert.isAtLeast(tookMs, idleMs - 1)
        yield* Effect.promise(() => server.idle())
      }
      reportCount("stalled model streams", rounds)
    })
  )

  it.live("is kept open by keep-alives alone", () =>
    Effect.gen(function* () {
      const body = `: keep-alive\n\n: keep-alive\n\n: keep-alive\n\n: keep-alive\n\n${format.stream(plainAnswer)}`
      const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 120))
      let pauses = 0
      server.respond(() => ({ body, pieceBytes: 14, between: () => (pauses++ < 4 ? pause() : Promise.resolve()) }))
      const done = yield* call(format.provider(server.url), sampleRequest(), ignore, { idleMs: 300 })
      assert.deepStrictEqual(done, { stopReason: "end_turn" })
    })
  )

  it.live("that never answers ends with the limit for its first event", () =>
    Effect.gen(function* () {
      server.respond(() => ({ body: "", neverAnswer: true }))
      const error = yield* Effect.flip(
        call(format.provider(server.url), sampleRequest(), ignore, { firstEventMs: 200, idleMs: 50 })
      )
      assert.strictEqual(error.message, "no answer began within 200 ms")
      yield* Effect.promise(() => server.idle())
    })
  )

  it.live("is closed by an interrupt", () =>
    Effect.gen(function* () {
      const body = format.stream(toolAnswer)
      server.respond(() => ({ body, cutAfter: Math.floor(body.length / 2), ending: "stall" }))
      let arrived: () => void = () => undefined
      const first = new Promise<void>((resolve) => {
        arrived = resolve
      })
      const fiber = yield* Effect.forkChild(
        call(format.provider(server.url), sampleRequest(), () => Effect.sync(arrived))
      )
      yield* Effect.promise(() => first)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => server.idle())
      assert.strictEqual(server.open(), 0)
    })
  )
})
