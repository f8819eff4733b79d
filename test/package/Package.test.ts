// Goal: what `npm run pack` makes works where it is installed, which is not where it was written: no TypeScript, no tests,
// imports that begin with # included. Method: build, pack, unpack under a node_modules of its own, run it there.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const top = fileURLToPath(new URL("../..", import.meta.url))
const place = mkdtempSync(join(tmpdir(), "echs-package-"))
const installed = join(place, "node_modules", "echs")

const filesBelow = (directory: string, prefix = ""): ReadonlyArray<string> =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? filesBelow(join(directory, entry.name), `${prefix}${entry.name}/`)
      : [`${prefix}${entry.name}`]
  )

beforeAll(() => {
  const build = spawnSync(process.execPath, [join(top, ".ci", "build.ts")], { cwd: top, encoding: "utf8" })
  if (build.status !== 0) throw new Error(`the build failed:\n${build.stdout}${build.stderr}`)
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", place], {
    cwd: top,
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  mkdirSync(installed, { recursive: true })
  execFileSync("tar", ["-xzf", join(place, packed.trim()), "-C", installed, "--strip-components=1"])
  const { dependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
  for (const name of Object.keys(dependencies)) {
    mkdirSync(join(place, "node_modules", name, ".."), { recursive: true })
    symlinkSync(join(top, "node_modules", name), join(place, "node_modules", name), "dir")
  }
}, 120_000)

afterAll(() => rmSync(place, { recursive: true, force: true }))

describe("the package", () => {
  const echs = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [join(installed, "src", "cli", "echs.js"), ...args], { cwd: place, encoding: "utf8" })

  it("holds what runs and what explains, and neither source nor tests", () => {
    const files = filesBelow(installed)
    expect(files.filter((file) => /^(test|\.ci)\/|(?<!\.d)\.ts$/.test(file))).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining(["LICENSE", "README.md", "CHANGELOG.md", "src/cli/echs.js", "dist/src/main.js"])
    )
  })

  it("starts", () => {
    const { version } = JSON.parse(readFileSync(join(top, "package.json"), "utf8"))
    expect(echs("--version")).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: "" })
    expect(echs("--help").stdout).toMatch(/^ {2}demo /m)
  })

  it("runs the demo", () => {
    const run = echs("demo", "--json")
    expect(run).toMatchObject({ status: 0, stderr: "" })
    expect(JSON.parse(run.stdout)).toMatchObject({ survived: true })
  })

  it("lets the client be imported", () => {
    writeFileSync(
      join(place, "client.mjs"),
      'import { Client } from "echs/client"\nprocess.stdout.write(typeof Client.connect)\n'
    )
    expect(spawnSync(process.execPath, ["client.mjs"], { cwd: place, encoding: "utf8" })).toMatchObject({
      status: 0,
      stdout: "function",
      stderr: ""
    })
  })

  it("lets the log engine be imported", () => {
    writeFileSync(
      join(place, "use.mjs"),
      'import * as runelog from "echs/runelog"\nprocess.stdout.write(typeof runelog.Runelog)\n'
    )
    expect(spawnSync(process.execPath, ["use.mjs"], { cwd: place, encoding: "utf8" })).toMatchObject({
      status: 0,
      stdout: "function",
      stderr: ""
    })
  })
})
