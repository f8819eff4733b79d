// Goal: a new tool is one file and its line in the list, as CONTRIBUTING says. Method: a copy of the source tree gets the
// tool shown there that way, is type-checked, and the tool is offered, checked and run through the router.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { recipe, ToyTree } from "../support/ToyTree.ts"

const [toyFile, importLine, listLine] = recipe("How to add a tool")
const list = "src/tool/builtin/Builtin.ts"

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree()
  tree.write("src/tool/builtin/files/CountWords.ts", toyFile)
  tree.insertAfter(list, 'import { editFileTool } from "./edit/Edit.ts"', importLine)
  tree.insertAfter(list, "const tools = [", listLine)
})
afterAll(() => tree.remove())

const script = `
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { builtinTools } from "./src/tool/builtin/Builtin.ts"
import { makeArgumentCheck } from "./src/tool/Arguments.ts"

const refuse = () => Promise.reject(new Error("nothing runs here"))
const processes = { run: refuse, start: refuse, close: async () => undefined }
const workspace = mkdtempSync(join(tmpdir(), "echs-toy-workspace-"))
writeFileSync(join(workspace, "a.txt"), "one two three")
const { tools } = builtinTools({ ownDirectories: [], blobs: undefined, processes, path: "", home: "/" })
const tool = tools.find(({ name }) => name === "count_words")
const context = { workspace, interruptedWith: () => undefined }
const run = (input) => Effect.runPromise(tool.run(input, context))
const { check } = makeArgumentCheck()
const told = {
  parameters: tool.parameters,
  access: tool.access({ path: "a.txt" }),
  shown: await Effect.runPromise(tool.preview({ path: "a.txt" }, { workspace })),
  outcome: await run({ path: "a.txt" }),
  missing: await run({ path: "b.txt" }),
  checked: await check(tool, { path: 1 }),
  wrong: await run({ path: 1 })
}
rmSync(workspace, { recursive: true })
console.log(JSON.stringify(told))
`

describe("a tool that CONTRIBUTING shows, added with one file and one line", { timeout: 240_000 }, () => {
  it("compiles", () => {
    expect(tree.typecheck(list)).toBe("")
  })

  it("is described from its schema, checked, shown and run", () => {
    expect(tree.run(script)).toMatchObject({
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "path inside the workspace", minLength: 1 } },
        required: ["path"],
        additionalProperties: false
      },
      access: { reads: ["a.txt"] },
      shown: { title: "count the words of a.txt" },
      outcome: { status: "success", output: "a.txt: 3 words" },
      missing: { status: "error", error: { code: "file_error" } },
      checked: { _tag: "Invalid", message: "count_words: path must be string" },
      wrong: { status: "error", error: { code: "invalid_arguments" } }
    })
  })

  it("with an argument that its schema does not have does not compile", () => {
    tree.write(
      "src/tool/builtin/files/CountWords.ts",
      toyFile?.replace("({ path }) => ({ reads", "({ file: path }) => ({ reads")
    )
    expect(tree.typecheck(list)).toContain("Property 'file' does not exist")
  })
})
