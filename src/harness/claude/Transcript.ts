// The end of a Claude Code transcript. Its time of change moves for bookkeeping too, so the lines themselves are read: what
// was said last, when, and whether it was the person who stopped it.
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { harnessLimits } from "../HarnessLimits.ts"

export interface TranscriptEnd {
  /** Of the last line that is part of the conversation. */
  readonly lastMs: number
  readonly isInterrupted: boolean
}

const interruption = "[Request interrupted by user"

const textsOf = (content: unknown): ReadonlyArray<string> => {
  if (typeof content === "string") return [content]
  if (!Array.isArray(content)) return []
  return content.flatMap((part) => (typeof part?.text === "string" ? [part.text] : []))
}

const entryOf = (line: string): TranscriptEnd | undefined => {
  try {
    const { message, timestamp, type } = JSON.parse(line)
    const atMs = Date.parse(timestamp)
    if ((type !== "user" && type !== "assistant") || Number.isNaN(atMs)) return undefined
    const isInterrupted = type === "user" && textsOf(message?.content).some((text) => text.startsWith(interruption))
    return { lastMs: atMs, isInterrupted }
  } catch {
    return undefined
  }
}

/** The last entry among whole lines; the first line of a tail may be cut, and the last one half written. */
export const endOf = (tail: string): TranscriptEnd | undefined => {
  const lines = tail.split("\n")
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const entry = entryOf(lines[at] ?? "")
    if (entry !== undefined) return entry
  }
  return undefined
}

/** Undefined where there is no such file, or nothing to be read in it. */
export const readTranscriptEnd = (path: string): TranscriptEnd | undefined => {
  let file: number | undefined
  try {
    file = openSync(path, "r")
    const { size } = fstatSync(file)
    const length = Math.min(size, harnessLimits.transcriptTailBytes)
    const bytes = Buffer.alloc(length)
    const read = readSync(file, bytes, 0, length, size - length)
    return endOf(bytes.toString("utf8", 0, read))
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
