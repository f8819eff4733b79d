// Text of models and tools, made safe to look at: it never becomes HTML, and what would hide or reorder other text is
// written out. Sequences that only color a terminal are left out.

const color = new RegExp(`${String.fromCharCode(27)}\\[[0-9;:]*m`, "g")
/** Control characters but line ends and tabs; marks of direction; characters without width, but those inside letters. */
const hidden = /[\p{Cc}\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

const shown = (character: string): string =>
  character === "\n" || character === "\t" ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

export const safeText = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(color, "").replace(hidden, shown)

export const oneLine = (text: string, charsMax = 160): string => {
  const line = safeText(text.slice(0, charsMax * 4))
    .replace(/\s+/g, " ")
    .trim()
  return line.length > charsMax ? `${line.slice(0, charsMax)}…` : line
}

/** The first text among the arguments of a call, for a line that only reminds of it. */
export const callSummary = (value: unknown): string => {
  const values = typeof value === "object" && value !== null ? Object.values(value) : []
  const first = values.find((one) => typeof one === "string") ?? value
  return oneLine(typeof first === "string" ? first : JSON.stringify(first ?? {}))
}
