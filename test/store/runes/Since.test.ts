// Goal: the cursor of a time lies in front of the first rune at or after it. Method: small logs with gaps, every time and
// every length, beside a plain search.
import { describe, expect, it } from "vitest"
import type { AnyRune } from "#src/rune/Rune.ts"
import { cursorSince } from "#src/store/runes/Since.ts"
import { count, reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"

interface Kept {
  readonly event_id: number
  readonly ts_ms: number
}

/** Reads one rune or one gap at a time, as pages of one byte do. */
const sourceOf = (runes: ReadonlyArray<Kept>, head: number) => {
  let reads = 0
  return {
    reads: () => reads,
    headNow: async () => head,
    readNow: async (_id: string, { after }: { readonly after: number }) => {
      reads += 1
      const at = runes.findIndex(({ event_id: id }) => id > after)
      const rune = runes[at]
      const isGap = rune === undefined || rune.event_id > after + 1
      const next = isGap ? (rune === undefined ? head : rune.event_id - 1) : rune.event_id
      return { runes: isGap ? [] : [rune as unknown as AnyRune], gaps: [], next, head }
    }
  }
}

describe("the cursor of a time", () => {
  it("is that of a search from the beginning, with a few reads", async () => {
    const rounds = count("times looked up in logs", { fast: 400, soak: 20_000 })
    const random = randomFrom(seedFor("times looked up in logs"))
    for (let round = 0; round < rounds; round++) {
      const head = 1 + Math.floor(random() * 60)
      let tsMs = 0
      const all = Array.from({ length: head }, (_, index) => {
        tsMs += Math.floor(random() * 3)
        return { event_id: index + 1, ts_ms: tsMs }
      })
      const runes = all.filter(() => random() < 0.7)
      const sinceMs = Math.floor(random() * (tsMs + 2))
      const source = sourceOf(runes, head)
      const cursor = await cursorSince(source, "conv_00000000", sinceMs)
      const behind = runes.filter(({ event_id: id }) => id > cursor)
      expect(behind).toEqual(runes.filter(({ ts_ms: ms }) => ms >= sinceMs))
      expect(source.reads()).toBeLessThanOrEqual(20)
    }
    reportCount("times looked up in logs", rounds)
  })
})
