// The file tools that the scripted goals use, on a real disk.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { effectTool, tool } from "../runtime/tools.ts"
import type { FunctionTool } from "../tool/FunctionTools.ts"

const pathOf = (workspace: string | undefined, input: Readonly<Record<string, unknown>>): string =>
  join(workspace ?? "", String(input["path"]))

/** Reads and writes for real, in the workspace of the agent that calls. */
export const fileTools: ReadonlyArray<FunctionTool> = [
  tool("list_files", async (input, { workspace }) => readdirSync(pathOf(workspace, input)).join("\n")),
  tool("read_file", async (input, { workspace }) => {
    try {
      return readFileSync(pathOf(workspace, input), "utf8")
    } catch (error) {
      return { status: "error", error: { code: "file_error", message: String(error) } }
    }
  }),
  effectTool(
    "write_file",
    async (input, { workspace }) => {
      const path = pathOf(workspace, input)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, String(input["content"]))
      return "written"
    },
    { effect_class: "idempotent" }
  )
]
