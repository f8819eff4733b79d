// Text that hides nothing: what somebody decides about is shown so that its exact characters can be read back. What a
// terminal would obey, swallow, reorder or draw as nothing is written as an escape (`\x1b`, `\u{202e}`, `\\`); lines are
// wrapped, never cut. A new line of a text begins with "│", the rest of a wrapped one with "┆".
import { pieces, visible, visibleJson } from "../../present/VisibleText.ts"
import { widthOf } from "./Text.ts"

const newLine = "│ "
const wrappedLine = "┆ "
/** Where the width is unknown. */
const columnsAssumed = 80
const columnsMin = 20
const escapedSpace = "\\x20"
/** Levels that are named one by one; what lies deeper is shown as JSON. */
const depthMax = 8
const inlineCharsMax = 200

/** Rows of at most so many columns; a space that would end one, and so be seen by nobody, is an escape. */
const wrap = (parts: ReadonlyArray<string>, columns: number): ReadonlyArray<string> => {
  const room = columns - escapedSpace.length + 1
  const rows: Array<string> = []
  let row = ""
  let width = 0
  for (const part of parts) {
    const next = widthOf(part)
    if (width > 0 && width + next > room) {
      rows.push(row)
      row = ""
      width = 0
    }
    row += part
    width += next
  }
  return [...rows, row].map((one) => (one.endsWith(" ") ? `${one.slice(0, -1)}${escapedSpace}` : one))
}

/** The columns there are for text, whatever a terminal says it has. */
export const roomIn = (columns: number, taken: number): number =>
  Math.max(columnsMin, (columns > 0 ? columns : columnsAssumed) - taken)

/** One line of words, wrapped. */
export const wordRows = (text: string, columns: number): ReadonlyArray<string> => {
  const [first = "", ...rest] = wrap(pieces(text), columns - wrappedLine.length)
  return [first, ...rest.map((row) => `${wrappedLine}${row}`)]
}

/** A text of several lines. */
export const textRows = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const rows = wrap(pieces(line), columns - newLine.length)
    return rows.map((row, at) => `${at === 0 ? newLine : wrappedLine}${row}`.trimEnd())
  })

const jsonRows = (text: string, columns: number): ReadonlyArray<string> => {
  // An escape is not torn in two.
  const [first = "", ...rest] = wrap(text.match(/\\u[\da-f]{4}|\\.|./gsu) ?? [], columns - wrappedLine.length)
  return [first, ...rest.map((row) => `${wrappedLine}${row}`)]
}

const isBare = (key: string): boolean => /^[A-Za-z_][\w-]*$/.test(key)

const below = (path: string, key: string): string => {
  if (!isBare(key)) return `${path}[${visibleJson(key)}]`
  return path === "" ? key : `${path}.${key}`
}

const stringRows = (path: string, text: string, columns: number): ReadonlyArray<string> => {
  const shown = `${path}: ${visible(text).replace(/^ /, escapedSpace)}`
  const isShort = text !== "" && !text.includes("\n") && widthOf(shown) <= columns - escapedSpace.length
  if (isShort) return [shown.endsWith(" ") ? `${shown.slice(0, -1)}${escapedSpace}` : shown]
  return [...jsonRows(`${path}:`, columns), ...textRows(text, columns)]
}

const isInline = (value: ReadonlyArray<unknown>): boolean =>
  value.every((one) => (typeof one === "string" ? !one.includes("\n") : typeof one !== "object" || one === null)) &&
  visibleJson(value).length <= inlineCharsMax

interface Place {
  readonly path: string
  readonly value: unknown
  readonly depth: number
}

/** What lies in a value, to be shown one by one; undefined when it is shown as a whole. */
const parts = ({ depth, path, value }: Place): ReadonlyArray<Place> | undefined => {
  if (typeof value !== "object" || value === null || depth >= depthMax) return undefined
  if (Array.isArray(value)) {
    if (isInline(value)) return undefined
    return value.map((one, at) => ({ path: `${path}[${at}]`, value: one, depth: depth + 1 }))
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return undefined
  return entries.map(([key, one]) => ({ path: below(path, key), value: one, depth: depth + 1 }))
}

/** A value with all that is in it: `name: text`, `name = JSON`, or a name and below it the lines of its text. */
export const valueRows = (value: unknown, columns: number): ReadonlyArray<string> => {
  const rows: Array<string> = []
  const left: Array<Place> = [{ path: "", value, depth: 0 }]
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const inside = parts(place)
    if (inside !== undefined) {
      for (const one of inside.toReversed()) left.push(one)
      continue
    }
    const name = place.path === "" ? "(value)" : place.path
    if (typeof place.value === "string") rows.push(...stringRows(name, place.value, columns))
    else rows.push(...jsonRows(`${name} = ${visibleJson(place.value)}`, columns))
  }
  return rows
}
