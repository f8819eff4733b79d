// A text file as a whole, for tools that change it: its text, how its lines end, and what it must still be when the
// change is written. Bytes that are no UTF-8 text are refused, for writing them back would change them.
import * as Effect from "effect/Effect"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type FileProblem, locate, opened, pure, step } from "../FileWork.ts"
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
export const readTextFile: (workspace: Workspace, path: string) => Effect.Effect<TextFile | undefined, FileProblem> =
  Effect.fnUntraced(function* (workspace, path) {
    const { at, kind, shown } = yield* locate(workspace, path, { for: "writing" })
    if (kind === "missing") return undefined
    if (kind === "directory") return yield* Effect.fail(new ToolFailure("file_error", `${path} is a directory`))
    if (kind === "other") return yield* Effect.fail(new ToolFailure("file_error", `${path} is no regular file`))
    const file = yield* opened(at, readFlags)
    const { ino, mtimeMs, size } = yield* step(() => file.stat())
    if (size > builtinLimits.editBytesMax)
      return yield* Effect.fail(
        new ToolFailure("too_large", `${path} has ${size} bytes; at most ${builtinLimits.editBytesMax} are edited`)
      )
    const bytes = yield* step(() => file.readFile())
    const text = yield* pure(() => decode(path, bytes))
    return { shown, text, expected: { ino, mtimeMs, size } }
  }, Effect.scoped)

export const requireTextFile = (workspace: Workspace, path: string): Effect.Effect<TextFile, FileProblem> =>
  Effect.flatMap(readTextFile(workspace, path), (file) =>
    file === undefined
      ? Effect.fail(new ToolFailure("file_error", `${path}: there is no such file`))
      : Effect.succeed(file)
  )

/** Every line ends with a carriage return and a line feed. */
export const endsWithCrLf = (text: string): boolean => {
  let lines = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    if (text[at - 1] !== "\r") return false
    lines += 1
  }
  return lines > 0
}
