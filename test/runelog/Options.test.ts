// Goal: no setting lets an append wait for room that cannot come. Method: resolved limits, and what they refuse.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { alignPage, BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, JOURNAL_PAGE_BYTES } from "#runelog/journal/JournalBatch.ts"
import { resolveLimits } from "#runelog/Options.ts"
import { LimitInvalid } from "#runelog/RunelogErrors.ts"
import { KIB, limits, MIB } from "#runelog/RunelogLimits.ts"

const refusal = (overrides: Parameters<typeof resolveLimits>[0]): LimitInvalid => {
  try {
    resolveLimits(overrides)
  } catch (error) {
    if (error instanceof LimitInvalid) return error
    throw error
  }
  throw new Error("it was accepted")
}

describe("limits", () => {
  it("are the table's unless told otherwise", () => {
    expect(resolveLimits(undefined)).toEqual({ ...limits, slabBytes: 2 * MIB })
    expect(resolveLimits({ pageBytes: 7 })).toMatchObject({ pageBytes: 7, segmentBytes: limits.segmentBytes })
  })

  it("name what cannot be", () => {
    expect(refusal({ pageBytes: -1 })).toMatchObject({ name: "pageBytes", value: -1 })
    expect(refusal({ segmentBytes: 1.5 })).toMatchObject({ name: "segmentBytes", value: 1.5 })
    expect(refusal({ journalFileBytes: 8 * KIB })).toMatchObject({ name: "journalFileBytes" })
    expect(refusal({ pendingBytesMax: 31 * KIB })).toMatchObject({ name: "pendingBytesMax" })
    expect(refusal({ bodyBytesMax: 17 * MIB })).toMatchObject({ name: "bodyBytesMax" })
    expect(refusal({ bodyBytesMax: 17 * MIB }).message).toBe(
      "limit bodyBytesMax cannot be 17825792: the format holds 16777216"
    )
  })

  it("keep the largest batch small enough for a journal file and for the memory", () => {
    fc.assert(
      fc.property(fc.nat(MIB), fc.nat(64 * KIB), fc.nat(MIB), (journalFileBytes, reserveBytes, pendingBytesMax) => {
        const given = { journalFileBytes, reserveBytes, pendingBytesMax }
        try {
          const resolved = resolveLimits(given)
          const overhead = BATCH_HEADER_BYTES + GROUP_HEADER_BYTES + resolved.nameBytesMax
          const batch = Math.max(alignPage(resolved.batchBytesMax + overhead), resolved.slabBytes)
          expect(JOURNAL_PAGE_BYTES + batch + reserveBytes).toBeLessThanOrEqual(journalFileBytes)
          // A string is measured as three times its length before it is encoded.
          expect(alignPage(3 * resolved.batchBytesMax + overhead)).toBeLessThanOrEqual(pendingBytesMax)
        } catch (error) {
          expect(error).toBeInstanceOf(LimitInvalid)
        }
      })
    )
  })
})
