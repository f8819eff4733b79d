// Goal: what plain `npm pack` makes in a checkout works where it is installed, which is not where it was written: no
// TypeScript, no tests, imports that begin with # included. Method: the files of this tree as a checkout in a folder of their
// own, nothing built; `npm pack` there; the tarball installed by npm into an empty folder, with what it depends on from the
// registry; everything else runs in that folder.
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { operationNames } from "#src/wire/Operations.ts"
import { type Part, requirePart } from "../support/require.ts"

const top = fileURLToPath(new URL("../..", import.meta.url))
const place = mkdtempSync(join(tmpdir(), "echs-package-"))
const [checkout, folder] = [join(place, "checkout"), join(place, "folder")]
const installed = join(folder, "node_modules", "echs")
const manifest = JSON.parse(readFileSync(join(top, "package.json"), "utf8"))

const isWindows = process.platform === "win32"
/** As a person runs it: nothing of the run that this test belongs to. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
const npm = (args: ReadonlyArray<string>, cwd: string) =>
  spawnSync("npm", args, { cwd, encoding: "utf8", shell: isWindows, env: environment })

/** What `npm ci` needed as well, but which may be out of reach by now. */
const registry: Part = {
  name: "the npm registry",
  isThere: () => npm(["view", `effect@${manifest.dependencies.effect}`, "version"], place).status === 0,
  remedy: "run the tests where npm reaches its registry"
}

const filesBelow = (directory: string, prefix = ""): ReadonlyArray<string> =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? filesBelow(join(directory, entry.name), `${prefix}${entry.name}/`)
      : [`${prefix}${entry.name}`]
  )

/** The tree as git sees it, with what was changed and not yet committed, and without anything that was built. */
const checkOut = (): void => {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: top })
  for (const path of new Set(
    listed
      .toString("utf8")
      .split("\0")
      .filter((name) => name !== "")
  )) {
    mkdirSync(dirname(join(checkout, path)), { recursive: true })
    cpSync(join(top, path), join(checkout, path))
  }
  symlinkSync(join(top, "node_modules"), join(checkout, "node_modules"), "dir")
}

const must = (run: ReturnType<typeof npm>): string => {
  if (run.status !== 0) throw new Error(`npm failed:\n${run.stdout}${run.stderr}`)
  return run.stdout
}

let hasTarball = false

beforeAll(() => {
  checkOut()
  mkdirSync(folder)
  must(npm(["pack", "--pack-destination", place], checkout))
  hasTarball = true
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n')
}, 120_000)

afterAll(() => rmSync(place, { recursive: true, force: true }))

const tarball = (): string => join(place, `echs-${manifest.version}.tgz`)

describe("npm ci", () => {
  it("runs no script of a package: none in the lockfiles has one that it would run, but for those left out by name", () => {
    const lockfile = JSON.parse(readFileSync(join(top, "package-lock.json"), "utf8"))
    const packages: ReadonlyArray<readonly [string, { readonly hasInstallScript?: boolean }]> = Object.entries(
      lockfile.packages
    )
    expect(packages.length).toBeGreaterThan(100)
    expect(packages.filter(([, entry]) => entry.hasInstallScript === true).map(([name]) => name)).toEqual([])
    for (const script of ["preinstall", "install", "postinstall", "prepare"])
      expect(manifest.scripts).not.toHaveProperty(script)
  })
})

