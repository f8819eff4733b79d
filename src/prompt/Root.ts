// A directory that instruction files are read from: the workspace, the repository it lies in, or the directory of the
// user's own file. Paths are walked like those of tools, so that no link and no `..` leads out, whatever is swapped.
import { failureOf } from "../tool/builtin/BuiltinErrors.ts"
import { type ByteSource, isBinary, withFile } from "../tool/builtin/files/Bytes.ts"
import { Workspace } from "../tool/builtin/Workspace.ts"
import { limits } from "./PromptLimits.ts"

export type Found =
  | { readonly _tag: "File"; readonly text: string; readonly shown: string }
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Refused"; readonly reason: string }

export interface InstructionRoot {
  /** Reads a text file by its path below the root. */
  readonly read: (path: string) => Promise<Found>
  /** What a path below the root is called. */
  readonly nameOf: (shown: string) => string
}

export interface RootOptions {
  readonly path: string
  readonly nameOf: (shown: string) => string
  /** Whether a file, by its path below the root, may be read without a question. */
  readonly mayRead: (shown: string) => boolean
  /** What ECHS itself keeps. */
  readonly ownDirectories: ReadonlyArray<string>
}

const missing: Found = { _tag: "Missing" }
const outside: ReadonlySet<string> = new Set(["outside_workspace", "protected_path"])

const textOf = async (source: ByteSource): Promise<string | undefined> => {
  const pieces: Array<Buffer> = []
  for (let position = 0; position < limits.fileBytesMax; ) {
    const piece = await source.read(position)
    if (piece.length === 0) break
    if (position === 0 && isBinary(piece)) return undefined
    pieces.push(piece)
    position += piece.length
  }
  const text = Buffer.concat(pieces).subarray(0, limits.fileBytesMax).toString("utf8").toWellFormed().trim()
  const left = source.size - limits.fileBytesMax
  return left > 0 ? `${text}\n[… ${left} more bytes were not read]` : text
}

const found = async (workspace: Workspace, path: string, { mayRead }: RootOptions): Promise<Found> => {
  try {
    return await withFile(workspace, path, async (source, shown): Promise<Found> => {
      if (!mayRead(shown)) return { _tag: "Refused", reason: "the policy does not let it be read unasked" }
      const text = await textOf(source)
      if (text === undefined) return { _tag: "Refused", reason: "it is no text" }
      return text === "" ? missing : { _tag: "File", text, shown }
    })
  } catch (error) {
    // Whatever the file system says, an agent can work without the file.
    const failure = failureOf(error, path)
    if (failure === undefined || !outside.has(failure.code)) return missing
    return { _tag: "Refused", reason: "it lies outside" }
  }
}

/** Nothing when the directory is not there. */
export const openRoot = async (options: RootOptions): Promise<InstructionRoot | undefined> => {
  const { nameOf, ownDirectories, path } = options
  const workspace = await Workspace.open({ workspace: path }, { ownDirectories }).catch(() => undefined)
  return workspace === undefined ? undefined : { read: (wanted) => found(workspace, wanted, options), nameOf }
}
