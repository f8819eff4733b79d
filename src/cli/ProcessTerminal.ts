// The terminal of this process. Colors follow what the stream can show and what NO_COLOR and FORCE_COLOR ask for. The
// status line is erased before anything else is written and when the process ends, so nothing of it stays behind.
import { once } from "node:events"
import { StringDecoder } from "node:string_decoder"
import { styleText } from "node:util"
import type { PipedLines } from "./Questions.ts"
import type { Keyboard, Terminal, Tone } from "./Verb.ts"

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

/** Bracketed paste; then keys with modifiers told apart, as kitty and as xterm do it. Terminals ignore what they do not know. */
const keysOn = "\u001b[?2004h\u001b[>1u\u001b[>4;1m"
const keysOff = "\u001b[>4;0m\u001b[<u\u001b[?2004l\u001b[?25h"

const openKeyboard = (): Keyboard | undefined => {
  if (stdin.isTTY !== true || !isWatched) return undefined
  const decoder = new StringDecoder("utf8")
  let listener: (text: string) => void = () => {}
  let isTaken = false
  const hear = (bytes: Buffer): void => listener(decoder.write(bytes))
  const release = (): void => {
    if (!isTaken) return
    isTaken = false
    stdin.off("data", hear)
    stdin.setRawMode(false)
    stdin.pause()
    stdout.write(keysOff)
    process.off("exit", release)
  }
  const take = (): void => {
    if (isTaken) return
    isTaken = true
    stdin.setRawMode(true)
    stdin.on("data", hear)
    stdin.resume()
    stdout.write(keysOn)
    process.on("exit", release)
  }
  take()
  return {
    onInput: (heard) => {
      listener = heard
    },
    onResize: (heard) => void stdout.on("resize", heard),
    release,
    take
  }
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
  keyboard: openKeyboard,
  drained: async () => {
    if (stdout.writableNeedDrain) await once(stdout, "drain")
  }
}
