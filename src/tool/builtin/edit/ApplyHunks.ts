// Puts hunks into a text. A hunk goes where its old lines are: at the line it names, or else at the nearest place that has
// them; space at the end of lines may differ. One that fits nowhere is told with the first line that differs.
import { elementAt } from "../../../rune/Elements.ts"
import { endsWithCrLf } from "../files/TextFile.ts"
import { type Hunk, type HunkLine, withoutReturn } from "./Patch.ts"

export type Applied =
  | { readonly _tag: "Applied"; readonly text: string }
  | { readonly _tag: "Failed"; readonly problems: ReadonlyArray<string> }

type Same = (left: string, right: string) => boolean

const exactly: Same = (left, right) => left === right
const butForTheEnd: Same = (left, right) => left.trimEnd() === right.trimEnd()

const matchesAt = (lines: ReadonlyArray<string>, at: number, wanted: ReadonlyArray<string>, same: Same): boolean =>
  at >= 0 &&
  at + wanted.length <= lines.length &&
  wanted.every((text, index) => same(elementAt(lines, at + index), text))

/** The nearest place to the expected one, from the cursor on. */
const nearest = (
  lines: ReadonlyArray<string>,
  wanted: ReadonlyArray<string>,
  place: { readonly from: number; readonly expected: number },
  same: Same
): number | undefined => {
  const last = lines.length - wanted.length
  const reach = Math.max(place.expected - place.from, last - place.expected, 0)
  for (let distance = 0; distance <= reach; distance += 1)
    for (const at of [place.expected + distance, place.expected - distance])
      if (at >= place.from && matchesAt(lines, at, wanted, same)) return at
  return undefined
}

const oldLinesOf = (hunk: Hunk): ReadonlyArray<string> =>
  hunk.lines.filter(({ mark }) => mark !== "+").map(({ text }) => text)

const quoted = (text: string): string => `“${text.length > 80 ? `${text.slice(0, 80)}…` : text}”`

/** Why a hunk fits nowhere: where it comes closest, and what is there instead. */
const problemOf = (lines: ReadonlyArray<string>, hunk: Hunk, expected: number): string => {
  const wanted = oldLinesOf(hunk)
  const first = wanted.findIndex((text) => text.trim() !== "")
  const at =
    hunk.oldStart === undefined ? lines.findIndex((line) => butForTheEnd(line, wanted[first] ?? "")) - first : expected
  if (at < 0) return `${hunk.header}: ${quoted(wanted[first] ?? "")} is nowhere in the file`
  const wrong = wanted.findIndex((text, index) => !butForTheEnd(lines[at + index] ?? "\0", text))
  if (wrong < 0) return `${hunk.header}: the place it fits comes before the hunk above it`
  const there = lines[at + wrong]
  const found =
    there === undefined ? `the file ends before line ${at + wrong + 1}` : `line ${at + wrong + 1} is ${quoted(there)}`
  return `${hunk.header}: ${found}, the patch has ${quoted(elementAt(wanted, wrong))}`
}

class Application {
  private lines: ReadonlyArray<string>
  /** Hunks come in order: none reaches back behind the one before it. */
  private cursor = 0
  private shift = 0
  private finalNewline: boolean

  constructor(lines: ReadonlyArray<string>, finalNewline: boolean) {
    this.lines = lines
    this.finalNewline = finalNewline
  }

  /** Nothing when it was applied, or why not. */
  apply(hunk: Hunk): string | undefined {
    const from = this.afterAnchor(hunk)
    if (from === undefined) return `${hunk.header}: ${quoted(hunk.anchor ?? "")} is nowhere after line ${this.cursor}`
    const wanted = oldLinesOf(hunk)
    const expected = this.expectedPlace(hunk, wanted, from)
    const at = wanted.length === 0 ? Math.min(expected, this.lines.length) : this.find(wanted, { from, expected })
    if (at === undefined) return problemOf(this.lines, hunk, expected)
    this.replace(at, wanted.length, hunk)
    return undefined
  }

  private afterAnchor({ anchor }: Hunk): number | undefined {
    if (anchor === undefined) return this.cursor
    for (const same of [exactly, butForTheEnd, (left: string, right: string) => left.trim() === right.trim()]) {
      const at = this.lines.findIndex((line, index) => index >= this.cursor && same(line, anchor))
      if (at >= 0) return at + 1
    }
    return undefined
  }

  private expectedPlace(hunk: Hunk, wanted: ReadonlyArray<string>, from: number): number {
    const { anchor, isAtEnd, oldStart } = hunk
    if (oldStart !== undefined) return Math.max(from, oldStart - (wanted.length === 0 ? 0 : 1) + this.shift)
    if (isAtEnd || (wanted.length === 0 && anchor === undefined))
      return Math.max(from, this.lines.length - wanted.length)
    return from
  }

  private find(wanted: ReadonlyArray<string>, place: { readonly from: number; readonly expected: number }) {
    return nearest(this.lines, wanted, place, exactly) ?? nearest(this.lines, wanted, place, butForTheEnd)
  }

  private replace(at: number, count: number, hunk: Hunk): void {
    const fresh = freshLines(this.lines, at, hunk.lines)
    this.lines = [...this.lines.slice(0, at), ...fresh, ...this.lines.slice(at + count)]
    this.cursor = at + fresh.length
    this.shift += fresh.length - count
    if (hunk.finalNewline !== undefined && this.cursor === this.lines.length) this.finalNewline = hunk.finalNewline
  }

  text(ending: string): string {
    if (this.lines.length === 0) return ""
    return `${this.lines.join(ending)}${this.finalNewline ? ending : ""}`
  }
}

/** Lines of context stay as the file has them. */
const freshLines = (lines: ReadonlyArray<string>, at: number, body: ReadonlyArray<HunkLine>): ReadonlyArray<string> => {
  let old = at
  return body.flatMap(({ mark, text }) => {
    if (mark === "+") return [text]
    old += 1
    return mark === " " ? [elementAt(lines, old - 1)] : []
  })
}

export const applyHunks = (text: string, hunks: ReadonlyArray<Hunk>): Applied => {
  const isCrLf = endsWithCrLf(text)
  const ending = isCrLf ? "\r\n" : "\n"
  const hasFinalNewline = text === "" || text.endsWith("\n")
  const split = text === "" ? [] : text.split(ending)
  const application = new Application(hasFinalNewline && text !== "" ? split.slice(0, -1) : split, hasFinalNewline)
  const asInFile = (hunk: Hunk): Hunk =>
    isCrLf ? { ...hunk, lines: hunk.lines.map((line) => ({ ...line, text: withoutReturn(line.text) })) } : hunk
  const problems = hunks.flatMap((hunk) => application.apply(asInFile(hunk)) ?? [])
  return problems.length > 0 ? { _tag: "Failed", problems } : { _tag: "Applied", text: application.text(ending) }
}
