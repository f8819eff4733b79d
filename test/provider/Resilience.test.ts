// Goal: pauses are as long and as spread out as agreed; a provider that is down for several conversations is left alone
// and found again by one probe, while one conversation's own trouble touches nobody else; slots are waited for in order and given
// back. Method: pure policies by value and at random; guard and limiter on the test clock.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import {
  admit,
  type BreakerState,
  breakerDefaults,
  type CallReport,
  closedBreaker,
  record
} from "#src/provider/Breaker.ts"
import { type ErrorKind, errorKinds, providerError, providerHealth } from "#src/provider/ProviderErrors.ts"
import { limits } from "#src/provider/ProviderLimits.ts"
import { makeGuard, makeLimiter } from "#src/provider/Resilience.ts"
import { retryDelayMs } from "#src/provider/RetryPolicy.ts"
import { count, reportCount } from "../support/counts.ts"
import { seedFor } from "../support/seed.ts"

const failure = (kind: ErrorKind, more: { readonly retryAfterMs?: number; readonly status?: number } = {}) =>
  providerError({ kind, provider: "test", message: "no", ...more })

const settle = Effect.promise(async () => {
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
})

const advance = Effect.fnUntraced(function* (totalMs: number, stepMs: number) {
  for (let passed = 0; passed < totalMs; passed += stepMs) {
    yield* TestClock.adjust(stepMs)
    yield* settle
  }
})

describe("the pause before a retry", () => {
  it("is the usual one or the one the provider asks for, whichever is longer", () => {
    assert.strictEqual(retryDelayMs(failure("rate_limited", { retryAfterMs: 7000 }), 250, 0), 7000)
    assert.strictEqual(retryDelayMs(failure("rate_limited", { retryAfterMs: 10 }), 250, 0), 250)
  })

  it("has at most its share of jitter and is never cut short", () => {
    const spread = new Set<number>()
    fc.assert(
      fc.property(
        fc.constantFrom(250, 1000),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        fc.nat(100_000),
        (usual, random, asked) => {
          const delayMs = retryDelayMs(failure("overloaded", { retryAfterMs: asked }), usual, random)
          spread.add(delayMs)
          assert.isAtLeast(delayMs, Math.max(asked, usual))
          assert.isAtMost(delayMs, Math.ceil(Math.max(asked, usual) * (1 + limits.retryJitter)))
        }
      ),
      { seed: seedFor("retry jitter") }
    )
    assert.isAbove(spread.size, 10)
  })
})

describe("what a failure says about the provider", () => {
  const down: ReadonlyArray<ErrorKind> = ["overloaded", "server_error", "connection"]
  const unknown: ReadonlyArray<ErrorKind> = ["truncated", "timeout", "malformed_response", "circuit_open", "queue_full"]

  it("is that it is down only where it refuses connections or fails itself", () => {
    for (const kind of errorKinds) {
      const expected = down.includes(kind) ? "down" : unknown.includes(kind) ? "unknown" : "up"
      assert.strictEqual(providerHealth(failure(kind)), expected, kind)
    }
  })

  it("goes by the status where there is one", () => {
    assert.strictEqual(providerHealth(failure("timeout", { status: 504 })), "down")
    assert.strictEqual(providerHealth(failure("server_error", { status: 409 })), "up")
    assert.strictEqual(providerHealth(failure("timeout", { status: 408 })), "up")
  })
})

