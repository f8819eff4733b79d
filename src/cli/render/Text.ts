// Text that is safe and fits: what agents, tools and models said is shown without its control characters, so that no
// output can move the cursor or retitle the window, and cut to the columns there are.
import { stripVTControlCharacters } from "node:util"
import type { Terminal } from "../Verb.ts"

const wide =
  /\p{Extended_Pictographic}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u
const emojiShown = /\p{Emoji_Presentation}|\ufe0f/u
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })

const graphemeWidth = (grapheme: string): number => {
  const code = grapheme.codePointAt(0) ?? 0
  if (code < 0x7f) return 1
  if (/^\p{Mark}/u.test(grapheme)) return 0
  if (/\p{Extended_Pictographic}/u.test(grapheme)) return emojiShown.test(grapheme) ? 2 : 1
  return wide.test(grapheme) ? 2 : 1
}

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** Columns that the text takes; it holds no control characters. */
export const widthOf = (text: string): number => {
  if (isPlain(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment)
  return width
}

/** Escape sequences, control characters and changes of direction gone; line ends and tabs as given. */
export const safeText = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\p{Cc}/gu, (found) => (found === "\n" || found === "\t" ? found : ""))
    .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")

/** On one line. */
export const oneLine = (text: string): string => safeText(text).replace(/\s+/g, " ").trim()

/** The beginning that fits, with an ellipsis when something is missing. */
export const fitStart = (text: string, columns: number): string => {
  if (columns <= 0) return ""
  if (isPlain(text) && text.length <= columns) return text
  let width = 0
  let kept = ""
  for (const { segment } of segmenter.segment(text)) {
    const next = graphemeWidth(segment)
    if (width + next > columns - 1) return widthOf(text) <= columns ? text : `${kept}…`
    width += next
    kept += segment
  }
  return kept
}

/** The end that fits. */
export const fitEnd = (text: string, columns: number): string => {
  if (widthOf(text) <= columns) return text
  const parts = [...segmenter.segment(text.slice(-columns * 4))].map(({ segment }) => segment)
  let width = 1
  let kept = ""
  for (const part of parts.reverse()) {
    width += graphemeWidth(part)
    if (width > columns) break
    kept = part + kept
  }
  return `…${kept}`
}

export const pad = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - widthOf(text)))

export const number = (value: number): string => value.toLocaleString("en-US")

export const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  return minutes < 60
    ? `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Null is a cost that nobody knows; nothing is said of what was free. */
export const money = (usd: number | null): string => {
  if (usd === null) return "cost unknown"
  return usd === 0 ? "" : `$${usd.toFixed(usd < 0.1 ? 4 : 2)}`
}

/** Local time of day. */
export const clock = (ms: number): string => new Date(ms).toTimeString().slice(0, 8)

/** `2026-11-16 04:05:06`, local. */
export const moment = (ms: number): string => {
  const at = new Date(ms)
  const two = (value: number): string => String(value).padStart(2, "0")
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`
}

/** Rows as columns, each as wide as its widest cell; the last one takes what is left, and in a pipe all it needs. */
export const table = (
  rows: ReadonlyArray<ReadonlyArray<string>>,
  terminal: Pick<Terminal, "columns" | "isWatched">
): ReadonlyArray<ReadonlyArray<string>> => {
  const columns = terminal.isWatched ? terminal.columns() : Number.MAX_SAFE_INTEGER
  const count = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: count }, (_, at) => Math.max(...rows.map((row) => widthOf(row[at] ?? ""))))
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  return rows.map((row) =>
    row.map((cell, at) =>
      at === count - 1 ? fitStart(cell, Math.max(8, columns - before)) : pad(cell, widths[at] ?? 0)
    )
  )
}
