// A text file as a whole, for tools that change it: its text, how its lines end, and what it must still be when the
// change is written. Bytes that are no UTF-8 text are refused, for writing them back would change them.
import { open } from "node:fs/promises"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { readFlags, type Workspace } from "../Workspace.ts"
import type { Expected } from "./Replace.ts"

export interface TextFile {
  readonly shown: string
  readonly text: string
  readonly expected: Expected
}

const decode = (path: string, bytes: Buffer): string => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!text.includes("\0")) return text
  } catch {
    // Told below, together with what has a NUL in it.
  }
  throw new ToolFailure("not_text", `${path} is no UTF-8 text`)
}

/** The file at a path; nothing when there is none. */
export const readTextFile = (workspace: Workspace, path: string): Promise<TextFile | undefined> =>
  workspace.locate(path, { for: "writing" }, async (located) => {
    if (located.kind === "missing") return undefined
    if (located.kind === "directory") throw new ToolFailure("file_error", `${path} is a directory`)
    if (located.kind === "other") throw new ToolFailure("file_error", `${path} is no regular file`)
    const file = await open(located.at, readFlags)
    try {
      const { ino, mtimeMs, size } = await file.stat()
      if (size > builtinLimits.editBytesMax)
        throw new ToolFailure(
          "too_large",
          `${path} has ${size} bytes; at most ${builtinLimits.editBytesMax} are edited`
        )
      const text = decode(path, await file.readFile())
      return { shown: located.shown, text, expected: { ino, mtimeMs, size } }
    } finally {
      await file.close()
    }
  })

export const requireTextFile = async (workspace: Workspace, path: string): Promise<TextFile> => {
  const file = await readTextFile(workspace, path)
  if (file === undefined) throw new ToolFailure("file_error", `${path}: there is no such file`)
  return file
}

/** Every line ends with a carriage return and a line feed. */
export const endsWithCrLf = (text: string): boolean => {
  let lines = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    if (text[at - 1] !== "\r") return false
    lines += 1
  }
  return lines > 0
}
