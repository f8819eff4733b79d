// What going back to a checkpoint would do, as rows: each file, then the difference.
import type { Answer } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"
import { diffLine } from "./Markdown.ts"
import { safeText } from "./Text.ts"

export type UndoPreview = Answer<"checkpoint.preview">

const marks = { create: "+ ", delete: "- ", modify: "~ ", mode: "x ", type: "t " } as const
const verbs = { create: "comes back", delete: "is deleted", modify: "", mode: "mode", type: "kind of file" } as const

export const filesText = (count: number): string => (count === 1 ? "1 file" : `${count} files`)

export const undoRows = (
  preview: UndoPreview,
  { paint }: Pick<Terminal, "paint">,
  { patchLinesMax }: { readonly patchLinesMax: number }
): ReadonlyArray<string> => {
  const { checkpoint, files, files_total: total, patch } = preview
  const where = `${checkpoint.turn_id ?? checkpoint.checkpoint_id} (${checkpoint.checkpoint_id})`
  if (total === 0) return [`  nothing to undo: the files are as they were before ${where}`]
  const lines = patch.split("\n")
  const more = lines.length - patchLinesMax
  return [
    `  ${paint("strong", `${filesText(total)} would go back to before ${where}`)}`,
    ...files.map(({ change, path }) => `  ${marks[change]}${safeText(path)}  ${paint("quiet", verbs[change])}`),
    ...(total > files.length ? [`  … and ${total - files.length} more`] : []),
    ...lines.slice(0, patchLinesMax).map((line) => `  ${diffLine(safeText(line), paint)}`),
    ...(more > 0 ? [paint("quiet", `  … ${more} more lines of the difference`)] : [])
  ]
}

export const undoneText = (done: Answer<"checkpoint.restore">): string =>
  [
    `${filesText(done.files)} back to ${done.checkpoint_id}`,
    ...(done.saved_as === undefined ? [] : [`what was there is ${done.saved_as}`]),
    ...(done.conversation_id === undefined ? [] : [`continue in ${done.conversation_id}`])
  ].join("; ")
