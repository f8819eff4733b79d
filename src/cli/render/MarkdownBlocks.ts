// Markdown cut into blocks while it streams: a block is given out once it cannot change any more, and what is still being
// written stays behind as plain text. Only what models write is known: headings, paragraphs, lists, quotes, code, tables.

export type Block =
  | { readonly kind: "blank" | "rule" }
  | { readonly kind: "heading"; readonly text: string }
  | { readonly kind: "code"; readonly language: string; readonly lines: ReadonlyArray<string> }
  | { readonly kind: "item"; readonly indent: string; readonly marker: string; readonly text: string }
  | { readonly kind: "quote"; readonly text: string }
  | { readonly kind: "table"; readonly rows: ReadonlyArray<ReadonlyArray<string>> }
  | { readonly kind: "paragraph"; readonly text: string }

export interface Parsed {
  readonly blocks: ReadonlyArray<Block>
  /** What is not complete yet. */
  readonly rest: string
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/
const quote = /^ {0,3}> ?(.*)$/
const rule = /^ {0,3}([-*_])( *\1){2,} *$/
const indented = /^ {4,}\S/
const tableRow = /^\s*\|.*\|\s*$/
const tableLine = /^\s*\|?[\s:|-]+\|?\s*$/

const singleLine = (line: string): Block | undefined => {
  if (line.trim() === "") return { kind: "blank" }
  if (rule.test(line)) return { kind: "rule" }
  const head = heading.exec(line)
  if (head !== null) return { kind: "heading", text: head[2] ?? "" }
  const entry = item.exec(line)
  if (entry !== null) return { kind: "item", indent: entry[1] ?? "", marker: entry[2] ?? "", text: entry[3] ?? "" }
  const quoted = quote.exec(line)
  return quoted === null ? undefined : { kind: "quote", text: quoted[1] ?? "" }
}

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim())

const isParagraph = (line: string): boolean =>
  singleLine(line) === undefined && !fence.test(line) && !tableRow.test(line) && !indented.test(line)

interface Taken {
  readonly block: Block
  readonly lines: number
}

/** Lines that belong together from a place on; undefined while their end has not been written. */
const takeRun = (
  lines: ReadonlyArray<string>,
  at: number,
  belongs: (line: string) => boolean,
  isFinal: boolean
): ReadonlyArray<string> | undefined => {
  let end = at
  while (end < lines.length && belongs(lines[end] ?? "")) end += 1
  return end === lines.length && !isFinal ? undefined : lines.slice(at, end)
}

const takeCode = (
  lines: ReadonlyArray<string>,
  at: number,
  [, mark = "```", language = ""]: RegExpExecArray,
  isFinal: boolean
): Taken | undefined => {
  const close = lines.findIndex((line, index) => index > at && line.trim().startsWith(mark))
  if (close < 0 && !isFinal) return undefined
  const end = close < 0 ? lines.length : close
  const block: Block = { kind: "code", language: language.trim(), lines: lines.slice(at + 1, end) }
  return { block, lines: (close < 0 ? end : end + 1) - at }
}

const takeBlock = (lines: ReadonlyArray<string>, at: number, isFinal: boolean): Taken | undefined => {
  const line = lines[at] ?? ""
  const opening = fence.exec(line)
  if (opening !== null) return takeCode(lines, at, opening, isFinal)
  if (tableRow.test(line)) {
    const run = takeRun(lines, at, (one) => tableRow.test(one), isFinal)
    if (run === undefined) return undefined
    const rows = run.filter((one, index) => index !== 1 || !tableLine.test(one)).map(cellsOf)
    return { block: { kind: "table", rows }, lines: run.length }
  }
  const single = singleLine(line)
  if (single !== undefined) return { block: single, lines: 1 }
  if (indented.test(line)) return { block: { kind: "code", language: "", lines: [line.slice(2)] }, lines: 1 }
  const run = takeRun(lines, at, isParagraph, isFinal)
  return run === undefined ? undefined : { block: { kind: "paragraph", text: run.join("\n") }, lines: run.length }
}

/** The blocks of a text that are complete; with `isFinal`, all of it. */
export const parseBlocks = (text: string, isFinal: boolean): Parsed => {
  const all = text.split("\n")
  const last = all.at(-1) ?? ""
  // A line is complete when its end was written.
  const lines = isFinal && last !== "" ? all : all.slice(0, -1)
  const blocks: Array<Block> = []
  let at = 0
  while (at < lines.length) {
    const taken = takeBlock(lines, at, isFinal)
    if (taken === undefined) break
    blocks.push(taken.block)
    at += taken.lines
  }
  return { blocks, rest: isFinal ? "" : all.slice(at).join("\n") }
}
