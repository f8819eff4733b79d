// What a person typed in earlier chats: `<data>/history.jsonl`, one JSON string a line, for its owner alone. Bounded; a
// file that cannot be read is no history.
import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeDirectories } from "./ServerFiles.ts"

const entriesMax = 1_000
const fileBytesMax = 2_097_152
/** A longer text is not worth a keystroke to find again. */
const entryCharsMax = 20_000
const ownerOnly = 0o600

const pathOf = (dataDirectory: string): string => join(dataDirectory, "history.jsonl")

const entryOf = (line: string): ReadonlyArray<string> => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "string" ? [value] : []
  } catch {
    return []
  }
}

export const readInputHistory = (dataDirectory: string): ReadonlyArray<string> => {
  try {
    return readFileSync(pathOf(dataDirectory), "utf8").split("\n").flatMap(entryOf).slice(-entriesMax)
  } catch {
    return []
  }
}

export const addToInputHistory = (dataDirectory: string, text: string): void => {
  if (text.length > entryCharsMax) return
  const path = pathOf(dataDirectory)
  makeDirectories(dataDirectory)
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > fileBytesMax) {
    const kept = readInputHistory(dataDirectory).slice(-entriesMax / 2)
    writeFileSync(`${path}.new`, kept.map((one) => `${JSON.stringify(one)}\n`).join(""), { mode: ownerOnly })
    renameSync(`${path}.new`, path)
  }
  appendFileSync(path, `${JSON.stringify(text)}\n`, { mode: ownerOnly })
}
