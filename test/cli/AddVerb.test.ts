// Goal: a new verb is one file and one line, as CONTRIBUTING says. Method: a copy of the source tree gets a toy verb that
// way, is type-checked, and its command is run.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { recipe, ToyTree } from "../support/ToyTree.ts"

const [toyFile, toyLine] = recipe("How to add a CLI verb")

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree()
  tree.write("src/cli/verbs/hello.ts", toyFile)
  const lines = tree.read("src/main/Verbs.ts").split("\n")
  const end = lines.indexOf("]")
  lines[end - 1] += ","
  lines.splice(end, 0, `  ${toyLine?.trim()}`)
  tree.write("src/main/Verbs.ts", lines.join("\n"))
})
afterAll(() => tree.remove())

const echs = (...args: ReadonlyArray<string>) => tree.node("src/cli/echs.js", ...args)

describe("a verb that CONTRIBUTING shows, added with one file and one line", { timeout: 240_000 }, () => {
  it("compiles", () => {
    expect(tree.typecheck("src/main/Verbs.ts")).toBe("")
  })

  it("runs, with --json, and refuses wrong usage", () => {
    expect(echs("hello", "Ada")).toMatchObject({ status: 0, stdout: "hello, Ada\n", stderr: "" })
    expect(JSON.parse(echs("hello", "Ada", "--loud", "--json").stdout)).toEqual({ text: "HELLO, ADA" })
    expect(echs("hello")).toMatchObject({ status: 2, stdout: "" })
  })

  it("is listed, documented and completed", () => {
    expect(echs("--help").stdout).toMatch(/^ {2}hello {2,}greet somebody$/m)
    expect(echs("hello", "--help").stdout).toMatch(/usage: echs hello NAME.*--loud.*example: echs hello Ada/s)
    expect(echs("completions", "bash").stdout).toContain("hello) COMPREPLY=($(compgen -W '--loud --json --help'")
  })
})
