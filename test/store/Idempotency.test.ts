// Goal: a repeated command gets its first outcome, another body under the same key is a conflict, and a day later the key
// is new. Method: runes with keys, in every order that can happen.
import { describe, expect, it } from "vitest"
import type { AnyRune } from "#src/rune/Rune.ts"
import { findOutcome, judge, mergeOutcome, noteOutcome, type Outcome, outcomesOf } from "#src/store/Idempotency.ts"
import { limits } from "#src/store/Limits.ts"
import { Scribe } from "./support.ts"

const hash = "a".repeat(64)
const scribe = () => new Scribe().begin()

describe("the key of a command", () => {
  it("leads to the runes it caused", () => {
    const writer = scribe()
    writer.add("session.paused", { reason: "x" }, { idempotency_key: "k1", idempotency_hash: hash })
    writer.add("session.resumed", {}, { idempotency_key: "k1", idempotency_hash: hash })
    writer.add("session.paused", { reason: "y" })
    const outcome = findOutcome(writer.runes, { key: "k1", nowMs: writer.nowMs })
    expect(outcome).toMatchObject({ key: "k1", hash, firstEventId: 5, lastEventId: 6 })
    expect(judge(outcome, { hash, nowMs: writer.nowMs })).toEqual({ _tag: "Repeat", outcome })
    expect(judge(outcome, { hash: "b".repeat(64), nowMs: writer.nowMs })).toEqual({ _tag: "Conflict", outcome })
    expect(findOutcome(writer.runes, { key: "k2", nowMs: writer.nowMs })).toBeUndefined()
    expect(judge(undefined, { hash, nowMs: 0 })).toEqual({ _tag: "Fresh" })
  })

  it("is new again after a day", () => {
    const writer = scribe()
    const { ts_ms: atMs } = writer.add("session.paused", { reason: "x" }, { idempotency_key: "k1" })
    const day = limits.idempotencyTtlMs
    expect(findOutcome(writer.runes, { key: "k1", nowMs: atMs + day - 1 })).toMatchObject({ hash: "", firstEventId: 5 })
    expect(findOutcome(writer.runes, { key: "k1", nowMs: atMs + day })).toBeUndefined()
    const outcome: Outcome = outcomesOf(writer.runes).get("k1")!
    expect(judge(outcome, { hash: "", nowMs: atMs + day })).toEqual({ _tag: "Fresh" })
    writer.nowMs += day
    writer.add("session.resumed", {}, { idempotency_key: "k1" })
    expect(findOutcome(writer.runes, { key: "k1", nowMs: writer.nowMs })).toMatchObject({ firstEventId: 6 })
  })

  it("goes on only in the same conversation with the same body", () => {
    const before: Outcome = { key: "k", hash, conversationId: "a", firstEventId: 3, lastEventId: 4, tsMs: 100 }
    const after: Outcome = { ...before, firstEventId: 5, lastEventId: 5, tsMs: 200 }
    expect(mergeOutcome(before, after)).toEqual({ ...after, firstEventId: 3, tsMs: 100 })
    expect(mergeOutcome(undefined, after)).toBe(after)
    for (const other of [
      { conversationId: "b" },
      { hash: "c" },
      { firstEventId: 9 },
      { tsMs: -limits.idempotencyTtlMs }
    ]) {
      expect(mergeOutcome({ ...before, ...other }, after)).toBe(after)
    }
  })

  it("is forgotten, the oldest first, when there are too many", () => {
    const known = new Map<string, Outcome>()
    const [rune] = scribe().runes as [AnyRune]
    noteOutcome(known, rune)
    expect(known.size).toBe(0)
    for (let number = 0; number <= limits.idempotencyKeysMax; number++) {
      noteOutcome(known, { ...rune, idempotency_key: `k${number}` })
    }
    expect(known.size).toBe(limits.idempotencyKeysMax)
    expect(known.has("k0")).toBe(false)
    expect(known.has("k1")).toBe(true)
  })
})
