// The text a person is writing: several lines, a cursor, the history of earlier messages. Each key gives the next state;
// nothing here reads or writes a terminal. What the keys mean for the chat (send, stop, leave) is decided by the caller.
import type { NamedKey } from "./Keys.ts"

export interface Editing {
  readonly text: string
  /** In UTF-16 units, always between graphemes. */
  readonly cursor: number
  /** Place in the history; undefined while the text is a draft of its own. */
  readonly at: number | undefined
  readonly draft: string
}

export const emptyEditing: Editing = { text: "", cursor: 0, at: undefined, draft: "" }

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })

const stepLeft = (text: string, cursor: number): number => {
  const before = text.slice(Math.max(0, cursor - 64), cursor)
  const last = [...segmenter.segment(before)].at(-1)?.segment ?? ""
  return cursor - last.length
}

const stepRight = (text: string, cursor: number): number => {
  const [next] = segmenter.segment(text.slice(cursor, cursor + 64))
  return cursor + (next?.segment.length ?? 0)
}

const wordLeft = (text: string, cursor: number): number => {
  const before = text.slice(0, cursor)
  return before.length - (/[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u.exec(before)?.[0].length ?? 0)
}

const wordEnd = (text: string, cursor: number): number =>
  cursor + (/^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(text.slice(cursor))?.[0].length ?? 0)

const lineStart = (text: string, cursor: number): number => text.lastIndexOf("\n", cursor - 1) + 1

const lineEnd = (text: string, cursor: number): number => {
  const end = text.indexOf("\n", cursor)
  return end < 0 ? text.length : end
}

const moved = (state: Editing, cursor: number): Editing => ({ ...state, cursor })

const replaced = (state: Editing, from: number, to: number, text = ""): Editing => ({
  ...state,
  text: `${state.text.slice(0, from)}${text}${state.text.slice(to)}`,
  cursor: from + text.length
})

export const inserted = (state: Editing, text: string): Editing => replaced(state, state.cursor, state.cursor, text)

export const withText = (text: string): Editing => ({ ...emptyEditing, text, cursor: text.length })

/** Up and down stay in the same column where the other line is long enough. */
const vertical = (state: Editing, direction: -1 | 1): Editing | undefined => {
  const start = lineStart(state.text, state.cursor)
  const column = state.cursor - start
  const otherStart = direction < 0 ? lineStart(state.text, start - 1) : lineEnd(state.text, state.cursor) + 1
  if (direction < 0 ? start === 0 : otherStart > state.text.length) return undefined
  return moved(state, Math.min(otherStart + column, lineEnd(state.text, otherStart)))
}

const fromHistory = (state: Editing, history: ReadonlyArray<string>, direction: -1 | 1): Editing => {
  const at = state.at ?? history.length
  const next = at + direction
  if (next < 0 || next > history.length) return state
  const draft = state.at === undefined ? state.text : state.draft
  const text = next === history.length ? draft : (history[next] ?? "")
  return { text, cursor: text.length, at: next === history.length ? undefined : next, draft }
}

const browse = (state: Editing, history: ReadonlyArray<string>, direction: -1 | 1): Editing =>
  vertical(state, direction) ?? fromHistory(state, history, direction)

type Action = (state: Editing, history: ReadonlyArray<string>) => Editing

const deleteLeft: Action = (state) => replaced(state, stepLeft(state.text, state.cursor), state.cursor)
const deleteWord: Action = (state) => replaced(state, wordLeft(state.text, state.cursor), state.cursor)
const newLine: Action = (state) => inserted(state, "\n")
const leftWord: Action = (state) => moved(state, wordLeft(state.text, state.cursor))
const rightWord: Action = (state) => moved(state, wordEnd(state.text, state.cursor))
const toStart: Action = (state) => moved(state, lineStart(state.text, state.cursor))
const toEnd: Action = (state) => moved(state, lineEnd(state.text, state.cursor))

const actions: Readonly<Record<string, Action>> = {
  "shift enter": newLine,
  "alt enter": newLine,
  backspace: deleteLeft,
  "shift backspace": deleteLeft,
  delete: (state) => replaced(state, state.cursor, stepRight(state.text, state.cursor)),
  "ctrl d": (state) => replaced(state, state.cursor, stepRight(state.text, state.cursor)),
  "ctrl h": deleteLeft,
  "ctrl w": deleteWord,
  "alt backspace": deleteWord,
  "ctrl backspace": deleteWord,
  "alt d": (state) => replaced(state, state.cursor, wordEnd(state.text, state.cursor)),
  "ctrl u": (state) => replaced(state, lineStart(state.text, state.cursor), state.cursor),
  "ctrl k": (state) => replaced(state, state.cursor, Math.max(lineEnd(state.text, state.cursor), state.cursor)),
  left: (state) => moved(state, stepLeft(state.text, state.cursor)),
  "ctrl b": (state) => moved(state, stepLeft(state.text, state.cursor)),
  right: (state) => moved(state, stepRight(state.text, state.cursor)),
  "ctrl f": (state) => moved(state, stepRight(state.text, state.cursor)),
  "ctrl left": leftWord,
  "alt left": leftWord,
  "alt b": leftWord,
  "ctrl right": rightWord,
  "alt right": rightWord,
  "alt f": rightWord,
  home: toStart,
  "ctrl a": toStart,
  end: toEnd,
  "ctrl e": toEnd,
  up: (state, history) => browse(state, history, -1),
  down: (state, history) => browse(state, history, 1),
  "ctrl p": (state, history) => fromHistory(state, history, -1),
  "ctrl n": (state, history) => fromHistory(state, history, 1)
}

export const keyName = ({ alt, ctrl, name, shift }: NamedKey): string =>
  [...(ctrl ? ["ctrl"] : []), ...(alt ? ["alt"] : []), ...(shift ? ["shift"] : []), name].join(" ")

/** The state after a key; undefined for a key that edits nothing. */
export const edited = (state: Editing, key: NamedKey, history: ReadonlyArray<string>): Editing | undefined => {
  const action = actions[keyName(key)]
  return action?.(state, history)
}

/** What Enter sends; undefined when a backslash at the end asks for another line instead. */
export const continued = (state: Editing): Editing | undefined =>
  state.cursor === state.text.length && state.text.endsWith("\\") ? withText(`${state.text.slice(0, -1)}\n`) : undefined
