// Gathers what a search finds, cut to what can be shown.
import { builtinLimits } from "../BuiltinLimits.ts"
import type { FoundLine, SearchResult } from "./Port.ts"

export const shownText = (text: string): string => {
  const { searchLineCharsMax: charsMax } = builtinLimits
  const line = text.endsWith("\r") ? text.slice(0, -1) : text
  return line.length <= charsMax ? line : `${line.slice(0, charsMax).toWellFormed()} … ${line.length - charsMax} more`
}

export class Gathered {
  private readonly lines: Array<FoundLine> = []
  private readonly matchesMax: number
  private matches = 0
  private isCut = false

  constructor(matchesMax: number) {
    this.matchesMax = matchesMax
  }

  /** Whether more is wanted. */
  add(found: FoundLine): boolean {
    if (found.isMatch && this.matches === this.matchesMax) this.isCut = true
    if (this.isCut) return false
    if (found.isMatch) this.matches += 1
    this.lines.push(found)
    return true
  }

  result(more: { readonly isCut: boolean } = { isCut: false }): SearchResult {
    const isCut = this.isCut || more.isCut
    const last = this.lines.findLastIndex(({ isMatch }) => isMatch)
    // Lines that lead up to a match that is not shown say nothing.
    const lines = this.isCut ? this.lines.slice(0, last + 1) : this.lines
    return { lines, matches: this.matches, isCut }
  }
}
