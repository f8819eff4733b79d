// `edit_file`: puts one text in place of another inside a file. The text must be there exactly once, unless all of its
// places are meant; what is wrong with it is told with line numbers.

import { promisedOutcome } from "../../PromiseWork.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { replaceFile } from "../files/Replace.ts"
import { endsWithCrLf, requireTextFile, type TextFile } from "../files/TextFile.ts"
import { aPath, asText, flag, takes, text, type WorkspaceAccess } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { unifiedDiff } from "./Diff.ts"

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

const edited = async (workspace: Workspace, input: Input): Promise<Edited> => {
  const path = asText(input["path"])
  const file = await requireTextFile(workspace, path)
  const oldText = asInFile(file.text, asText(input["old_text"]))
  const newText = asInFile(file.text, asText(input["new_text"]))
  if (oldText === "") throw new ToolFailure("invalid_arguments", "old_text is empty; write_file writes a whole file")
  if (oldText === newText) throw new ToolFailure("invalid_arguments", "old_text and new_text are the same")
  const places = placesOf(file.text, oldText)
  if (places.length === 0) throw missing(path, file.text, oldText)
  const lines = places.map((place) => lineAt(file.text, place))
  if (places.length > 1 && input["replace_all"] !== true)
    throw new ToolFailure(
      "anchor_ambiguous",
      `${path} contains old_text ${places.length} times, at lines ${listed(lines)}; give more of the text around it, or replace_all`
    )
  const after = file.text.split(oldText).join(newText)
  return { file, after, lines }
}

const run = async (workspace: Workspace, input: Input): Promise<ToolOutcome> => {
  const { after, file, lines } = await edited(workspace, input)
  const bytes = Buffer.from(after, "utf8")
  if (bytes.length > builtinLimits.editBytesMax)
    throw new ToolFailure("too_large", `${file.shown} would have more than ${builtinLimits.editBytesMax} bytes`)
  await replaceFile(workspace, asText(input["path"]), bytes, file.expected)
  const where = lines.length === 1 ? `at line ${lines[0]}` : `at ${lines.length} places, lines ${listed(lines)}`
  return { status: "success", output: `${file.shown}: changed ${where}` }
}

const parameters = takes(
  {
    path: aPath("path inside the workspace"),
    old_text: text("the text to replace, exactly as it is in the file, with enough around it to be there only once"),
    new_text: text("what to put in its place"),
    replace_all: flag("replace every place where it is")
  },
  ["path", "old_text", "new_text"]
)

export const editFileTool = ({ door }: { readonly door: WorkspaceAccess }): Tool => ({
  effect_class: "effect",
  mutating: true,
  timeout_ms: builtinLimits.fileTimeoutMs,
  provenance: "builtin",
  name: "edit_file",
  description: "Replaces a text in a file of the workspace by another. The rest of the file stays as it is.",
  parameters,
  access: ({ path }) => ({ reads: [asText(path)], writes: [asText(path)] }),
  preview: async (input, place) => {
    const { after, file } = await edited(await door.open(place), input)
    return { title: `edit ${file.shown}`, diff: unifiedDiff(file.shown, { before: file.text, after }) }
  },
  run: (input, context) =>
    promisedOutcome(context, (place) => told(asText(input["path"]), async () => run(await door.open(place), input)))
})
