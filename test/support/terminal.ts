// A terminal that remembers what was said, for tests of CLI verbs in this process.
import type { Terminal } from "#src/cli/Verb.ts"

export interface RecordingTerminal extends Terminal {
  readonly output: () => string
  readonly complaints: () => string
  readonly statuses: () => ReadonlyArray<string>
  readonly interrupt: () => void
}

export interface RecordingOptions {
  readonly isWatched?: boolean
  readonly columns?: number
  readonly rows?: number
  /** What is said to each question, in turn; then nothing more comes. */
  readonly answers?: ReadonlyArray<string>
}

export const recordingTerminal = (options: RecordingOptions = {}): RecordingTerminal => {
  const controller = new AbortController()
  const answers = [...(options.answers ?? [])]
  const statuses: Array<string> = []
  let output = ""
  let complaints = ""
  return {
    write: (text) => {
      output += text
    },
    complain: (text) => {
      complaints += text
    },
    paint: (_tone, text) => text,
    interruption: () => controller.signal,
    isWatched: options.isWatched ?? false,
    isAnswered: options.answers !== undefined,
    columns: () => options.columns ?? 80,
    rows: () => options.rows ?? 1_000,
    status: (text) => void (text === undefined || statuses.push(text)),
    ask: async (question) => {
      output += question
      return answers.shift()
    },
    keyboard: () => undefined,
    drained: async () => {},
    output: () => output,
    complaints: () => complaints,
    statuses: () => statuses,
    interrupt: () => controller.abort()
  }
}