describe("the breaker", () => {
  const at = (nowMs: number, probe = false, source = "a") => ({ nowMs, probe, source })
  const other = (nowMs: number) => at(nowMs, false, "b")

  it("opens after the agreed number of failures in a row, of more than one conversation", () => {
    let state: BreakerState = closedBreaker
    for (let times = 0; times < 3 * limits.breakerFailures; times++) state = record(state, "down", at(0))
    assert.deepStrictEqual(state, { _tag: "Closed", failures: limits.breakerFailures, sources: ["a"] })
    state = record(state, "down", other(100))
    assert.deepStrictEqual(state, { _tag: "Open", untilMs: 100 + limits.breakerOpenMs, pauseMs: limits.breakerOpenMs })
  })

  it("forgets failures at the first sign of life, and thinks nothing of what says nothing", () => {
    const almost: BreakerState = { _tag: "Closed", failures: limits.breakerFailures - 1, sources: ["a", "b"] }
    assert.deepStrictEqual(record(almost, "up", at(0)), closedBreaker)
    assert.deepStrictEqual(record(almost, "unknown", at(0)), almost)
    assert.strictEqual(record(almost, "down", at(0))._tag, "Open")
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
    assert.deepStrictEqual(record(probing, "up", at(9, true)), closedBreaker)
    assert.deepStrictEqual(record(probing, "down", at(9, true)), { _tag: "Open", untilMs: 1009, pauseMs: 1000 })
    assert.deepStrictEqual(record(probing, "unknown", at(9, true)), {
      _tag: "Open",
      untilMs: 9,
      pauseMs: 500
    })
    assert.deepStrictEqual(record(probing, "down", at(9)), probing)
    const long: BreakerState = { _tag: "Probing", pauseMs: limits.breakerOpenMsMax }
    assert.deepStrictEqual(record(long, "down", at(0, true)), {
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
              state = record(state, "unknown", at(nowMs, true))
              probes = 0
            }
            continue
          }
          state = admission.state
          if (admission.probe) probes++
          assert.isAtMost(probes, 1)
          if (outcome === "hold") continue
          const report: CallReport = outcome === "ok" ? "up" : outcome === "bad" ? "down" : "unknown"
          const source = late ? "a" : "b"
          state = record(state, report, at(nowMs, admission.probe, source))
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

describe("the guard", () => {
  const down = Effect.fail(failure("connection"))
  const break_ = Effect.fnUntraced(function* (guard: ReturnType<typeof makeGuard>) {
    for (let times = 0; times < limits.breakerFailures; times++) {
      assert.strictEqual((yield* Effect.flip(guard.run(`conversation ${times % 2}`, down))).kind, "connection")
    }
    assert.strictEqual(guard.circuit().circuit, "open")
  })

  it.effect("stays closed for everybody whatever one conversation meets", () =>
    Effect.gen(function* () {
      const guard = makeGuard("test")
      for (let times = 0; times < 20; times++) {
        for (const kind of errorKinds) yield* Effect.exit(guard.run("one", Effect.fail(failure(kind))))
        for (const kind of ["connection", "server_error"] as const)
          yield* Effect.exit(guard.run("one", Effect.fail(failure(kind))))
      }
      for (let times = 0; times < 20; times++) {
        for (const kind of ["truncated", "timeout", "malformed_response"] as const)
          yield* Effect.exit(guard.run(`conversation ${times}`, Effect.fail(failure(kind))))
      }
      assert.strictEqual(yield* guard.run("other", Effect.succeed("answered")), "answered")
      assert.strictEqual(guard.circuit().circuit, "closed")
    })
  )

  it.effect("holds calls while the provider is down, lets one find out, then all", () =>
    Effect.gen(function* () {
      const guard = makeGuard("test")
      yield* break_(guard)
      const refused = yield* Effect.flip(guard.run("other", Effect.succeed("sent")))
      assert.strictEqual(refused.kind, "circuit_open")
      assert.strictEqual(refused.retryAfterMs, limits.breakerOpenMs)
      let sent = 0
      const call = (id: number) =>
        Effect.andThen(
          guard.ready,
          guard.run(
            `held ${id}`,
            Effect.sync(() => {
              sent++
            })
          )
        )
      const fibers = yield* Effect.forEach([1, 2, 3], (id) => Effect.forkChild(call(id)))
      yield* settle
      assert.strictEqual(guard.circuit().held, 3)
      yield* advance(limits.breakerOpenMs - limits.breakerLookMs, limits.breakerLookMs)
      assert.strictEqual(sent, 0)
      yield* advance(2 * limits.breakerLookMs, limits.breakerLookMs)
      assert.isAtLeast(sent, 1)
      yield* advance(2000, limits.breakerLookMs)
      yield* Effect.forEach(fibers, Fiber.join)
      assert.strictEqual(sent, 3)
      assert.deepStrictEqual(guard.circuit(), { circuit: "closed", failures: 0, until_ms: null, held: 0 })
    })
  )

  it.effect("that finds the provider still down waits twice as long, and asks it once each time", () =>
    Effect.gen(function* () {
      const guard = makeGuard("test")
      yield* break_(guard)
      let asked = 0
      const call = Effect.andThen(
        guard.ready,
        guard.run(
          "held",
          Effect.suspend(() => {
            asked++
            return down
          })
        )
      )
      const fibers = yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkChild(Effect.exit(call)))
      yield* advance(limits.breakerOpenMs + 500, limits.breakerLookMs)
      assert.strictEqual(asked, 1)
      assert.strictEqual(guard.circuit().circuit, "open")
      yield* advance(2 * limits.breakerOpenMs, limits.breakerLookMs)
      assert.strictEqual(asked, 2)
      for (const fiber of fibers) yield* Fiber.interrupt(fiber)
      assert.strictEqual(guard.circuit().held, 0)
    })
  )

  it.effect("does not count a call that is interrupted", () =>
    Effect.gen(function* () {
      const guard = makeGuard("test")
      for (let times = 0; times < breakerDefaults.failures + 1; times++) {
        const fiber = yield* Effect.forkChild(guard.run(`conversation ${times}`, Effect.never))
        yield* settle
        yield* Fiber.interrupt(fiber)
      }
      assert.deepStrictEqual(guard.state(), closedBreaker)
    })
  )
})
