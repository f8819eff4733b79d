// Blocks of Markdown as rows of a terminal, no wider than it: words wrapped, inline marks as tones, code highlighted by
// what most languages share, tables in columns. Control characters of the text are gone before anything is drawn.
import type { Terminal, Tone } from "../Verb.ts"
import { type Block, parseBlocks } from "./MarkdownBlocks.ts"
import { fitStart, pad, safeText, widthOf } from "./Text.ts"

type View = Pick<Terminal, "paint"> & { readonly columns: number }

interface Span {
  readonly text: string
  readonly tone: Tone | undefined
}

const inline =
  /(`+)(.+?)\1|\*\*(.+?)\*\*|__(.+?)__|(?<![\w*])\*([^*\s][^*]*?)\*(?!\w)|(?<!\w)_([^_\s][^_]*?)_(?!\w)|\[([^\]]+)\]\(([^)\s]+)[^)]*\)/gs

const spansOf = (text: string): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  let from = 0
  for (const match of text.matchAll(inline)) {
    if (match.index > from) spans.push({ text: text.slice(from, match.index), tone: undefined })
    const [whole, , code, bold, bolder, slanted, slantedToo, label, target] = match
    const strong = bold ?? bolder
    if (code !== undefined) spans.push({ text: code.trim(), tone: "accent" })
    else if (strong !== undefined) spans.push({ text: strong, tone: "strong" })
    else if (label !== undefined) {
      spans.push({ text: label, tone: "accent" })
      if (label !== target) spans.push({ text: ` (${target ?? ""})`, tone: "quiet" })
    } else spans.push({ text: slanted ?? slantedToo ?? whole, tone: "notice" })
    from = match.index + whole.length
  }
  if (from < text.length) spans.push({ text: text.slice(from), tone: undefined })
  return spans
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/** A word that is wider than a row, in pieces that fit. */
const pieces = (word: string, columns: number): ReadonlyArray<string> => {
  if (widthOf(word) <= columns) return [word]
  const found: Array<string> = [""]
  for (const { segment } of segmenter.segment(word)) {
    const last = found.length - 1
    if (widthOf(found[last] ?? "") + widthOf(segment) > columns) found.push(segment)
    else found[last] += segment
  }
  return found
}

/** Spans in rows of at most so many columns, broken between words. */
const wrapSpans = (spans: ReadonlyArray<Span>, columns: number, paint: View["paint"]): ReadonlyArray<string> => {
  const rows: Array<string> = []
  let row = ""
  let width = 0
  const end = (): void => {
    rows.push(row.trimEnd())
    row = ""
    width = 0
  }
  for (const { text, tone } of spans) {
    for (const word of text.split(/(\n|[ \t]+)/)) {
      if (word === "") continue
      if (word === "\n") {
        end()
        continue
      }
      const isSpace = word.trim() === ""
      if (isSpace && width === 0) continue
      for (const piece of pieces(isSpace ? " " : word, columns)) {
        const next = widthOf(piece)
        if (width > 0 && width + next > columns) end()
        if (isSpace && width === 0) continue
        row += tone === undefined || isSpace ? piece : paint(tone, piece)
        width += next
      }
    }
  }
  end()
  return rows
}

const textRows = (text: string, { columns, paint }: View, lead: string, rest = lead): ReadonlyArray<string> => {
  const room = Math.max(10, columns - widthOf(rest))
  return wrapSpans(spansOf(text), room, paint).map((row, at) => `${at === 0 ? lead : rest}${row}`)
}

const token =
  /(\/\/.*$|#(?![{[!]).*$|--\s.*$|\/\*.*?\*\/)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|\b(\d[\d_.]*(?:e[+-]?\d+)?|true|false|null|None|nil|undefined)\b|\b(and|as|async|await|break|case|catch|class|const|continue|def|default|do|elif|else|enum|except|export|extends|final|finally|fn|for|from|func|function|if|impl|import|in|interface|is|let|lambda|match|mut|new|not|of|or|package|pass|private|public|raise|readonly|return|self|static|struct|super|switch|this|throw|trait|try|type|use|var|void|while|with|yield|SELECT|FROM|WHERE|INSERT|UPDATE|DELETE|CREATE|TABLE|JOIN)\b/g

const highlighted = (line: string, { paint }: View): string =>
  line.replace(token, (whole, comment, text, value) => {
    if (comment !== undefined) return paint("quiet", whole)
    if (text !== undefined) return paint("good", whole)
    return paint(value === undefined ? "model" : "notice", whole)
  })

/** A line of a difference, in the color of what it does. */
export const diffLine = (line: string, paint: View["paint"]): string => {
  if (/^(\+\+\+|---|diff |index )/.test(line)) return paint("strong", line)
  if (line.startsWith("@@")) return paint("accent", line)
  if (line.startsWith("+")) return paint("good", line)
  return line.startsWith("-") ? paint("bad", line) : line
}

const isDiff = (language: string): boolean => language === "diff" || language === "patch"
const isPlain = (language: string): boolean => ["", "text", "txt", "console", "output"].includes(language)

const codeRows = (lines: ReadonlyArray<string>, language: string, view: View): ReadonlyArray<string> => {
  const room = Math.max(10, view.columns - 2)
  const shown = (line: string): string => {
    if (isDiff(language)) return diffLine(line, view.paint)
    return isPlain(language) ? line : highlighted(line, view)
  }
  const cut = (line: string): ReadonlyArray<string> => pieces(line.replaceAll("\t", "  "), room)
  return lines.flatMap(cut).map((line) => `  ${shown(line)}`.trimEnd())
}

const tableRows = (rows: ReadonlyArray<ReadonlyArray<string>>, view: View): ReadonlyArray<string> => {
  const count = Math.max(...rows.map((row) => row.length))
  const bare = rows.map((row) =>
    Array.from({ length: count }, (_, at) =>
      spansOf(row[at] ?? "")
        .map(({ text }) => text)
        .join("")
    )
  )
  const widths = Array.from({ length: count }, (_, at) => Math.max(1, ...bare.map((row) => widthOf(row[at] ?? ""))))
  const total = widths.reduce((sum, width) => sum + width + 2, 0)
  const room = Math.max(count * 6, view.columns)
  const fitted = widths.map((width) => (total <= room ? width : Math.max(4, Math.floor((width * room) / total) - 2)))
  return bare.map((row, index) => {
    const line = row
      .map((cell, at) => pad(fitStart(cell, fitted[at] ?? 4), fitted[at] ?? 4))
      .join("  ")
      .trimEnd()
    return index === 0 ? view.paint("strong", line) : line
  })
}

const blockRows = (block: Block, view: View): ReadonlyArray<string> => {
  switch (block.kind) {
    case "blank":
      return [""]
    case "rule":
      return [view.paint("quiet", "─".repeat(Math.min(40, view.columns)))]
    case "heading":
      return textRows(block.text.replaceAll("**", ""), view, "").map((row) => view.paint("strong", row))
    case "code":
      return codeRows(block.lines, block.language, view)
    case "item": {
      const lead = `${block.indent}${/^[-*+]$/.test(block.marker) ? "•" : block.marker} `
      return textRows(block.text, view, lead, " ".repeat(widthOf(lead)))
    }
    case "quote":
      return textRows(block.text, view, "▏ ").map((row) => view.paint("quiet", row))
    case "table":
      return tableRows(block.rows, view)
    case "paragraph":
      return textRows(block.text, view, "")
  }
}

/** The rows of what is complete, and what is not. */
export const markdownRows = (
  text: string,
  isFinal: boolean,
  view: View
): { readonly rows: ReadonlyArray<string>; readonly rest: string } => {
  const { blocks, rest } = parseBlocks(safeText(text), isFinal)
  return { rows: blocks.flatMap((block) => blockRows(block, view)), rest }
}
