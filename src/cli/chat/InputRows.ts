// The rows of the line being edited: wrapped to the window, with the cursor's place, and no more of a long text than a
// third of the window around the cursor.
import { widthOf } from "../render/Text.ts"
import type { Bottom } from "./Painter.ts"

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })
const rowsMin = 3

interface Place {
  readonly text: string
  /** In UTF-16 units of the whole text. */
  readonly from: number
}

/** Each line of the text in pieces that fit. */
const wrapped = (text: string, columns: number): ReadonlyArray<Place> => {
  const rows: Array<Place> = []
  let from = 0
  for (const line of text.split("\n")) {
    let piece = ""
    let width = 0
    let start = from
    for (const { index, segment } of segmenter.segment(line)) {
      const next = widthOf(segment)
      if (width + next > columns) {
        rows.push({ text: piece, from: start })
        piece = ""
        width = 0
        start = from + index
      }
      piece += segment
      width += next
    }
    rows.push({ text: piece, from: start })
    from += line.length + 1
  }
  return rows
}

/** Control characters that were pasted are shown as what they are not: one column each. */
const drawn = (text: string): string => text.replace(/\p{Cc}/gu, "␀")

export interface InputView {
  readonly prompt: string
  /** Columns of the prompt. */
  readonly promptColumns: number
  readonly text: string
  readonly cursor: number
  readonly columns: number
  readonly rowsMax: number
}

export const inputRows = (view: InputView): Bottom => {
  const { columns, cursor, prompt, promptColumns, rowsMax } = view
  const text = view.text.replaceAll("\t", " ")
  const room = Math.max(8, columns - promptColumns - 1)
  const all = wrapped(text, room)
  const at = Math.max(
    0,
    all.findLastIndex(({ from }) => from <= cursor)
  )
  const window = Math.max(rowsMin, rowsMax)
  const first = Math.max(0, Math.min(at - Math.floor(window / 2), all.length - window))
  const shown = all.slice(first, first + window)
  const lead = " ".repeat(promptColumns)
  const above = first
  const below = all.length - first - shown.length
  const rows = shown.map((row, index) => `${index === 0 && first === 0 ? prompt : lead}${drawn(row.text)}`)
  const here = all[at] ?? { text: "", from: 0 }
  const column = promptColumns + widthOf(drawn(text.slice(here.from, cursor)))
  return {
    rows: [
      ...(above > 0 ? [`${prompt}… ${above} more line${above === 1 ? "" : "s"} above`] : []),
      ...rows,
      ...(below > 0 ? [`${lead}… ${below} more line${below === 1 ? "" : "s"} below`] : [])
    ],
    cursor: { row: at - first + (above > 0 ? 1 : 0), column: Math.min(column, columns - 1) }
  }
}
