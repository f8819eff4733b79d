// Text that hides nothing: what somebody decides about is shown so that its exact characters can be read back. What a
// terminal would obey, swallow, reorder or draw as nothing is written as an escape (`\x1b`, `\u{202e}`, `\\`); lines are
// wrapped, never cut. A new line of a text begins with "│", the rest of a wrapped one with "┆".
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
const marksMax = 2

const isDrawn = /^[\p{L}\p{N}\p{P}\p{S}]$/u
const isIgnorable = /^\p{Default_Ignorable_Code_Point}$/u
const isMark = /^[\p{Mn}\p{Mc}]$/u
const takesMarks = /^(?!\p{Script=Latin})\p{L}$/u
/** A symbol that has no ink. */
const brailleBlank = "\u2800"

const named: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n" }

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  return named[character] ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`)
}

const isPlain = (character: string): boolean =>
  character.length === 1 && character >= " " && character <= "~" && character !== "\\"

const isVisible = (character: string): boolean =>
  isPlain(character) || (isDrawn.test(character) && !isIgnorable.test(character) && character !== brailleBlank)

/** The pieces that a line may be wrapped between: what is shown of one character, with the marks that belong to it. */
const pieces = (text: string): Array<string> => {
  const found: Array<string> = []
  let marksLeft = 0
  for (const character of text) {
    if (isPlain(character)) {
      found.push(character)
      marksLeft = 0
    } else if (marksLeft > 0 && isMark.test(character) && !isIgnorable.test(character)) {
      found.push(`${found.pop() ?? ""}${character}`)
      marksLeft -= 1
    } else {
      const isShown = character !== "\\" && isVisible(character)
      found.push(isShown ? character : escaped(character))
      marksLeft = isShown && takesMarks.test(character) ? marksMax : 0
    }
  }
  return found
}

/** On one line, every character visible, so that the text can be read back. */
export const visible = (text: string): string => pieces(text).join("")

/** JSON in which every character is visible. */
export const visibleJson = (value: unknown): string =>
  [...(JSON.stringify(value) ?? "null")]
    .map((character) =>
      character === "\\" || isVisible(character)
        ? character
        : [...character.matchAll(/[\s\S]/g)]
            .map(([unit]) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
            .join("")
    )
    .join("")

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

const namedMax = 12

/** Characters that are shown as they are and may look like others: which ones; nothing when there are none. */
export const beyondAscii = (text: string): string => {
  const found = new Set([...text].filter((character) => character > "~" && isVisible(character)))
  if (found.size === 0) return ""
  const names = [...found]
    .slice(0, namedMax)
    .map((one) => `${one} U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`)
  const more = found.size > namedMax ? `, and ${found.size - namedMax} more` : ""
  return `${names.join(", ")}${more}`
}
