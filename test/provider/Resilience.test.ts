// Goal: failures are retried as often, as late and as spread out as agreed; a sick provider is left alone and found
// again by one probe; slots are waited for in order and given back. Method: pure policies by value and at random; the
// composed call on the test clock with a scripted provider; one round through real sockets.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { afterAll, beforeAll, expect } from "vitest"
import { admit, type BreakerState, breakerDefaults, closedBreaker, record } from "#src/provider/Breaker.ts"
import { type ErrorKind, errorKinds, errorTable, providerError } from "#src/provider/Errors.ts"
import { limits } from "#src/provider/Limits.ts"
import type { ModelProvider } from "#src/provider/Provider.ts"
import { makeGuard, makeLimiter, type RetryScheduled, resilient } from "#src/provider/Resilience.ts"
import { retryDefaults, retryPolicy } from "#src/provider/RetryPolicy.ts"
import { parseScenario } from "#src/provider/scripted/Scenario.ts"
import { makeScripted } from "#src/provider/scripted/Scripted.ts"
import { count, reportCount } from "../support/counts.ts"
import { plainAnswer } from "../support/provider-server/Answer.ts"
import { sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { seedFor } from "../support/seed.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const failure = (kind: ErrorKind, retryAfterMs?: number) =>
  providerError({ kind, provider: "test", message: "no", retryAfterMs })

const scripted = (replies: ReadonlyArray<object>): ModelProvider => {
  const scenario = parseScenario("test", { name: "test", replies })
  return makeScripted({ load: async () => scenario })
}

const failing = (kind: ErrorKind, more: object = {}) => ({ play: [{ error: { kind, ...more } }] })

const settle = Effect.promise(async () => {
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
})

const advance = Effect.fnUntraced(function* (totalMs: number, stepMs: number) {
  for (let passed = 0; passed < totalMs; passed += stepMs) {
    yield* TestClock.adjust(stepMs)
    yield* settle
  }
})

/** Counts calls, how many are inside at once, and when each began. */
const counted = (inner: ModelProvider) => {
  const seen = { calls: 0, inside: 0, deepest: 0 }
  const provider: ModelProvider = {
    name: inner.name,
    stream: async (request, sink, options) => {
      seen.calls++
      seen.deepest = Math.max(seen.deepest, ++seen.inside)
      try {
        return await inner.stream(request, sink, options)
      } finally {
        seen.inside--
      }
    }
  }
  return { provider, seen }
}

describe("retryPolicy", () => {
  it("waits 250 ms and one second, then gives up", () => {
    const error = failure("server_error")
    assert.deepStrictEqual(retryPolicy(error, 1, 0), { _tag: "Retry", delayMs: 250 })
    assert.deepStrictEqual(retryPolicy(error, 2, 0), { _tag: "Retry", delayMs: 1000 })
    assert.deepStrictEqual(retryPolicy(error, 3, 0), { _tag: "GiveUp", reason: "attempts_exhausted" })
  })

  it("obeys the pause the provider asks for, up to a limit", () => {
    assert.deepStrictEqual(retryPolicy(failure("rate_limited", 7000), 1, 0), { _tag: "Retry", delayMs: 7000 })
    assert.deepStrictEqual(retryPolicy(failure("rate_limited", 10), 1, 0), { _tag: "Retry", delayMs: 250 })
    assert.deepStrictEqual(retryPolicy(failure("rate_limited", limits.retryAfterMsMax + 1), 1, 0), {
      _tag: "GiveUp",
      reason: "pause_too_long"
    })
  })

  it("never retries what the table calls final", () => {
    for (const kind of errorKinds.filter((candidate) => !errorTable[candidate].retryable)) {
      assert.deepStrictEqual(retryPolicy(failure(kind), 1, 0), { _tag: "GiveUp", reason: "not_retryable" })
    }
  })

  it("adds at most its share of jitter and never comes early", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        fc.nat(100_000),
        (attempt, random, asked) => {
          const decision = retryPolicy(failure("overloaded", asked), attempt, random)
          const least = Math.max(asked, retryDefaults.delaysMs[attempt - 1] ?? 0)
          if (decision._tag === "GiveUp") throw new Error("gave up")
          assert.isAtLeast(decision.delayMs, least)
          assert.isAtMost(decision.delayMs, Math.ceil(least * (1 + limits.retryJitter)))
        }
      ),
      { seed: seedFor("retry jitter") }
    )
  })
})

