// `edit_file`: puts one text in place of another inside a file. The text must be there exactly once, unless all of its
// places are meant; what is wrong with it is told with line numbers.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type FileProblem, pure, told, whole } from "../FileWork.ts"
import { replaceFile } from "../files/Replace.ts"
import { endsWithCrLf, requireTextFile, type TextFile } from "../files/TextFile.ts"
import { aPath, flag, optional, text, type WorkspaceAccess } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { unifiedDiff } from "./Diff.ts"

const input = Schema.Struct({
  path: aPath("path inside the workspace"),
  old_text: text("the text to replace, exactly as it is in the file, with enough around it to be there only once"),
  new_text: text("what to put in its place"),
  replace_all: optional(flag("replace every place where it is"))
})
type EditInput = typeof input.Type

const placesOf = (content: string, wanted: string): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let at = content.indexOf(wanted); at >= 0; at = content.indexOf(wanted, at + wanted.length)) places.push(at)
  return places
}

const lineAt = (content: string, position: number): number => {
  let line = 1
  for (let at = content.indexOf("\n"); at >= 0 && at < position; at = content.indexOf("\n", at + 1)) line += 1
  return line
}

const listed = (lines: ReadonlyArray<number>): string => {
  const shown = lines.slice(0, builtinLimits.placesToldMax).join(", ")
  const rest = lines.length - builtinLimits.placesToldMax
  return rest > 0 ? `${shown} and ${rest} more` : shown
}

/** Lines that hold what the wanted text begins with, but for the space around it: where it was probably meant. */
const nearMisses = (content: string, wanted: string): ReadonlyArray<number> => {
  const first = wanted
    .split("\n")
    .find((line) => line.trim() !== "")
    ?.trim()
  if (first === undefined) return []
  return content.split("\n").flatMap((line, index) => (line.trim() === first ? [index + 1] : []))
}

const missing = (path: string, content: string, wanted: string): ToolFailure => {
  const near = nearMisses(content, wanted)
  const isOneLine = !wanted.trim().includes("\n")
  const hint =
    near.length === 0
      ? "; no line of the file is like its first line"
      : `; ${isOneLine ? "it differs in space from" : "its first line is there, but not what follows, or space differs, at"} line ${listed(near)}`
  return new ToolFailure("anchor_missing", `${path} does not contain old_text${hint}`)
}

interface Edited {
  readonly file: TextFile
  readonly after: string
  /** Lines of the old text at which it was changed. */
  readonly lines: ReadonlyArray<number>
}

/** Files whose lines end with CR LF are edited by models that write LF. */
const asInFile = (content: string, wanted: string): string =>
  endsWithCrLf(content) && !wanted.includes("\r") ? wanted.replaceAll("\n", "\r\n") : wanted

/** What the edit makes of the file; throws when it does not apply. */
const editOf = (file: TextFile, { path, replace_all, ...given }: EditInput): Edited => {
  const oldText = asInFile(file.text, given.old_text)
  const newText = asInFile(file.text, given.new_text)
  if (oldText === "") throw new ToolFailure("invalid_arguments", "old_text is empty; write_file writes a whole file")
  if (oldText === newText) throw new ToolFailure("invalid_arguments", "old_text and new_text are the same")
  const places = placesOf(file.text, oldText)
  if (places.length === 0) throw missing(path, file.text, oldText)
  const lines = places.map((place) => lineAt(file.text, place))
  if (places.length > 1 && replace_all !== true)
    throw new ToolFailure(
      "anchor_ambiguous",
      `${path} contains old_text ${places.length} times, at lines ${listed(lines)}; give more of the text around it, or replace_all`
    )
  const after = file.text.split(oldText).join(newText)
  return { file, after, lines }
}

const edited = (workspace: Workspace, given: EditInput): Effect.Effect<Edited, FileProblem> =>
  Effect.flatMap(requireTextFile(workspace, given.path), (file) => pure(() => editOf(file, given)))

const run = Effect.fnUntraced(function* (workspace: Workspace, given: EditInput) {
  const { after, file, lines } = yield* edited(workspace, given)
  const bytes = Buffer.from(after, "utf8")
  if (bytes.length > builtinLimits.editBytesMax)
    return yield* Effect.fail(
      new ToolFailure("too_large", `${file.shown} would have more than ${builtinLimits.editBytesMax} bytes`)
    )
  yield* replaceFile(workspace, given.path, bytes, file.expected)
  const where = lines.length === 1 ? `at line ${lines[0]}` : `at ${lines.length} places, lines ${listed(lines)}`
  return { status: "success" as const, output: `${file.shown}: changed ${where}` }
})

export const editFileTool = ({ door }: { readonly door: WorkspaceAccess }): Tool =>
  defineTool({
    effect_class: "effect",
    mutating: true,
    timeout_ms: builtinLimits.fileTimeoutMs,
    name: "edit_file",
    description: "Replaces a text in a file of the workspace by another. The rest of the file stays as it is.",
    input,
    access: ({ path }) => ({ reads: [path], writes: [path] }),
    preview: (given, place) =>
      Effect.flatMap(door.open(place), (workspace) => edited(workspace, given)).pipe(
        Effect.map(({ after, file }) => ({
          title: `edit ${file.shown}`,
          diff: unifiedDiff(file.shown, { before: file.text, after })
        })),
        Effect.orDie
      ),
    run: (given, context) =>
      whole(
        context,
        told(
          given.path,
          Effect.flatMap(door.open(context), (workspace) => run(workspace, given))
        )
      )
  })
