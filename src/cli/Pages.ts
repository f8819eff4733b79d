// What does not fit the window is shown a page at a time, so that nothing has scrolled away unseen when the question
// comes. Where nobody can be asked it is written as it is.
import type { Terminal } from "./Verb.ts"

/** Rows of a window that says nothing about itself. */
const rowsAssumed = 24
const rowsMin = 4

/** `seen` once the last row was shown; `stopped` when whoever reads wanted no more of it, so that nothing may be asked. */
export const showRows = async (
  rows: ReadonlyArray<string>,
  terminal: Terminal,
  signal: AbortSignal
): Promise<"seen" | "stopped"> => {
  const window = terminal.rows()
  // The question below the last page must not push its first row out.
  const page = Math.max(rowsMin, (window > 0 ? window : rowsAssumed) - 3)
  if (!terminal.isAnswered || rows.length <= page) {
    terminal.write(rows.map((row) => `${row}\n`).join(""))
    return "seen"
  }
  for (let at = 0; at < rows.length; at += page) {
    const shown = rows.slice(at, at + page)
    terminal.write(shown.map((row) => `${row}\n`).join(""))
    const seen = at + shown.length
    if (seen === rows.length) return "seen"
    const question = `  ${terminal.paint("notice", `${seen} of ${rows.length} rows`)}: Enter shows more, q stops `
    const answer = await terminal.ask(question, signal)
    if (answer === undefined || answer.trim() !== "") return "stopped"
  }
  return "seen"
}