describe("the breaker", () => {
  const failed = { _tag: "Failed", kind: "overloaded" } as const
  const at = (nowMs: number, probe = false) => ({ nowMs, probe })

  it("opens after the agreed number of failures in a row", () => {
    let state: BreakerState = closedBreaker
    for (let times = 1; times < limits.breakerFailures; times++) state = record(state, failed, at(0))
    assert.strictEqual(state._tag, "Closed")
    state = record(state, failed, at(100))
    assert.deepStrictEqual(state, { _tag: "Open", untilMs: 100 + limits.breakerOpenMs, pauseMs: limits.breakerOpenMs })
  })

  it("forgets failures at the first success, and takes our own faults for a sign of life", () => {
    const almost: BreakerState = { _tag: "Closed", failures: limits.breakerFailures - 1 }
    assert.deepStrictEqual(record(almost, { _tag: "Succeeded" }, at(0)), closedBreaker)
    assert.deepStrictEqual(record(almost, { _tag: "Failed", kind: "invalid_request" }, at(0)), closedBreaker)
    assert.deepStrictEqual(record(almost, { _tag: "Abandoned" }, at(0)), almost)
  })

  it("lets exactly one probe through when its pause is over", () => {
    const open: BreakerState = { _tag: "Open", untilMs: 1000, pauseMs: 500 }
    assert.deepStrictEqual(admit(open, 400), { _tag: "Refused", retryAfterMs: 600 })
    const probe = admit(open, 1000)
    assert.deepStrictEqual(probe, { _tag: "Admitted", state: { _tag: "Probing", pauseMs: 500 }, probe: true })
    if (probe._tag === "Admitted") assert.strictEqual(admit(probe.state, 5000)._tag, "Refused")
  })

  it("closes after a good probe, waits twice as long after a bad one, asks again after an abandoned one", () => {
    const probing: BreakerState = { _tag: "Probing", pauseMs: 500 }
    assert.deepStrictEqual(record(probing, { _tag: "Succeeded" }, at(9, true)), closedBreaker)
    assert.deepStrictEqual(record(probing, failed, at(9, true)), { _tag: "Open", untilMs: 1009, pauseMs: 1000 })
    assert.deepStrictEqual(record(probing, { _tag: "Abandoned" }, at(9, true)), {
      _tag: "Open",
      untilMs: 9,
      pauseMs: 500
    })
    assert.deepStrictEqual(record(probing, failed, at(9)), probing)
    const long: BreakerState = { _tag: "Probing", pauseMs: limits.breakerOpenMsMax }
    assert.deepStrictEqual(record(long, failed, at(0, true)), {
      _tag: "Open",
      untilMs: limits.breakerOpenMsMax,
      pauseMs: limits.breakerOpenMsMax
    })
  })

  it("never has two probes out, whatever happens", () => {
    const step = fc.record({
      passMs: fc.nat(8000),
      outcome: fc.constantFrom("ok", "bad", "abandoned", "hold"),
      late: fc.boolean()
    })
    const runs = count("breaker walks", { fast: 2000, soak: 100_000 })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let state: BreakerState = closedBreaker
        let nowMs = 0
        let probes = 0
        for (const { passMs, outcome, late } of steps) {
          nowMs += passMs
          const admission = admit(state, nowMs)
          if (admission._tag === "Refused") {
            assert.isAbove(admission.retryAfterMs, 0)
            if (probes === 1 && !late) {
              state = record(state, { _tag: "Abandoned" }, at(nowMs, true))
              probes = 0
            }
            continue
          }
          state = admission.state
          if (admission.probe) probes++
          assert.isAtMost(probes, 1)
          if (outcome === "hold") continue
          const report =
            outcome === "ok"
              ? { _tag: "Succeeded" as const }
              : outcome === "bad"
                ? failed
                : { _tag: "Abandoned" as const }
          state = record(state, report, at(nowMs, admission.probe))
          if (admission.probe) probes = 0
        }
      }),
      { numRuns: runs, seed: seedFor("breaker walks") }
    )
    reportCount("breaker walks", runs)
  })
})

