// A terminal that remembers what was said, for tests of CLI verbs in this process.
import type { Terminal } from "#src/cli/Verb.ts"

export interface RecordingTerminal extends Terminal {
  readonly output: () => string
  readonly complaints: () => string
  readonly interrupt: () => void
}

export const recordingTerminal = (): RecordingTerminal => {
  const controller = new AbortController()
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
    output: () => output,
    complaints: () => complaints,
    interrupt: () => controller.abort()
  }
}
