// `write_file`: a whole file, new or in place of what is there. A person who is asked sees the difference.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { unifiedDiff } from "../edit/Diff.ts"
import { pure, told, whole } from "../FileWork.ts"
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

const write = Effect.fnUntraced(function* (workspace: Workspace, { content, path }: typeof input.Type) {
  const bytes = yield* pure(() => bytesOf(content))
  const { isNew, shown } = yield* replaceFile(workspace, path, bytes)
  const output = `${shown}: ${bytes.length} bytes written${isNew ? ", a new file" : ""}`
  return { status: "success" as const, output }
})

const preview = Effect.fnUntraced(function* (workspace: Workspace, { content, path }: typeof input.Type) {
  const before = yield* readTextFile(workspace, path)
  const diff = unifiedDiff(before?.shown ?? path, { before: before?.text, after: content })
  const title = `${before === undefined ? "write a new file" : "write"} ${path}`
  return diff === "" ? { title, detail: "it has this content already" } : { title, diff }
})

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
    preview: (given, place) => Effect.orDie(Effect.flatMap(door.open(place), (workspace) => preview(workspace, given))),
    run: (given, context) =>
      whole(
        context,
        told(
          given.path,
          Effect.flatMap(door.open(context), (workspace) => write(workspace, given))
        )
      )
  })