describe("the limiter", () => {
  it.effect("lets as many in as it has places, in order, and refuses when too many wait", () =>
    Effect.gen(function* () {
      const limiter = makeLimiter("test", { concurrent: 2, waitingMax: 3 })
      const order: Array<number> = []
      const job = (id: number) =>
        limiter.run(
          Effect.andThen(
            Effect.sync(() => order.push(id)),
            Effect.sleep(1000)
          )
        )
      const fibers = yield* Effect.forEach([1, 2, 3, 4, 5], (id) => Effect.forkChild(job(id)))
      yield* settle
      assert.deepStrictEqual(order, [1, 2])
      assert.strictEqual(limiter.waiting(), 3)
      const refused = yield* Effect.flip(job(6))
      assert.strictEqual(refused.kind, "queue_full")
      yield* advance(3000, 1000)
      yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(order, [1, 2, 3, 4, 5])
      assert.strictEqual(limiter.waiting(), 0)
    })
  )

  it.effect("gives up a place in line when the waiting call is interrupted", () =>
    Effect.gen(function* () {
      const limiter = makeLimiter("test", { concurrent: 1, waitingMax: 10 })
      const holder = yield* Effect.forkChild(limiter.run(Effect.sleep(1000)))
      const impatient = yield* Effect.forkChild(limiter.run(Effect.void))
      const patient = yield* Effect.forkChild(limiter.run(Effect.succeed("mine")))
      yield* settle
      assert.strictEqual(limiter.waiting(), 2)
      yield* Fiber.interrupt(impatient)
      assert.strictEqual(limiter.waiting(), 1)
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* Fiber.join(patient), "mine")
      yield* Fiber.join(holder)
    })
  )

  it.effect("frees the place of a call that is interrupted or fails", () =>
    Effect.gen(function* () {
      const limiter = makeLimiter("test", { concurrent: 1, waitingMax: 1 })
      for (let round = 0; round < 50; round++) {
        const fiber = yield* Effect.forkChild(limiter.run(Effect.never))
        yield* settle
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(limiter.run(Effect.fail("no")))))
      }
      assert.strictEqual(yield* limiter.run(Effect.succeed("free")), "free")
    })
  )
})

