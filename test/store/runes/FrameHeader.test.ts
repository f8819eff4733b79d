// Goal: headers say what the registry of kinds says, for ever the same. Method: every kind's example, the numbers on
// disk pinned, and random ids for the streams.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { definitions, kinds, lookup } from "#src/rune/Kinds.ts"
import { encode, type Rune } from "#src/rune/Rune.ts"
import { deltaKey, supersededKey } from "#src/rune/Supersession.ts"
import { familyNames, familyNumber, familySet } from "#src/store/runes/Families.ts"
import { entryOf, isTerminal, kindHeader, streamOf } from "#src/store/runes/FrameHeader.ts"
import { exampleRune } from "../../support/runeExamples.ts"
import { seedFor } from "../../support/seed.ts"
import { Scribe } from "../support.ts"

describe("the header of a frame", () => {
  it("numbers families as it always did", () => {
    expect(familyNumber).toEqual({
      session: 1,
      agent: 2,
      turn: 3,
      tool: 4,
      hook: 5,
      plan: 6,
      harness: 7,
      config: 8,
      system: 9,
      checkpoint: 10
    })
    expect(new Set(definitions.map(({ family }) => family))).toEqual(new Set(familyNames))
    expect(familySet(["turn", "tool"])).toEqual(new Set([3, 4]))
  })

  it.each(kinds)("of %s carries visibility, family, stream and role", (kind) => {
    const rune: Rune = exampleRune(kind)
    const body = encode(rune)
    const entry = entryOf(rune, body)
    const delta = deltaKey(rune)
    const superseded = supersededKey(rune)
    expect(entry.body).toBe(body)
    expect(entry.family).toBe(familyNumber[lookup(kind)!.family])
    expect(entry.visibility).toBe({ public: 0, internal: 1, secret: 2 }[rune.visibility])
    expect(entry.role).toBe(delta !== undefined ? "delta" : superseded === undefined ? undefined : "supersedes")
    expect(entry.stream === undefined).toBe(delta === undefined && superseded === undefined)
    expect(isTerminal(rune)).toBe(lookup(kind)!.runeClass === "terminal")
  })

  it("of a kind nobody knows carries no more than its visibility", () => {
    const rune = { ...exampleRune("session.created"), kind: "future.kind", visibility: "secret" } as unknown as Rune
    expect(entryOf(rune, "{}")).toEqual({ body: "{}", visibility: 2, family: 0 })
    expect(kindHeader("constructor").family).toBe(0)
  })

  it("ties a delta to nothing when it does not say whose it is", () => {
    const example = exampleRune("tool.progress")
    expect(entryOf({ ...example, payload: {} } as Rune, "").role).toBeUndefined()
    expect(entryOf({ ...example, payload: null } as unknown as Rune, "").role).toBeUndefined()
    const { turn_id: _, ...without } = exampleRune("turn.assistant_delta")
    expect(entryOf(without as Rune, "").role).toBeUndefined()
  })

  it("ties deltas to the rune that repeats them, turn by turn and call by call", () => {
    const scribe = new Scribe().begin()
    for (let turn = 0; turn < 3; turn++) scribe.turn()
    const streams = new Map<string, Set<number | undefined>>()
    for (const rune of scribe.runes) {
      const key = deltaKey(rune) ?? supersededKey(rune)
      if (key === undefined) continue
      const found = streams.get(key) ?? new Set()
      streams.set(key, found.add(entryOf(rune, "").stream))
    }
    expect(streams.size).toBe(6)
    expect([...streams.values()].every((found) => found.size === 1)).toBe(true)
    expect(new Set([...streams.values()].flatMap((found) => [...found])).size).toBe(6)
  })

  it("never gives two counted ids the same stream, nor a counted one that of a foreign one", () => {
    const ordinal = fc.integer({ min: 1, max: 0x3fff_ffff })
    fc.assert(
      fc.property(ordinal, ordinal, fc.string(), (left, right, foreign) => {
        const turn = streamOf("turn", `turn_${left}`)
        expect(turn === streamOf("turn", `turn_${right}`)).toBe(left === right)
        expect(turn).not.toBe(streamOf("call", `call_${right}`))
        const other = streamOf("call", `toolu ${foreign}`)
        expect(other).toBeGreaterThanOrEqual(0xc000_0000)
        expect(other).toBeLessThanOrEqual(0xffff_ffff)
        expect(other).toBe(streamOf("call", `toolu ${foreign}`))
      }),
      { seed: seedFor("streams") }
    )
    expect(streamOf("turn", "turn_99999999999")).toBeGreaterThanOrEqual(0xc000_0000)
    expect(streamOf("turn", "call_7")).toBeGreaterThanOrEqual(0xc000_0000)
  })

  it("pins the streams that are on disk", () => {
    expect(streamOf("turn", "turn_7")).toBe(0x4000_0007)
    expect(streamOf("call", "call_7")).toBe(0x8000_0007)
    expect(streamOf("call", "toolu_01A").toString(16)).toBe("e63e0915")
  })
})
