// Text that somebody decides about, line by line: every character visible, what cannot be seen as an escape that is marked
// as one. Joining the rows and undoing the escapes gives back the exact text.
import { pieces } from "../../present/VisibleText.ts"

export interface ExactPart {
  readonly text: string
  readonly isEscape: boolean
}

export interface ExactRow {
  /** 1 for the first line; 0 for the rest of a line that is too long for one row. */
  readonly line: number
  readonly parts: ReadonlyArray<ExactPart>
}

/** A row is never longer: layout stays fast for a line of megabytes. */
export const rowPiecesMax = 2000
const escapedSpace = "\\x20"

const partsOf = (shown: ReadonlyArray<string>, isEnd: boolean): ReadonlyArray<ExactPart> => {
  const parts: Array<{ text: string; isEscape: boolean }> = []
  shown.forEach((piece, at) => {
    // A space at the end of a line would be seen by nobody.
    const isHidden = piece === " " && isEnd && at === shown.length - 1
    const text = isHidden ? escapedSpace : piece
    const isEscape = text.startsWith("\\")
    const last = parts.at(-1)
    if (last !== undefined && last.isEscape === isEscape) last.text += text
    else parts.push({ text, isEscape })
  })
  return parts
}

export const exactRows = (text: string): ReadonlyArray<ExactRow> =>
  text.split("\n").flatMap((line, index) => {
    const shown = pieces(line)
    if (shown.length <= rowPiecesMax) return [{ line: index + 1, parts: partsOf(shown, true) }]
    const rows: Array<ExactRow> = []
    for (let at = 0; at < shown.length; at += rowPiecesMax) {
      const isEnd = at + rowPiecesMax >= shown.length
      rows.push({ line: at === 0 ? index + 1 : 0, parts: partsOf(shown.slice(at, at + rowPiecesMax), isEnd) })
    }
    return rows
  })