describe("a resilient call", () => {
  it.effect("tries three times at most, reports each retry before its pause, and hands on the last error", () =>
    Effect.gen(function* () {
      const { provider, seen } = counted(scripted([failing("server_error")]))
      const retries: Array<RetryScheduled> = []
      const call = resilient(provider)
      const onRetry = (retry: RetryScheduled) =>
        Effect.sync(() => {
          retries.push(retry)
        })
      const fiber = yield* Effect.forkChild(Effect.flip(call(sampleRequest(), () => undefined, { onRetry })))
      yield* settle
      assert.strictEqual(seen.calls, 1)
      assert.strictEqual(retries.length, 1)
      yield* advance(2000, 50)
      assert.strictEqual((yield* Fiber.join(fiber)).kind, "server_error")
      assert.strictEqual(seen.calls, 3)
      assert.deepStrictEqual(
        retries.map((retry) => [retry.attempt, retry.error.kind]),
        [
          [1, "server_error"],
          [2, "server_error"]
        ]
      )
      for (const [index, base] of [250, 1000].entries()) {
        assert.isAtLeast(retries[index]?.delayMs ?? 0, base)
        assert.isAtMost(retries[index]?.delayMs ?? 0, base * (1 + limits.retryJitter))
      }
    })
  )

  it.effect("succeeds on the attempt that does", () =>
    Effect.gen(function* () {
      const provider = scripted([
        { when: { attempt: 1 }, ...failing("overloaded") },
        { when: { attempt: 2 }, play: [{ text: "half" }, { cut: true }] },
        { play: [{ text: "whole" }] }
      ])
      const texts: Array<string> = []
      const fiber = yield* Effect.forkChild(
        resilient(provider)(sampleRequest(), (event) => {
          if (event.type === "assistant_final") texts.push(event.content)
        })
      )
      yield* advance(2000, 50)
      assert.deepStrictEqual(yield* Fiber.join(fiber), { stopReason: "end_turn" })
      assert.deepStrictEqual(texts, ["whole"])
    })
  )

  it.effect("does not retry what is final", () =>
    Effect.gen(function* () {
      for (const kind of errorKinds.filter((candidate) => !errorTable[candidate].retryable)) {
        const { provider, seen } = counted(scripted([failing(kind)]))
        assert.strictEqual((yield* Effect.flip(resilient(provider)(sampleRequest(), () => undefined))).kind, kind)
        assert.strictEqual(seen.calls, 1)
      }
    })
  )

  it.effect("can be interrupted in the pause of a retry, and holds no slot there", () =>
    Effect.gen(function* () {
      const { provider, seen } = counted(scripted([failing("rate_limited", { retry_after_ms: 60_000 })]))
      const limiter = makeLimiter("test", { concurrent: 1, waitingMax: 1 })
      const fiber = yield* Effect.forkChild(resilient(provider, { limiter })(sampleRequest(), () => undefined))
      yield* settle
      assert.strictEqual(yield* limiter.run(Effect.succeed("free")), "free")
      yield* Fiber.interrupt(fiber)
      yield* advance(70_000, 10_000)
      assert.strictEqual(seen.calls, 1)
    })
  )

  it.effect("leaves a sick provider alone, then asks it once", () =>
    Effect.gen(function* () {
      const { provider, seen } = counted(
        scripted([{ when: { role: "healthy" }, play: [{ text: "ok" }] }, failing("overloaded")])
      )
      const guard = makeGuard("test")
      const call = resilient(provider, { guard, retry: { ...retryDefaults, delaysMs: [] } })
      for (let times = 0; times < limits.breakerFailures; times++) {
        assert.strictEqual((yield* Effect.flip(call(sampleRequest(), () => undefined))).kind, "overloaded")
      }
      const refused = yield* Effect.flip(call(sampleRequest(), () => undefined))
      assert.strictEqual(refused.kind, "circuit_open")
      assert.strictEqual(refused.retryAfterMs, limits.breakerOpenMs)
      assert.strictEqual(seen.calls, limits.breakerFailures)
      yield* TestClock.adjust(limits.breakerOpenMs)
      const healthy = sampleRequest({ metadata: { role: "healthy" } })
      const all = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.exit(call(healthy, () => undefined))))
      yield* settle
      const exits = yield* Effect.forEach(all, Fiber.join)
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
      assert.strictEqual(seen.calls, limits.breakerFailures + 1)
      assert.strictEqual(guard.state()._tag, "Closed")
    })
  )

  it.effect("that is interrupted does not count against the provider", () =>
    Effect.gen(function* () {
      const guard = makeGuard("test")
      const call = resilient(scripted([{ play: [{ stall: true }] }]), { guard })
      for (let times = 0; times < breakerDefaults.failures + 1; times++) {
        const fiber = yield* Effect.forkChild(call(sampleRequest(), () => undefined))
        yield* settle
        yield* Fiber.interrupt(fiber)
      }
      assert.deepStrictEqual(guard.state(), closedBreaker)
    })
  )
})

