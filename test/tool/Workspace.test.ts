// Goal: no path and no link leads a tool out of the workspace or into what is protected, whatever is swapped meanwhile.
// Method: real files with a secret beside the workspace, every kind of link, and races in which a link takes the place of
// a directory or a file again and again while tools write.
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import type { Means } from "#src/tool/builtin/Workspace.ts"
import type { Input, Tool } from "#src/tool/Tool.ts"
import { count, reportCount } from "../support/counts.ts"
import { parts, requirePart } from "../support/require.ts"
import { searchPath, useProcesses } from "../support/tool/processes.ts"
import { runTool } from "../support/tool/runTool.ts"
import { usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const processes = useProcesses()
const inside = (...parts: ReadonlyArray<string>): string => join(place.workspace, ...parts)
const outside = (...parts: ReadonlyArray<string>): string => join(place.outside, ...parts)

/** How paths are held in the tests that run now. */
let means: Means = "handles"
const toolsWith = (own: string) =>
  builtinTools({ ownDirectories: [own], blobs: undefined, processes, path: searchPath, home: place.outside, means })
    .tools
const toolNamed = (name: string): Tool => toolsWith(place.data).find((tool) => tool.name === name)!
const run = (name: string, input: Input) => place.run(toolNamed(name), input)

/** Every tool that takes a path, with arguments that would do something. */
const attempts = (path: string): ReadonlyArray<readonly [string, Input]> => [
  ["read_file", { path }],
  ["list_files", { path }],
  ["write_file", { path, content: "broken" }],
  ["edit_file", { path, old_text: "kept", new_text: "broken" }],
  ["apply_patch", { patch: `*** Begin Patch\n*** Update File: ${path}\n@@\n-kept\n+broken\n*** End Patch` }],
  ["grep", { pattern: "kept", path }]
]

beforeEach(() => {
  writeFileSync(outside("secret"), "kept")
  mkdirSync(outside("far", "away"), { recursive: true })
  writeFileSync(outside("far", "away", "secret"), "kept")
})

const isKept = (): boolean =>
  readFileSync(outside("secret"), "utf8") === "kept" &&
  readFileSync(outside("far", "away", "secret"), "utf8") === "kept" &&
  readdirSync(outside("far", "away")).length === 1

describe.each<[Means]>([["handles"], ["looking"]])("with %s", (chosen) => {
  beforeEach(() => {
    means = chosen
  })
  afterEach(() => {
    means = "handles"
  })

  describe("a path out of the workspace", () => {
    it.each([
      ["up", () => "../secret"],
      ["up and down again", () => "../far/away/secret"],
      ["up from below", () => "a/b/../../../secret"],
      ["absolute", () => outside("secret")],
      ["absolute to the root", () => "/etc/passwd"],
      ["through a link to a file", () => "link-file"],
      ["through a link to a directory", () => "link-directory/secret"],
      ["through a relative link", () => "link-relative/secret"],
      ["through a link to a link", () => "link-twice/secret"],
      ["through a dangling link", () => "link-dangling"],
      ["into a dangling directory", () => "link-dangling/new"],
      ["through a link inside a directory", () => "a/b/up/secret"],
      ["beside the workspace, with its name as a prefix", () => "../workspace-other/x"]
    ])("is refused: %s", async (_name, pathOf) => {
      mkdirSync(inside("a", "b"), { recursive: true })
      symlinkSync(outside("secret"), inside("link-file"))
      symlinkSync(outside("far", "away"), inside("link-directory"))
      symlinkSync("../far/away", inside("link-relative"))
      symlinkSync("link-directory", inside("link-twice"))
      symlinkSync(outside("not-there"), inside("link-dangling"))
      symlinkSync("../../..", inside("a", "b", "up"))
      for (const [name, input] of attempts(pathOf())) {
        expect(await run(name, input), name).toMatchObject({
          status: "sandbox_violation",
          error: { code: "outside_workspace" }
        })
      }
      expect(isKept()).toBe(true)
      expect(existsSync(outside("not-there"))).toBe(false)
    })

    it.each([["a\0b"], [""]])("that is no path is refused: %j", async (path) => {
      for (const [name, input] of attempts(path)) {
        const code = name === "apply_patch" && path === "" ? "patch_malformed" : "invalid_arguments"
        expect(await run(name, input), name).toMatchObject({ status: "error", error: { code } })
      }
    })

    it("with links that go round in circles ends", async () => {
      symlinkSync("b", inside("a"))
      symlinkSync("a", inside("b"))
      for (const [name, input] of attempts("a/x"))
        expect(await run(name, input), name).toMatchObject({ status: "error", error: { code: "file_error" } })
    })

    it("with parts without end is refused", async () => {
      for (const [name, input] of attempts(`${"a/".repeat(5_000)}x`))
        expect(await run(name, input), name).toMatchObject({ status: "error", error: { code: "file_error" } })
    })
  })

  describe("a path inside the workspace", () => {
    it("may be absolute, and may go through links that stay inside", async () => {
      mkdirSync(inside("real", "deep"), { recursive: true })
      symlinkSync("real/deep", inside("short"))
      symlinkSync(realpathSync(inside("real")), inside("absolute"))
      symlinkSync("../../top.txt", inside("real", "deep", "up.txt"))
      expect(await run("write_file", { path: "short/a.txt", content: "one" })).toMatchObject({
        status: "success",
        output: "real/deep/a.txt: 3 bytes written, a new file"
      })
      expect(await run("read_file", { path: "absolute/deep/a.txt" })).toMatchObject({ output: "one" })
      expect(await run("read_file", { path: inside("short", "a.txt") })).toMatchObject({ output: "one" })
      expect(await run("write_file", { path: "real/deep/up.txt", content: "top" })).toMatchObject({ status: "success" })
      // The link was followed, not replaced.
      expect(readFileSync(inside("top.txt"), "utf8")).toBe("top")
      expect(readlinkSync(inside("real", "deep", "up.txt"))).toBe("../../top.txt")
    })

    it("of a workspace that is itself a link works", async () => {
      symlinkSync(place.workspace, outside("by-link"))
      const context = { ...place.context(), workspace: outside("by-link") }
      const path = outside("by-link", "a.txt")
      expect(await runTool(toolNamed("write_file"), { path, content: "x" }, context)).toMatchObject({
        status: "success"
      })
      expect(readFileSync(inside("a.txt"), "utf8")).toBe("x")
    })

    it.each([[undefined], ["not there"], ["secret"]])("needs a workspace: %j", async (name) => {
      const workspace = name === undefined ? undefined : outside(name)
      for (const [tool, input] of attempts("a"))
        expect(await runTool(toolNamed(tool), input, { ...place.context(), workspace }), tool).toMatchObject({
          status: "error",
          error: { code: "no_workspace" }
        })
    })
  })

  describe("a protected path", () => {
    it.each([
      [".git/hooks/pre-commit"],
      [".git/config"],
      [".GIT/config"],
      ["sub/.git/hooks/x"],
      [".git"],
      ["linked/config"]
    ])("of git is not written: %s", async (path) => {
      mkdirSync(inside(".git", "hooks"), { recursive: true })
      writeFileSync(inside(".git", "config"), "kept")
      symlinkSync(".git", inside("linked"))
      expect(await run("write_file", { path, content: "x" })).toMatchObject({
        status: "sandbox_violation",
        error: { code: "protected_path" }
      })
      expect(readFileSync(inside(".git", "config"), "utf8")).toBe("kept")
      expect(existsSync(inside("sub"))).toBe(path.startsWith("sub"))
      expect(existsSync(inside("sub", ".git"))).toBe(false)
    })

    it("of ECHS is neither read nor written nor listed", async () => {
      const own = inside("state")
      mkdirSync(own)
      writeFileSync(join(own, "token"), "kept")
      symlinkSync("state", inside("by-link"))
      const tools = toolsWith(own)
      for (const path of ["state/token", "by-link/token", "state"])
        for (const [name, input] of attempts(path)) {
          const outcome = await place.run(tools.find((tool) => tool.name === name)!, input)
          expect(outcome, `${name} ${path}`).toMatchObject({
            status: "sandbox_violation",
            error: { code: "protected_path" }
          })
        }
      const listed = await place.run(tools.find((tool) => tool.name === "list_files")!, { recursive: true })
      expect(listed.output).toBe("by-link -> state")
      expect(readFileSync(join(own, "token"), "utf8")).toBe("kept")
    })
  })
})

const rounds = count("swaps of a link under a file tool", { fast: 200, soak: 20_000 })

interface Disguise {
  /** What changes between a link to the outside and something harmless. */
  readonly path: string
  readonly link: string
  readonly make: () => void
}

/** Works again and again until there were enough swaps; other threads work on the files while this one swaps. */
const swapping = async ({ link, make, path }: Disguise, work: () => Promise<void>): Promise<void> => {
  let swaps = 0
  let isOver = false
  const swapper = (): void => {
    if (isOver) return
    try {
      rmSync(path, { recursive: true, force: true })
      if (swaps % 2 === 0) symlinkSync(link, path)
      else make()
    } catch {
      // The tool put something there first: the next swap takes it away again.
    }
    swaps += 1
    // At every pace: some swaps come between two steps of a write, some writes between two swaps.
    setTimeout(swapper, [0, 0, 1, 4, 12][swaps % 5])
  }
  setImmediate(swapper)
  while (swaps < rounds) await work()
  isOver = true
  reportCount("swaps of a link under a file tool, none with an effect outside", swaps)
}

describe("a race", () => {
  it(`between a write and a link in the place of its directory never ends outside: ${rounds} swaps`, async () => {
    const disguise = { path: inside("d"), link: outside("far", "away"), make: () => mkdirSync(inside("d")) }
    const seen: Record<string, number> = {}
    await swapping(disguise, async () => {
      const { error, status } = await run("write_file", { path: "d/secret", content: "broken" })
      const key = error?.code ?? status
      seen[key] = (seen[key] ?? 0) + 1
    })
    expect(isKept()).toBe(true)
    expect(
      Object.keys(seen).every((key) => ["success", "outside_workspace", "file_error", "file_changed"].includes(key))
    ).toBe(true)
    expect(seen["success"] ?? 0).toBeGreaterThan(0)
    expect(seen["outside_workspace"] ?? 0).toBeGreaterThan(0)
  })

  it(`between a write and a link in the place of the file never ends outside: ${rounds} swaps`, async () => {
    const disguise = { path: inside("f"), link: outside("secret"), make: () => writeFileSync(inside("f"), "mine") }
    await swapping(disguise, async () => {
      await run("write_file", { path: "f", content: "broken" })
    })
    expect(isKept()).toBe(true)
    rmSync(inside("f"), { force: true })
    // Nothing unfinished stays behind.
    expect(readdirSync(place.workspace)).toEqual([])
  })

  it(`between a reading and a link never shows what is outside: ${rounds} swaps`, async () => {
    const make = (): void => {
      mkdirSync(inside("d"))
      writeFileSync(inside("d", "secret"), "mine")
    }
    const disguise = { path: inside("d"), link: outside("far", "away"), make }
    const outputs = new Set<string | undefined>()
    await swapping(disguise, async () => {
      outputs.add((await run("read_file", { path: "d/secret" })).output)
      outputs.add((await run("list_files", { path: "d" })).output)
    })
    outputs.delete(undefined)
    expect([...outputs].filter((output) => !["mine", "", "secret", "(empty)"].includes(output ?? ""))).toEqual([])
    expect(outputs.has("mine")).toBe(true)
  })
})

describe("a write", () => {
  it("keeps the mode of what was there, and breaks no link that leads elsewhere", async () => {
    writeFileSync(inside("script.sh"), "one", { mode: 0o755 })
    await run("write_file", { path: "script.sh", content: "two" })
    expect(statSync(inside("script.sh")).mode & 0o777).toBe(0o755)
    expect(lstatSync(inside("script.sh")).isFile()).toBe(true)
  })

  it.each([
    ["d", "is a directory"],
    ["f/x", "f is no directory"]
  ])("in the place of something else is an error: %s", async (path, message) => {
    mkdirSync(inside("d"))
    writeFileSync(inside("f"), "")
    const outcome = await run("write_file", { path, content: "x" })
    expect(outcome).toMatchObject({ status: "error", error: { code: "file_error" } })
    expect(outcome.error?.message).toContain(message)
  })
})

describe("what root writes", () => {
  it("belongs to the owner of the directory it is in", async (context) => {
    requirePart(context, parts.root)
    chownSync(place.workspace, 12_345, 12_345)
    await run("write_file", { path: "new/deep/a.txt", content: "one" })
    for (const path of ["new", "new/deep", "new/deep/a.txt"]) expect(statSync(inside(path)).uid, path).toBe(12_345)
    chownSync(inside("new", "deep", "a.txt"), 0, 0)
    await run("write_file", { path: "new/deep/a.txt", content: "two" })
    expect(statSync(inside("new", "deep", "a.txt")).uid).toBe(0)
  })
})
