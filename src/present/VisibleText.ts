// Text that hides nothing, for whoever decides about it: what a terminal or a browser would obey, swallow, reorder or draw
// as nothing is written as an escape (`\x1b`, `\u{202e}`, `\\`), so that the exact characters can be read back.

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

/** What is shown of each character, with the marks that belong to it: a line may be wrapped between two pieces. */
export const pieces = (text: string): Array<string> => {
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
