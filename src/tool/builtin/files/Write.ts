// `write_file`: a whole file, new or in place of what is there. A person who is asked sees the difference.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ShownAs } from "../../../rune/kinds/tool.ts"
import { defineTool } from "../../DefineTool.ts"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { unifiedDiff } from "../edit/Diff.ts"
import { aPath, text, type WorkspaceAccess } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { replaceFile } from "./Replace.ts"
import { readTextFile } from "./TextFile.ts"

const bytesOf = (content: string): Buffer => {
  const bytes = Buffer.from(content, "utf8")
  if (bytes.length > builtinLimits.writeBytesMax)
    throw new ToolFailure("too_large", `at most ${builtinLimits.writeBytesMax} bytes are written at once`)
  return bytes
}

const input = Schema.Struct({ path: aPath("path inside the workspace"), content: text("the whole new content") })

const write = async (workspace: Workspace, { content, path }: typeof input.Type): Promise<ToolOutcome> => {
  const bytes = bytesOf(content)
  const { isNew, shown } = await replaceFile(workspace, path, bytes)
  return { status: "success", output: `${shown}: ${bytes.length} bytes written${isNew ? ", a new file" : ""}` }
}

const preview = async (workspace: Workspace, { content, path }: typeof input.Type): Promise<ShownAs> => {
  const before = await readTextFile(workspace, path)
  const diff = unifiedDiff(before?.shown ?? path, { before: before?.text, after: content })
  const title = `${before === undefined ? "write a new file" : "write"} ${path}`
  return diff === "" ? { title, detail: "it has this content already" } : { title, diff }
}

export const writeFileTool = ({ door }: { readonly door: WorkspaceAccess }): Tool =>
  defineTool({
    name: "write_file",
    effect_class: "idempotent",
    mutating: true,
    timeout_ms: builtinLimits.fileTimeoutMs,
    description:
      "Writes a text file of the workspace, in place of what is there; makes the directories it needs. edit_file changes a part of a file.",
    input,
    access: ({ path }) => ({ writes: [path] }),
    preview: (given, place) => Effect.promise(async () => preview(await door.open(place), given)),
    run: (given, context) =>
      promisedOutcome(context, (place) => told(given.path, async () => write(await door.open(place), given)))
  })
