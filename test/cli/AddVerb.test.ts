// Goal: a new verb is one file and one line, as CONTRIBUTING says. Method: a copy of the source tree gets a toy verb that
// way, is type-checked, and its command is run.
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { codeBlocks } from "../docs/Markdown.ts"
import { top } from "../tidy/Source.ts"

const [toyFile, toyLine] = codeBlocks(
  readFileSync(join(top, "CONTRIBUTING.md"), "utf8").split("## How to add a CLI verb")[1] ?? ""
)

let tree = ""
beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "echs-toy-verb-"))
  for (const name of ["src", "runelog", "package.json", "tsconfig.json"]) {
    cpSync(join(top, name), join(tree, name), { recursive: true })
  }
  symlinkSync(join(top, "node_modules"), join(tree, "node_modules"))
  writeFileSync(join(tree, "src/cli/verbs/hello.ts"), toyFile?.text ?? "")
  const list = join(tree, "src/main/Verbs.ts")
  const lines = readFileSync(list, "utf8").split("\n")
  const end = lines.indexOf("]")
  lines[end - 1] += ","
  lines.splice(end, 0, `  ${toyLine?.text.trim()}`)
  writeFileSync(list, lines.join("\n"))
})
afterAll(() => rmSync(tree, { recursive: true, force: true }))

const echs = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [join(tree, "src/cli/echs.js"), ...args], { encoding: "utf8" })

describe("a verb that CONTRIBUTING shows, added with one file and one line", () => {
  it("compiles", () => {
    const config = { extends: "./tsconfig.json", compilerOptions: { noEmit: true }, include: ["src/main/Verbs.ts"] }
    writeFileSync(join(tree, "tsconfig.toy.json"), JSON.stringify(config))
    const run = spawnSync(process.execPath, [join(top, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.toy.json"], {
      cwd: tree,
      encoding: "utf8"
    })
    expect(run.stdout).toBe("")
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
