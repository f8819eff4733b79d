// `write_file`: a whole file, new or in place of what is there. A person who is asked sees the difference.

import { promisedOutcome } from "../../PromiseWork.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { unifiedDiff } from "../edit/Diff.ts"
import { aPath, asText, takes, text, type WorkspaceAccess } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { replaceFile } from "./Replace.ts"
import { readTextFile } from "./TextFile.ts"

const bytesOf = (content: string): Buffer => {
  const bytes = Buffer.from(content, "utf8")
  if (bytes.length > builtinLimits.writeBytesMax)
    throw new ToolFailure("too_large", `at most ${builtinLimits.writeBytesMax} bytes are written at once`)
  return bytes
}

const write = async (workspace: Workspace, input: Input): Promise<ToolOutcome> => {
  const path = asText(input["path"])
  const bytes = bytesOf(asText(input["content"]))
  const { isNew, shown } = await replaceFile(workspace, path, bytes)
  return { status: "success", output: `${shown}: ${bytes.length} bytes written${isNew ? ", a new file" : ""}` }
}

export const writeFileTool = ({ door }: { readonly door: WorkspaceAccess }): Tool => ({
  effect_class: "idempotent",
  mutating: true,
  timeout_ms: builtinLimits.fileTimeoutMs,
  provenance: "builtin",
  name: "write_file",
  description:
    "Writes a text file of the workspace, in place of what is there; makes the directories it needs. edit_file changes a part of a file.",
  parameters: takes({ path: aPath("path inside the workspace"), content: text("the whole new content") }, [
    "path",
    "content"
  ]),
  access: ({ path }) => ({ writes: [asText(path)] }),
  preview: async ({ content, path }, place) => {
    const before = await readTextFile(await door.open(place), asText(path))
    const diff = unifiedDiff(before?.shown ?? asText(path), { before: before?.text, after: asText(content) })
    const title = `${before === undefined ? "write a new file" : "write"} ${asText(path)}`
    return diff === "" ? { title, detail: "it has this content already" } : { title, diff }
  },
  run: (input, context) =>
    promisedOutcome(context, (place) => told(asText(input["path"]), async () => write(await door.open(place), input)))
})
