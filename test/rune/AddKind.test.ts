// Goal: a new kind of rune is four files, all named by the compiler, as CONTRIBUTING says. Method: a copy of the source
// tree gets the kind shown there, first in one file, then in the others that the compiler names, and is used.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { complainedAbout, recipe, ToyTree } from "../support/ToyTree.ts"

const [definition, evolve, line, example] = recipe("How to add a rune kind")
const checked = ["src/main/Serve.ts", "src/cli/render/RuneText.ts", "test/support/runeExamples.ts"]

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree("test", "docs", "schemas")
  tree.insertAfter("src/rune/kinds/session.ts", "export const sessionKinds = [", definition)
})
afterAll(() => tree.remove())

const script = `
import { emptyConversation } from "./src/machine/State.ts"
import { evolve } from "./src/machine/evolve/Evolve.ts"
import { runeText } from "./src/cli/render/RuneText.ts"
import { definitionOf } from "./src/rune/Kinds.ts"

const payload = { label: "before the change" }
const rune = { kind: "session.bookmarked", schema_version: 1, event_id: 1, ts_ms: 5, conversation_id: "conv_1", payload }
const { family, version } = definitionOf("session.bookmarked")
const state = evolve(emptyConversation("conv_1"), rune)
console.log(JSON.stringify({ family, version, reason: state.session.reason, text: runeText(rune).text }))
`

describe("a kind of rune that CONTRIBUTING shows", { timeout: 240_000 }, () => {
  it("makes the compiler name the other three files", () => {
    expect(complainedAbout(tree.typecheck(...checked))).toEqual([
      "src/cli/render/RuneText.ts",
      "src/machine/evolve/session.ts",
      "test/support/runeExamples.ts"
    ])
  })

  it("compiles once those have it, is folded and shown", () => {
    tree.insertAfter("src/machine/evolve/session.ts", 'export const sessionHandlers: Handlers<"session"> = {', evolve)
    tree.insertAfter("src/cli/render/RuneText.ts", "const described: { readonly [K in Kind]: Describe } = {", line)
    tree.insertAfter("test/support/runeExamples.ts", '  "session.resumed": {},', example)
    expect(tree.typecheck(...checked)).toBe("")
    expect(tree.run(script)).toEqual({
      family: "session",
      version: 1,
      reason: "before the change",
      text: "before the change"
    })
  })

  it("gets its JSON Schema and its row of docs/RUNES.md from npm run schemas", () => {
    expect(tree.node("test/support/generateSchemas.ts").status).toBe(0)
    expect(existsSync(join(tree.path, "schemas/rune/session.bookmarked.v1.json"))).toBe(true)
    expect(tree.read("docs/RUNES.md")).toContain("A person marked a place in the conversation.")
  })
})
