// Markdown as a tree. The parser knows no HTML: a tag is text like any other, a link goes to http, https or mail or is
// text too. Whatever it does not know is shown as it was written.

export type Inline =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "code"; readonly text: string }
  | { readonly type: "strong" | "em"; readonly children: ReadonlyArray<Inline> }
  | { readonly type: "link"; readonly href: string; readonly children: ReadonlyArray<Inline> }

export type Block =
  | { readonly type: "paragraph"; readonly children: ReadonlyArray<Inline> }
  | { readonly type: "heading"; readonly level: number; readonly children: ReadonlyArray<Inline> }
  | { readonly type: "code"; readonly language: string; readonly text: string }
  | { readonly type: "quote"; readonly children: ReadonlyArray<Block> }
  | { readonly type: "list"; readonly isOrdered: boolean; readonly items: ReadonlyArray<ReadonlyArray<Block>> }
  | { readonly type: "table"; readonly head: Cells; readonly rows: ReadonlyArray<Cells> }
  | { readonly type: "rule" }

type Cells = ReadonlyArray<ReadonlyArray<Inline>>

const depthMax = 6
const safeAddress = /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i

const inlinePattern =
  /(`+)([^`]+?)\1(?!`)|\*\*([^*\n]+(?:\*[^*\n]+)*)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|\[([^\]\n]{1,500})\]\(([^)\s]{1,2000})\)|(https?:\/\/[^\s<>"')\]]{1,2000})/g

const inlineOf = (match: RegExpMatchArray, depth: number): Inline => {
  const [whole, , code, strong, under, em, label, target, address] = match
  if (code !== undefined) return { type: "code", text: code.trim() }
  const bold = strong ?? under
  if (bold !== undefined) return { type: "strong", children: parseInline(bold, depth + 1) }
  if (em !== undefined) return { type: "em", children: parseInline(em, depth + 1) }
  const href = target ?? address ?? ""
  if (!safeAddress.test(href)) return { type: "text", text: whole }
  return {
    type: "link",
    href,
    children: label === undefined ? [{ type: "text", text: href }] : parseInline(label, depth + 1)
  }
}

export const parseInline = (text: string, depth = 0): ReadonlyArray<Inline> => {
  if (depth > depthMax) return [{ type: "text", text }]
  const found: Array<Inline> = []
  let at = 0
  for (const match of text.matchAll(inlinePattern)) {
    if (match.index > at) found.push({ type: "text", text: text.slice(at, match.index) })
    found.push(inlineOf(match, depth))
    at = match.index + match[0].length
  }
  if (at < text.length) found.push({ type: "text", text: text.slice(at) })
  return found
}

interface Reader {
  readonly lines: ReadonlyArray<string>
  at: number
  readonly depth: number
}

const fence = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/
const rule = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/
const bullet = /^( {0,3})(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/
const quote = /^ {0,3}> ?(.*)$/
const divider = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

const cellsOf = (line: string): Cells =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => parseInline(cell.trim()))

const readCode = (reader: Reader, mark: string, language: string): Block => {
  const text: Array<string> = []
  reader.at += 1
  while (reader.at < reader.lines.length) {
    const line = reader.lines[reader.at] ?? ""
    reader.at += 1
    if (line.trim().startsWith(mark) && line.trim().replaceAll(mark[0] ?? "`", "") === "") break
    text.push(line)
  }
  return { type: "code", language, text: text.join("\n") }
}

const readQuote = (reader: Reader): Block => {
  const inside: Array<string> = []
  for (; reader.at < reader.lines.length; reader.at += 1) {
    const match = quote.exec(reader.lines[reader.at] ?? "")
    if (match === null) break
    inside.push(match[1] ?? "")
  }
  return { type: "quote", children: readBlocks({ lines: inside, at: 0, depth: reader.depth + 1 }) }
}

const readList = (reader: Reader, isOrdered: boolean): Block => {
  const items: Array<Array<string>> = []
  for (; reader.at < reader.lines.length; reader.at += 1) {
    const line = reader.lines[reader.at] ?? ""
    const match = bullet.exec(line)
    if (match !== null && (match[2] !== undefined) === isOrdered) items.push([match[3] ?? ""])
    else if (/^(?: {2,}|\t)/.test(line)) items.at(-1)?.push(line.replace(/^(?: {1,4}|\t)/, ""))
    else break
  }
  const depth = reader.depth + 1
  return { type: "list", isOrdered, items: items.map((lines) => readBlocks({ lines, at: 0, depth })) }
}

const readTable = (reader: Reader): Block => {
  const head = cellsOf(reader.lines[reader.at] ?? "")
  reader.at += 2
  const rows: Array<Cells> = []
  for (; reader.at < reader.lines.length; reader.at += 1) {
    const line = reader.lines[reader.at] ?? ""
    if (!line.includes("|") || line.trim() === "") break
    rows.push(cellsOf(line))
  }
  return { type: "table", head, rows }
}

/** The block that begins here, unless it is a paragraph. */
const special = (reader: Reader): Block | undefined => {
  const line = reader.lines[reader.at] ?? ""
  const [, mark, language] = fence.exec(line) ?? []
  if (mark !== undefined) return readCode(reader, mark, language ?? "")
  const [, hashes, title] = heading.exec(line) ?? []
  if (hashes !== undefined) {
    reader.at += 1
    return { type: "heading", level: hashes.length, children: parseInline(title ?? "") }
  }
  if (rule.test(line)) {
    reader.at += 1
    return { type: "rule" }
  }
  if (reader.depth < depthMax) {
    if (quote.test(line)) return readQuote(reader)
    const item = bullet.exec(line)
    if (item !== null) return readList(reader, item[2] !== undefined)
  }
  return line.includes("|") && divider.test(reader.lines[reader.at + 1] ?? "") ? readTable(reader) : undefined
}

const readBlocks = (reader: Reader): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let words: Array<string> = []
  const flush = (): void => {
    if (words.length > 0) blocks.push({ type: "paragraph", children: parseInline(words.join("\n")) })
    words = []
  }
  while (reader.at < reader.lines.length) {
    const block = special(reader)
    if (block !== undefined) {
      flush()
      blocks.push(block)
      continue
    }
    const line = reader.lines[reader.at] ?? ""
    reader.at += 1
    if (line.trim() === "") flush()
    else words.push(line)
  }
  flush()
  return blocks
}

export const parseMarkdown = (text: string): ReadonlyArray<Block> =>
  readBlocks({ lines: text.split("\n"), at: 0, depth: 0 })
