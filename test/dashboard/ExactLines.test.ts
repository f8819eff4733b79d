// Goal: what somebody decides about can be read back from the page, character by character. Method: random texts, with
// everything in them that hides, reorders or breaks lines; the rows are read as a person would read them.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type ExactRow, exactRows, rowPiecesMax } from "#src/dashboard/state/ExactLines.ts"
import { seedFor } from "../support/seed.ts"

/** The text that the rows show. */
const readBack = (rows: ReadonlyArray<ExactRow>): string => {
  let text = ""
  for (const [at, row] of rows.entries()) {
    if (row.line !== 0 && at > 0) text += "\n"
    text += row.parts.map(({ text: part }) => unescaped(part)).join("")
  }
  return text
}

const named: Readonly<Record<string, string>> = { "\\": "\\", t: "\t", r: "\r", n: "\n" }

const unescaped = (shown: string): string =>
  shown.replace(/\\(?:x([\da-f]{2})|u\{([\da-f]+)\}|([\\trn]))/g, (_whole, byte, code, name) =>
    name === undefined ? String.fromCodePoint(Number.parseInt(byte ?? code, 16)) : (named[name] ?? "")
  )
const nasty = [
  "\u202e",
  "\u200b",
  "\u001b[31m",
  "\r",
  "\t",
  "\\",
  "\\x41",
  " ",
  "\n",
  "\u00a0",
  "\ufeff",
  "é",
  "e\u0301",
  "שלום",
  "😀",
  "\ud800"
]
const texts = fc.array(fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: "binary", maxLength: 8 })), {
  maxLength: 30
})

describe("exact rows", () => {
  it("can be read back to the exact text", () => {
    fc.assert(
      fc.property(texts, (parts) => {
        const text = parts.join("")
        expect(readBack(exactRows(text))).toBe(text)
      }),
      { seed: seedFor("exact rows"), numRuns: 300 }
    )
  })

  it("shows nothing but letters, marks, digits, signs and plain spaces", () => {
    const shown = exactRows(nasty.join(""))
      .flatMap(({ parts }) => parts.map(({ text }) => text))
      .join("")
    expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0]/u)
  })

  it("marks what it escaped, and a space at the end of a line", () => {
    expect(exactRows("a\u202eb ")).toEqual([
      {
        line: 1,
        parts: [
          { text: "a", isEscape: false },
          { text: "\\u{202e}", isEscape: true },
          { text: "b", isEscape: false },
          { text: "\\x20", isEscape: true }
        ]
      }
    ])
  })

  it("breaks a line of megabytes into rows and loses nothing of it", () => {
    const line = "x".repeat(5_000_000)
    const rows = exactRows(line)
    expect(rows).toHaveLength(Math.ceil(line.length / rowPiecesMax))
    expect(rows.map(({ line: number }) => number).filter((number) => number !== 0)).toEqual([1])
    expect(readBack(rows)).toBe(line)
  })
})
