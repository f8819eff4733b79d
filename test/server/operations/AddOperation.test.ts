// Goal: a new wire operation is its definition and its handler, as CONTRIBUTING says. Method: a copy of the source tree
// gets the operation shown there, and a server of that tree is asked for it.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { complainedAbout, recipe, ToyTree } from "../../support/ToyTree.ts"

const [definition, handler, example] = recipe("How to add a wire operation")

const checked = ["src/main/Embed.ts", "test/server/Freeze.test.ts"]

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree("test", "docs", "schemas")
  tree.insertAfter("src/wire/operations/administration.ts", "export const administrationOperations = [", definition)
})
afterAll(() => tree.remove())

const script = `
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "./src/client/Client.ts"
import { startServer } from "./src/main/Embed.ts"

const dataDirectory = mkdtempSync(join(tmpdir(), "echs-toy-data-"))
const server = await startServer({ dataDirectory, port: 0, variables: { PATH: process.env.PATH }, writeLine: () => undefined })
const client = await Client.connect({ endpoint: server })
const answer = await client.call("server.greet", { name: "Ada" })
const refused = await client.call("server.greet", { name: 1 }).catch(({ code }) => code)
await client.close()
await server.close()
rmSync(dataDirectory, { recursive: true, force: true })
console.log(JSON.stringify({ answer, refused }))
`

describe("a wire operation that CONTRIBUTING shows", { timeout: 240_000 }, () => {
  it("makes the compiler name the file of its handler and that of its example", () => {
    expect(complainedAbout(tree.typecheck(...checked))).toEqual([
      "src/server/operations/administration.ts",
      "test/server/Freeze.test.ts"
    ])
  })

  it("compiles with its handler, and gets its schemas and its row of docs/PROTOCOL.md from npm run schemas", () => {
    const table = 'export const administrationHandlers: HandlersOf<"token" | "server"> = {'
    tree.insertAfter("src/server/operations/administration.ts", table, handler)
    tree.insertAfter("test/server/Freeze.test.ts", '    "conversation.create": {},', example)
    expect(tree.typecheck(...checked)).toBe("")
    expect(tree.node("test/support/generateSchemas.ts").status).toBe(0)
    expect(existsSync(join(tree.path, "schemas/wire/server.greet.json"))).toBe(true)
    expect(tree.read("docs/PROTOCOL.md")).toContain("`server.greet`")
    expect(tree.read("src/client/ReadingOperations.ts")).toContain('"server.greet"')
  })

  it("is answered by a server, and checks its input", () => {
    expect(tree.run(script)).toEqual({ answer: { text: "hello, Ada" }, refused: "bad_request" })
  })
})
