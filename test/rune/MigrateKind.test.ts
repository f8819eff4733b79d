// Goal: a new version of a rune kind is read beside the old one, as CONTRIBUTING says. Method: a copy of the source tree
// gets the version shown there, and decodes a rune of each.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { complainedAbout, recipe, ToyTree } from "../support/ToyTree.ts"

const [released, version, importLine, step, example, oldExample] = recipe("How to migrate the log")
const checked = ["src/machine/decide/Decide.ts", "src/rune/Upcaster.ts", "test/support/runeExamples.ts"]
const v1 = "schemas/rune/session.paused.v1.json"

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree("test", "docs", "schemas")
  tree.write("src/rune/kinds/session.paused.v1.ts", released)
  const meaning = '    meaning: "New work is held until the conversation is resumed.",\n    views: ["state_events"],\n'
  tree.replace("src/rune/kinds/session.ts", `${meaning}    payload: Reason\n`, `${meaning}${version}`)
  tree.insertAfter("src/rune/Upcaster.ts", 'import { lookup } from "./Kinds.ts"', importLine)
  tree.insertAfter("src/rune/Upcaster.ts", "export const steps: ReadonlyArray<UpcastStep> = [", step)
})
afterAll(() => tree.remove())

const script = `
import * as Result from "effect/Result"
import { decode } from "./src/rune/Rune.ts"
import { exampleRune } from "./test/support/runeExamples.ts"

const rune = exampleRune("session.paused")
const read = (fields) => {
  const decoded = decode(JSON.stringify({ ...rune, ...fields }))
  return Result.isSuccess(decoded) ? decoded.success.payload : decoded.failure.fault
}
const old = { schema_version: 1, payload: { reason: "lunch" } }
console.log(JSON.stringify([rune.schema_version, read({}), read(old), read({ ...old, schema_version: 2 })]))
`

describe("a version of a rune kind that CONTRIBUTING shows", { timeout: 240_000 }, () => {
  it("makes the compiler name the code that writes the kind, and its example", () => {
    expect(complainedAbout(tree.typecheck(...checked))).toEqual([
      "src/machine/table/Session.ts",
      "test/support/runeExamples.ts"
    ])
  })

  it("is read from runes of both versions", () => {
    tree.replace(
      "src/machine/table/Session.ts",
      '[draft("session.paused", { reason })]',
      '[draft("session.paused", { reason, by: "local" })]'
    )
    tree.replace("test/support/runeExamples.ts", '  "session.paused": { reason: "lunch" },\n', example)
    const olds = "export const oldPayloadExamples: Readonly<Record<string, unknown>> = {"
    tree.insertAfter("test/support/runeExamples.ts", olds, oldExample)
    expect(tree.typecheck(...checked)).toBe("")
    expect(tree.run(script)).toEqual([
      2,
      { reason: "lunch", by: "local" },
      { reason: "lunch", by: "unknown" },
      "bad_payload"
    ])
  })

  it("gets a JSON Schema next to the old one from npm run schemas", () => {
    const before = tree.read(v1)
    expect(tree.node("test/support/generateSchemas.ts").status).toBe(0)
    expect(tree.read(v1)).toBe(before)
    expect(tree.read("schemas/rune/session.paused.v2.json")).toContain('"by"')
  })
})
