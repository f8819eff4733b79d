// Draws a chat: rows that stay are written once and scroll away like any output; below them a few rows are drawn anew with
// every change: what is being said, the status, the line being edited. Nothing that scrolled away is ever painted again.
import { stripVTControlCharacters } from "node:util"
import { widthOf } from "../render/Text.ts"
import type { Terminal } from "../Verb.ts"

export interface Bottom {
  readonly rows: ReadonlyArray<string>
  readonly cursor: { readonly row: number; readonly column: number }
}

const escape = "\u001b["
/** The terminal shows what comes between these at once. */
const begin = `${escape}?2026h`
const end = `${escape}?2026l`

const up = (rows: number): string => (rows > 0 ? `${escape}${rows}A` : "")

export class Painter {
  private readonly terminal: Pick<Terminal, "columns" | "rows" | "write">
  private drawn: Bottom = { rows: [], cursor: { row: 0, column: 0 } }
  private columns: number

  constructor(terminal: Pick<Terminal, "columns" | "rows" | "write">) {
    this.terminal = terminal
    this.columns = terminal.columns()
  }

  /** Writes rows that stay, then the bottom again. */
  paint(staying: ReadonlyArray<string>, bottom: Bottom): void {
    const columns = this.terminal.columns()
    const fitted = this.fitted(bottom)
    const isSame =
      staying.length === 0 && columns === this.columns && JSON.stringify(fitted) === JSON.stringify(this.drawn)
    if (isSame) return
    const { cursor, rows } = fitted
    const below = rows.length - 1 - cursor.row
    const column = cursor.column > 0 ? `${escape}${cursor.column}C` : ""
    const text = [
      begin,
      this.erase(),
      ...staying.map((row) => `${row}\r\n`),
      rows.join("\r\n"),
      `${up(below)}\r${column}`,
      end
    ].join("")
    this.terminal.write(text)
    this.drawn = fitted
    this.columns = columns
  }

  /** Leaves only what stays. */
  clear(): void {
    this.terminal.write(this.erase())
    this.drawn = { rows: [], cursor: { row: 0, column: 0 } }
  }

  /** Back to where the bottom began, and nothing below it. */
  private erase(): string {
    return `${up(this.rowsAboveCursor())}\r${escape}J`
  }

  /** A window that became narrower wraps the rows that were drawn for a wider one. */
  private rowsAboveCursor(): number {
    const columns = this.terminal.columns()
    const { cursor, rows } = this.drawn
    if (columns >= this.columns) return cursor.row
    const heights = rows
      .slice(0, cursor.row)
      .map((row) => Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(row)) / columns)))
    return heights.reduce((sum, height) => sum + height, 0) + Math.floor(cursor.column / columns)
  }

  /** Never more rows than the window has: what cannot be reached could not be erased. */
  private fitted({ cursor, rows }: Bottom): Bottom {
    const room = Math.max(1, this.terminal.rows() - 1)
    const skipped = Math.max(0, rows.length - room)
    return { rows: rows.slice(skipped), cursor: { ...cursor, row: Math.max(0, cursor.row - skipped) } }
  }
}
