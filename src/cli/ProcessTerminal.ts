// The terminal of this process. Colors follow what the stream can show and what NO_COLOR and FORCE_COLOR ask for. The
// status line is erased before anything else is written and when the process ends, so nothing of it stays behind.
import { once } from "node:events"
import { styleText } from "node:util"
import type { PipedLines } from "./Questions.ts"
import type { Terminal, Tone } from "./Verb.ts"

const styles: { readonly [T in Tone]: Parameters<typeof styleText>[0] } = {
  strong: "bold",
  quiet: "dim",
  good: "green",
  bad: "red",
  notice: "yellow",
  accent: "cyan",
  model: "magenta"
}

const { stdout, stderr, stdin } = process
const isWatched = stdout.isTTY === true
const eraseLine = "\r\u001b[2K"
let statusText: string | undefined

const withoutStatus = (write: () => void): void => {
  if (statusText !== undefined) stdout.write(eraseLine)
  write()
  if (statusText !== undefined) stdout.write(statusText)
}

const showStatus = (text: string | undefined): void => {
  if (!isWatched || text === statusText) return
  if (statusText !== undefined) stdout.write(eraseLine)
  statusText = text
  if (text !== undefined) stdout.write(text)
}

let piped: PipedLines | undefined

const ask = async (question: string, signal: AbortSignal): Promise<string | undefined> => {
  const { askPerson, PipedLines } = await import("./Questions.ts")
  showStatus(undefined)
  if (stdin.isTTY === true && isWatched) return askPerson(question, signal)
  piped ??= new PipedLines()
  return piped.next(signal)
}

// Whoever reads the output may have seen enough: `echs export … | head` is no failure of ours.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0)
  throw error
})

export const processTerminal: Terminal = {
  write: (text) => withoutStatus(() => void stdout.write(text)),
  complain: (text) => withoutStatus(() => void stderr.write(text)),
  paint: (tone, text) => styleText(styles[tone], text, { stream: stdout }),
  interruption: () => {
    const controller = new AbortController()
    const abort = () => controller.abort()
    process.once("SIGINT", abort)
    process.once("SIGTERM", abort)
    return controller.signal
  },
  isWatched,
  isAnswered: isWatched && stdin.isTTY === true,
  // A terminal that was never told its size says 0.
  columns: () => stdout.columns || (isWatched ? 80 : 120),
  rows: () => stdout.rows || 24,
  status: showStatus,
  ask,
  drained: async () => {
    if (stdout.writableNeedDrain) await once(stdout, "drain")
  }
}