describe("the package", { timeout: 120_000 }, () => {
  beforeAll(() => {
    if (hasTarball && registry.isThere()) must(npm(["install", "--no-audit", "--no-fund", tarball()], folder))
  }, 300_000)
  beforeEach((context) => requirePart(context, registry))

  const echs = (...args: ReadonlyArray<string>) =>
    spawnSync("npx", ["--no-install", "echs", ...args], {
      cwd: folder,
      encoding: "utf8",
      shell: isWindows,
      env: environment
    })

  const program = (name: string, text: string, args: ReadonlyArray<string> = []) => {
    writeFileSync(join(folder, name), text)
    return spawnSync(process.execPath, [name, ...args], { cwd: folder, encoding: "utf8", env: environment })
  }

  it("holds what runs and what explains, and neither source nor tests", () => {
    const files = filesBelow(installed)
    expect(files.filter((file) => /^(test|\.ci)\/|(?<!\.d)\.ts$/.test(file))).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining(["LICENSE", "README.md", "CHANGELOG.md", "src/cli/echs.js", "dist/src/main.js"])
    )
    const schemas = filesBelow(join(installed, "schemas"))
    expect(schemas).toEqual(filesBelow(join(top, "schemas")))
    for (const name of operationNames)
      expect(schemas).toEqual(expect.arrayContaining([`wire/${name}.json`, `answers/${name}.json`]))
  })

  it("starts", () => {
    expect(echs("--version")).toMatchObject({ status: 0, stdout: `${manifest.version}\n` })
    expect(echs("--help").stdout).toMatch(/^ {2}demo /m)
  })

  it("runs the demo", () => {
    const run = echs("demo", "--json")
    expect(run.status, run.stderr).toBe(0)
    expect(JSON.parse(run.stdout)).toMatchObject({ survived: true })
  })

  it("serves its page, built, without a bundler", async () => {
    const data = join(folder, "page-data")
    const child = spawn(
      process.execPath,
      [join(installed, "src/cli/echs.js"), "serve", "--json", "--port", "0", "--data", data],
      {
        cwd: folder,
        env: environment,
        stdio: ["ignore", "pipe", "ignore"]
      }
    )
    try {
      const [line] = await once(createInterface({ input: child.stdout }), "line")
      const { url } = JSON.parse(String(line)) as { readonly url: string }
      const page = await (await fetch(url)).text()
      const [script] = /\/page\/[\w.-]+\.js/.exec(page) ?? []
      const answer = await fetch(`${url}${script}`)
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"])
      expect((await answer.text()).length).toBeGreaterThan(10_000)
    } finally {
      child.kill("SIGKILL")
    }
  })

  it("lets a program hold a server, be its client, use the log engine and read the schemas", () => {
    const run = program(
      "use.mjs",
      `import { Client } from "echs/client"
import { Runelog } from "echs/runelog"
import { SettingInvalid, startServer } from "echs/server"
import operations from "echs/schemas/operations.json" with { type: "json" }

await startServer({ dataDirectory: "data", port: 70_000 }).then(
  () => process.exit(3),
  (error) => error instanceof SettingInvalid || process.exit(4)
)
const server = await startServer({ dataDirectory: "data", port: 0, writeLine: () => {} })
const client = await Client.connect({ endpoint: server })
const { conversation_id } = await client.call("conversation.create", { model: "scripted/echo" })
await client.call("message.post", { conversation_id, content: "hello" })
for await (const item of client.tail(conversation_id)) if ("rune" in item && item.rune.kind === "turn.completed") break
await client.close()
await server.close()
const log = await Runelog.open({ directory: "log" })
await log.append("conv_1", 1, [{ body: "hello" }])
await log.close()
process.stdout.write(JSON.stringify(Object.keys(operations).length))
`
    )
    expect(run).toMatchObject({ status: 0, stdout: String(operationNames.length), stderr: "" })
  })

  it("has types for all of that", () => {
    writeFileSync(
      join(folder, "use.mts"),
      `import { Client } from "echs/client"
import { Runelog } from "echs/runelog"
import { type RunningServer, startServer } from "echs/server"

const server: RunningServer = await startServer({ dataDirectory: "data", port: 0 })
const client = await Client.connect({ endpoint: server })
const { items } = await client.call("conversation.list", {})
const titles: ReadonlyArray<string | null> = items.map((item) => item.title)
const { plan } = await client.call("conversation.get", { conversation_id: "conv_1" })
export const known: { titles: typeof titles; goal: string | undefined; log: typeof Runelog } = {
  titles,
  goal: plan?.goal,
  log: Runelog
}
// @ts-expect-error there is no such field
items[0]?.nothing
`
    )
    symlinkSync(join(top, "node_modules", "@types"), join(folder, "node_modules", "@types"), "dir")
    const compiler = join(top, "node_modules", "typescript", "bin", "tsc")
    const options = [
      "--noEmit",
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2024",
      "--skipLibCheck",
      "--types",
      "node"
    ]
    const run = spawnSync(process.execPath, [compiler, ...options, "use.mts"], { cwd: folder, encoding: "utf8" })
    expect(run.stdout + run.stderr).toBe("")
  })
})
