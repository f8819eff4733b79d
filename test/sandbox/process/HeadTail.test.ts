// Goal: the beginning and the end of any stream are kept, exactly, in bounded memory. Method: every way of cutting the
// same bytes into pieces gives the same answer as a plain model; characters are never cut.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { HeadTail } from "#src/sandbox/process/HeadTail.ts"
import { seedFor } from "../../support/seed.ts"

const kept = (pieces: ReadonlyArray<Uint8Array>, bytesMax: number): HeadTail => {
  const janitor = new HeadTail(bytesMax)
  for (const piece of pieces) janitor.add(Buffer.from(piece))
  return janitor
}

describe("head and tail", () => {
  it("are the first and the last half of what is too long, whatever the pieces", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }),
        fc.integer({ min: 2, max: 64 }),
        (pieces, max) => {
          const janitor = kept(pieces, max)
          const all = Buffer.concat(pieces)
          const half = Math.floor(max / 2)
          const dropped = Math.max(0, all.length - 2 * half)
          expect(janitor.total).toBe(all.length)
          expect(janitor.dropped).toBe(dropped)
          const expected = dropped === 0 ? all : Buffer.concat([all.subarray(0, half), all.subarray(all.length - half)])
          expect(janitor.bytes().equals(expected)).toBe(true)
        }
      )
    )
  })

  it("never show a part of a character", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 20, maxLength: 200 }),
        fc.integer({ min: 8, max: 40 }),
        (text, max) => {
          // The sign for a broken character may itself be drawn.
          const sound = text.toWellFormed().replaceAll("\ufffd", "?")
          expect(kept([Buffer.from(sound)], max).toString()).not.toContain("\ufffd")
        }
      ),
      { seed: seedFor("characters at the cut") }
    )
  })

  it("say how much is missing", () => {
    expect(kept([Buffer.from("a".repeat(50) + "b".repeat(50))], 10).toString()).toBe(
      "aaaaa\n… 90 bytes left out …\nbbbbb"
    )
  })
})
