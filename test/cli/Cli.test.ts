// Goal: the answers that belong to no verb. Method: the CLI with verbs of the test's own, and the real command as a
// process for what only a process shows.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { runCli } from "#src/cli/Cli.ts"
import type { VerbEntry } from "#src/cli/Verb.ts"
import { recordingTerminal } from "../support/terminal.ts"

const launcher = fileURLToPath(new URL("../../src/cli/echs.js", import.meta.url))
const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

const run = async (...args: ReadonlyArray<string>) => {
  const terminal = recordingTerminal()
  const loaded: Array<string> = []
  const entry = (name: string): VerbEntry => ({
    name,
    summary: `does ${name}`,
    load: async () => {
      loaded.push(name)
      return {
        usage: `usage: echs ${name}`,
        run: async (rest) => {
          terminal.write(`${name}(${rest.join(",")})`)
          return 6
        }
      }
    }
  })
  const code = await runCli({ version: "1.2.3", verbs: [entry("walk"), entry("run")] }, args, terminal)
  return { code, loaded, output: terminal.output(), complaints: terminal.complaints() }
}

describe("echs", () => {
  it.each([[["--help"]], [["-h"]], [["help"]], [[]]])("lists its verbs for %j without loading one", async (args) => {
    const { code, output, loaded } = await run(...args)
    expect(code).toBe(0)
    expect(output).toContain("walk  does walk")
    expect(output).toContain("run   does run")
    expect(loaded).toEqual([])
  })

  it("prints its version and nothing else", async () => {
    expect(await run("--version")).toMatchObject({ code: 0, output: "1.2.3\n", loaded: [] })
  })

  it("hands a verb its arguments and passes on its exit code", async () => {
    expect(await run("run", "--fast", "x")).toMatchObject({ code: 6, output: "run(--fast,x)", loaded: ["run"] })
  })

  it("shows the usage of a verb instead of running it", async () => {
    expect(await run("walk", "--help")).toMatchObject({ code: 0, output: "does walk\n\nusage: echs walk\n" })
  })

  it.each([
    ["fly", /unknown command "fly"/],
    ["--fly", /unknown option "--fly"/]
  ])("refuses %s with exit code 2", async (name, message) => {
    const { code, output, complaints, loaded } = await run(name)
    expect(code).toBe(2)
    expect(output).toBe("")
    expect(complaints).toMatch(message)
    expect(loaded).toEqual([])
  })
})

describe("the command", () => {
  const echs = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [launcher, ...args], { encoding: "utf8" })

  it("prints the version of the package", () => {
    expect(echs("--version")).toMatchObject({ status: 0, stdout: `${manifest.version}\n`, stderr: "" })
  })

  it("lists the verbs that exist", () => {
    const help = echs("--help")
    expect(help).toMatchObject({ status: 0, stderr: "" })
    expect(help.stdout).toMatch(/^ {2}demo /m)
    expect(help.stdout).toMatch(/^ {2}verify /m)
  })

  it("answers a verb it does not have with exit code 2", () => {
    expect(echs("fly")).toMatchObject({ status: 2, stdout: "" })
  })
})
