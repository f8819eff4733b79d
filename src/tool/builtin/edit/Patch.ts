// A patch as data: which files it adds, changes, moves and deletes, hunk by hunk. Both forms that models write are read:
// unified diffs, also with wrong counts, and the form between `*** Begin Patch` and `*** End Patch`.
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"

export interface HunkLine {
  readonly mark: " " | "-" | "+"
  readonly text: string
}

export interface Hunk {
  /** As the patch names it. */
  readonly header: string
  readonly lines: ReadonlyArray<HunkLine>
  /** First old line, from 1; nothing where the form does not say. */
  readonly oldStart: number | undefined
  /** A line that comes before the hunk. */
  readonly anchor: string | undefined
  /** It belongs at the end of the file. */
  readonly isAtEnd: boolean
  /** How the new text ends, where the hunk says so. */
  readonly finalNewline: boolean | undefined
}

export type FilePatch =
  | { readonly type: "add"; readonly path: string; readonly content: string }
  | { readonly type: "delete"; readonly path: string }
  | {
      readonly type: "update"
      readonly path: string
      readonly moveTo: string | undefined
      readonly hunks: ReadonlyArray<Hunk>
    }

const malformed = (line: number, message: string): ToolFailure =>
  new ToolFailure("patch_malformed", `line ${line} of the patch: ${message}`)

/** The lines of a patch, and where one is. */
export class PatchLines {
  private readonly lines: ReadonlyArray<string>
  private at = 0

  constructor(patch: string) {
    const lines = patch.split("\n")
    this.lines = lines.at(-1) === "" ? lines.slice(0, -1) : lines
  }

  get number(): number {
    return this.at + 1
  }

  get isOver(): boolean {
    return this.at >= this.lines.length
  }

  peek(ahead = 0): string {
    return this.lines[this.at + ahead] ?? ""
  }

  /** Nothing but empty lines is left. */
  get isRestEmpty(): boolean {
    return this.lines.slice(this.at).every((line) => line.trim() === "")
  }

  next(): string {
    const line = this.peek()
    this.at += 1
    return line
  }

  fail(message: string): ToolFailure {
    return malformed(this.number, message)
  }
}

export const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line)

const markOf = (line: string): HunkLine["mark"] | undefined => {
  const [first] = line
  // Editors and models take the space off an empty line of context.
  if (first === undefined || line === "\r") return " "
  return first === " " || first === "-" || first === "+" ? first : undefined
}

export const hunkLine = (line: string): HunkLine | undefined => {
  const mark = markOf(line)
  return mark === undefined ? undefined : { mark, text: line.slice(1) }
}

/** What the lines of an added file make. */
export const addedText = (lines: ReadonlyArray<HunkLine>, finalNewline: boolean | undefined): string => {
  const text = lines.map((line) => line.text).join("\n")
  return lines.length === 0 || finalNewline === false ? text : `${text}\n`
}

const beginPatch = "*** Begin Patch"

const fenced = /^\s*```[\w-]*\n([\s\S]*?)\n```\s*$/

/** Reads a patch; throws patch_malformed with the line that cannot be read. */
export const readPatch = (
  patch: string,
  readers: {
    readonly unified: (lines: PatchLines) => ReadonlyArray<FilePatch>
    readonly marked: (lines: PatchLines) => ReadonlyArray<FilePatch>
  }
): ReadonlyArray<FilePatch> => {
  if (patch.length > builtinLimits.patchCharsMax)
    throw new ToolFailure("too_large", `a patch has at most ${builtinLimits.patchCharsMax} characters`)
  const body = fenced.exec(patch)?.[1] ?? patch
  const isMarked = body.trimStart().startsWith(beginPatch)
  const lines = new PatchLines(isMarked ? body.trimStart() : body)
  const files = isMarked ? readers.marked(lines) : readers.unified(lines)
  if (files.length === 0) throw new ToolFailure("patch_malformed", "the patch names no file")
  if (files.length > builtinLimits.patchFilesMax)
    throw new ToolFailure("too_large", `a patch changes at most ${builtinLimits.patchFilesMax} files`)
  return files
}
