// Questions to whoever is at the other end of standard input. At a terminal each question has an interface of its own,
// so that between questions an interrupt is a signal again; from a pipe lines are taken as they come, none lost.
import { createInterface, type Interface } from "node:readline"

const waitingLinesMax = 64

const untilAborted = (signal: AbortSignal): { readonly promise: Promise<undefined>; readonly stop: () => void } => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const settle = (): void => resolve(undefined)
  if (signal.aborted) settle()
  signal.addEventListener("abort", settle)
  return { promise, stop: () => signal.removeEventListener("abort", settle) }
}

export const askPerson = async (question: string, signal: AbortSignal): Promise<string | undefined> => {
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: true })
  const aborted = untilAborted(signal)
  // In raw mode the terminal does not send the signal itself.
  lines.on("SIGINT", () => process.emit("SIGINT"))
  const answered = new Promise<string | undefined>((resolve) => {
    lines.on("close", () => resolve(undefined))
    lines.question(question, resolve)
  })
  try {
    return await Promise.race([answered, aborted.promise])
  } finally {
    aborted.stop()
    lines.close()
  }
}

/** Lines of a pipe, one at a time. The pipe is held back while nobody asks. */
export class PipedLines {
  private source: Interface | undefined
  private readonly waiting: Array<string> = []
  private isOver = false
  private wake: (() => void) | undefined

  async next(signal: AbortSignal): Promise<string | undefined> {
    const source = this.open()
    const aborted = untilAborted(signal)
    try {
      while (this.waiting.length === 0 && !this.isOver && !signal.aborted) {
        source.resume()
        await Promise.race([new Promise<void>((resolve) => (this.wake = resolve)), aborted.promise])
      }
      return this.waiting.shift()
    } finally {
      aborted.stop()
      if (!this.isOver) source.pause()
    }
  }

  private open(): Interface {
    if (this.source !== undefined) return this.source
    this.source = createInterface({ input: process.stdin, terminal: false })
    this.source.on("line", (line) => {
      this.waiting.push(line)
      if (this.waiting.length >= waitingLinesMax) this.source?.pause()
      this.wake?.()
    })
    this.source.on("close", () => {
      this.isOver = true
      this.wake?.()
    })
    return this.source
  }
}
