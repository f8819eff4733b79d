// A page of lines out of any number of bytes: from a line, or from a place inside one, to a limit of lines and of
// characters. What is before the page is only counted, what is after it is counted as far as that is cheap.

import { StringDecoder } from "node:string_decoder"
import * as Effect from "effect/Effect"
import { elementAt } from "../../../rune/Elements.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type FileProblem, step } from "../FileWork.ts"
import type { ByteSource } from "./Bytes.ts"

export interface PageRequest {
  /** First line, from 1. */
  readonly line: number
  /** First character of that line, from 1. */
  readonly column: number
  readonly linesMax: number
  readonly charsMax: number
}

export interface LinePage {
  readonly text: string
  /** Lines shown, the last of them perhaps in part. */
  readonly lines: number
  /** Where the next page starts; nothing when this was the last. */
  readonly next: { readonly line: number; readonly column: number } | undefined
  /** Of the whole; unknown when there was too much to count. */
  readonly totalLines: number | undefined
}

const newline = 0x0a

/** Finds the byte at which a line begins; the number of lines when it has fewer. */
const findLine = Effect.fnUntraced(function* (source: ByteSource, line: number) {
  let current = 1
  let position = 0
  let isOpen = false
  while (current < line) {
    const piece = yield* step(() => source.read(position))
    if (piece.length === 0) return { totalLines: current - (isOpen ? 0 : 1) }
    let from = 0
    while (current < line) {
      const at = piece.indexOf(newline, from)
      if (at < 0) break
      current += 1
      from = at + 1
    }
    if (current === line) return { position: position + from }
    isOpen = piece.at(-1) !== newline
    position += piece.length
  }
  return { position }
})

/** Lines that begin in the rest of the source; unknown beyond a limit. */
const countLines = Effect.fnUntraced(function* (source: ByteSource, from: number) {
  if (source.size - from > builtinLimits.countBytesMax) return undefined
  let count = 0
  let last = newline
  for (let position = from; ; ) {
    const piece = yield* step(() => source.read(position))
    if (piece.length === 0) return last === newline ? count : count + 1
    for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) count += 1
    last = elementAt(piece, piece.length - 1)
    position += piece.length
  }
})

/** Gathers a page from text as it comes. */
class Page {
  private readonly request: PageRequest
  private toSkip: number
  private taken = ""
  private line: number
  private column: number
  isFull = false

  constructor(request: PageRequest) {
    this.request = request
    this.toSkip = request.column - 1
    this.line = request.line
    this.column = request.column
  }

  add(chunk: string): void {
    let from = 0
    while (from < chunk.length && !this.isFull) {
      const at = chunk.indexOf("\n", from)
      const end = at < 0 ? chunk.length : at + 1
      this.takeLine(chunk.slice(from, end))
      from = end
    }
  }

  private takeLine(part: string): void {
    const skipped = Math.min(this.toSkip, part.endsWith("\n") ? part.length - 1 : part.length)
    this.toSkip = part.endsWith("\n") ? 0 : this.toSkip - skipped
    const wanted = part.slice(skipped)
    const room = this.request.charsMax - this.taken.length
    const fits = wanted.slice(0, room)
    this.taken += fits
    if (fits.endsWith("\n")) {
      this.line += 1
      this.column = 1
    } else this.column += fits.length
    this.isFull = fits.length < wanted.length || this.line >= this.request.line + this.request.linesMax
  }

  get text(): string {
    return this.taken.toWellFormed()
  }

  get next(): { readonly line: number; readonly column: number } {
    return { line: this.line, column: this.column }
  }

  get lines(): number {
    return this.line - this.request.line + (this.column > 1 ? 1 : 0)
  }
}

export const readPage: (source: ByteSource, request: PageRequest) => Effect.Effect<LinePage, FileProblem> =
  Effect.fnUntraced(function* (source, request) {
    const found = yield* findLine(source, request.line)
    if ("totalLines" in found) return { text: "", lines: 0, next: undefined, totalLines: found.totalLines }
    const page = new Page(request)
    const decoder = new StringDecoder("utf8")
    let { position } = found
    let isAtEnd = false
    while (!page.isFull && !isAtEnd) {
      const piece = yield* step(() => source.read(position))
      isAtEnd = piece.length === 0
      page.add(isAtEnd ? decoder.end() : decoder.write(piece))
      position += piece.length
    }
    const linesFromHere = yield* countLines(source, found.position)
    const totalLines = linesFromHere === undefined ? undefined : request.line - 1 + linesFromHere
    const { next } = page
    const isOver = !page.isFull || (totalLines !== undefined && next.line > totalLines)
    return { text: page.text, lines: page.lines, next: isOver ? undefined : next, totalLines }
  })