describe("a storm", () => {
  const storm = (kind: ErrorKind, retryAfterMs: number) =>
    Effect.gen(function* () {
      const agents = 200
      const reply = failing(kind, retryAfterMs === 0 ? {} : { retry_after_ms: retryAfterMs })
      const { provider, seen } = counted(
        scripted([{ when: { attempt: 1 }, ...reply }, { when: { attempt: 2 }, ...reply }, { play: [{ text: "ok" }] }])
      )
      const guard = makeGuard("test", { ...breakerDefaults, failures: 1_000_000 })
      const delays: Array<number> = []
      const onRetry = (retry: RetryScheduled) =>
        Effect.sync(() => {
          delays.push(retry.delayMs)
        })
      const call = resilient(provider, { guard, onRetry })
      const fibers = yield* Effect.forEach(Array.from({ length: agents }), () =>
        Effect.forkChild(call(sampleRequest(), () => undefined))
      )
      yield* settle
      yield* advance(Math.max(250, retryAfterMs) * 1.25 + Math.max(1000, retryAfterMs) * 1.25 + 100, 50)
      const exits = yield* Effect.forEach(fibers, Fiber.await)
      assert.isTrue(exits.every(Exit.isSuccess))
      assert.strictEqual(seen.calls, agents * 3)
      assert.isAtMost(seen.deepest, limits.concurrentCalls)
      assert.isAtLeast(Math.min(...delays), Math.max(250, retryAfterMs))
      // Spread: the first retries do not all fall on the same moment.
      assert.isAbove(new Set(delays.slice(0, agents)).size, agents / 8)
      reportCount("agents in a storm of errors", agents)
    }).pipe(Random.withSeed(seedFor(`storm of ${kind}`)))

  it.effect("of 429 with Retry-After ends with every agent answered, none early", () => storm("rate_limited", 2000))
  it.effect("of 529 ends with every agent answered", () => storm("overloaded", 0))
  it.effect("of 5xx ends with every agent answered", () => storm("server_error", 0))

  it.effect("that does not end opens the circuit: the provider sees few calls", () =>
    Effect.gen(function* () {
      const { provider, seen } = counted(scripted([failing("overloaded")]))
      const call = resilient(provider, { limiter: makeLimiter("test", { concurrent: 4, waitingMax: 1000 }) })
      const fibers = yield* Effect.forEach(Array.from({ length: 200 }), () =>
        Effect.forkChild(Effect.exit(call(sampleRequest(), () => undefined)))
      )
      yield* advance(60_000, 500)
      const exits = yield* Effect.forEach(fibers, Fiber.join)
      assert.isTrue(exits.every(Exit.isFailure))
      // Without the breaker it would be 600.
      assert.isBelow(seen.calls, 40)
    })
  )

  it.live("through real sockets ends in an answer for every wire format", () =>
    Effect.gen(function* () {
      for (const format of formats) {
        server.respond((_, index) =>
          index < 2
            ? {
                status: [429, 529][index] ?? 500,
                headers: { "content-type": "application/json", "retry-after-ms": "20" },
                body: format.errorBody("busy", "rate_limit")
              }
            : { body: format.stream(plainAnswer) }
        )
        const call = resilient(format.provider(server.url), { retry: { ...retryDefaults, delaysMs: [5, 5] } })
        const retries: Array<ErrorKind> = []
        const onRetry = (retry: RetryScheduled) =>
          Effect.sync(() => {
            expect(retry.delayMs).toBeGreaterThanOrEqual(20)
            retries.push(retry.error.kind)
          })
        assert.deepStrictEqual(yield* call(sampleRequest(), () => undefined, { onRetry }), { stopReason: "end_turn" })
        assert.strictEqual(retries.length, 2)
        assert.strictEqual(server.requests.length, 3)
      }
    })
  )
})
