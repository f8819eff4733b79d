// Goal: one search, whoever does it: ripgrep and our own give the same lines in the same form, respect the same files, stop
// at the same limits and refuse the same patterns. Method: the same real tree for both; ripgrep runs as in the server,
// through the process port and the sandbox.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import { beforeEach, describe, expect, it } from "vitest"
import { builtinLimits } from "#src/tool/builtin/BuiltinLimits.ts"
import { grepTool } from "#src/tool/builtin/search/Grep.ts"
import { plainSearch } from "#src/tool/builtin/search/Plain.ts"
import type { SearchPort } from "#src/tool/builtin/search/Port.ts"
import { ripgrep } from "#src/tool/builtin/search/Ripgrep.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import type { Input } from "#src/tool/Tool.ts"
import { count, reportCount } from "../support/counts.ts"
import { parts, requirePart } from "../support/require.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { useProcesses } from "../support/tool/processes.ts"
import { usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const processes = useProcesses()

const put = (path: string, text: string | Buffer): void => {
  const file = join(place.workspace, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

beforeEach(() => {
  writeFileSync(join(place.outside, "secret.txt"), "needle outside\n")
  put("b.txt", "first\nneedle one\nthird\nNEEDLE two\nfifth\nsixth\nseventh\nneedle three\n")
  put("a.ts", "const needle = 1\n")
  put("src/deep/c.ts", "a (needle) b\r\nother\r\n")
  put("src/deep/d.js", "needle")
  put("src/.hidden", "needle hidden\n")
  put(".gitignore", "ignored/\n*.log\n!keep.log\n/only-top.txt\n")
  put("ignored/x.txt", "needle ignored\n")
  put("x.log", "needle log\n")
  put("keep.log", "needle kept\n")
  put("only-top.txt", "needle top\n")
  put("src/only-top.txt", "needle below\n")
  put("src/.gitignore", "skipped.txt\n")
  put("src/skipped.txt", "needle skipped\n")
  put("skipped.txt", "needle not skipped\n")
  put("binary", Buffer.from("needle\0needle\n"))
  put(".git/config", "needle git\n")
  symlinkSync(place.outside, join(place.workspace, "out"))
  symlinkSync("../secret.txt", join(place.workspace, "secret-link"))
})

/** Without the search that takes over where it cannot start. */
const byRipgrep = (): SearchPort => ({
  name: "ripgrep",
  search: (request) =>
    Effect.catchTags(ripgrep(processes)(request), { ProcessNotStarted: Effect.die, SandboxRefused: Effect.die })
})

const searches: ReadonlyArray<readonly [string, () => SearchPort]> = [
  ["ripgrep", () => byRipgrep()],
  ["our own search", () => plainSearch]
]

describe.each(searches)("%s", (name, search) => {
  beforeEach((context) => {
    if (name === "ripgrep") requirePart(context, parts.ripgrep)
  })

  const grep = (input: Input, signal?: AbortSignal) =>
    place.run(
      grepTool({ door: workspaceAccess({ ownDirectories: [place.data] }), search: search() }),
      input,
      signal === undefined ? {} : { signal }
    )

  it("finds lines by path and number, and leaves out what git ignores, links, binaries and git itself", async () => {
    expect((await grep({ pattern: "needle" })).output?.split("\n")).toEqual([
      "a.ts:1:const needle = 1",
      "b.txt:2:needle one",
      "b.txt:8:needle three",
      "keep.log:1:needle kept",
      "skipped.txt:1:needle not skipped",
      "src/.hidden:1:needle hidden",
      "src/deep/c.ts:1:a (needle) b",
      "src/deep/d.js:1:needle",
      "src/only-top.txt:1:needle below"
    ])
  })

  it.each<readonly [string, Input, string]>([
    [
      "in one directory",
      { pattern: "needle", path: "src/deep" },
      "src/deep/c.ts:1:a (needle) b\nsrc/deep/d.js:1:needle"
    ],
    ["in one file", { pattern: "needle", path: "./src/../a.ts" }, "a.ts:1:const needle = 1"],
    ["by glob", { pattern: "needle", glob: "*.ts" }, "a.ts:1:const needle = 1\nsrc/deep/c.ts:1:a (needle) b"],
    [
      "by glob with a path",
      { pattern: "needle", glob: "src/**/*.{ts,js}" },
      "src/deep/c.ts:1:a (needle) b\nsrc/deep/d.js:1:needle"
    ],
    ["as plain text", { pattern: "(needle)", plain_text: true }, "src/deep/c.ts:1:a (needle) b"],
    ["as an expression", { pattern: "^needle (one|two)$" }, "b.txt:2:needle one"],
    [
      "whatever the case",
      { pattern: "^needle t", ignore_case: true, path: "b.txt" },
      "b.txt:4:NEEDLE two\nb.txt:8:needle three"
    ],
    ["whatever the case, said in the pattern", { pattern: "(?i)NEEDLE tw", path: "b.txt" }, "b.txt:4:NEEDLE two"],
    [
      "at the end of lines that end with CR LF",
      { pattern: "b\\r?$", path: "src/deep/c.ts" },
      "src/deep/c.ts:1:a (needle) b"
    ],
    [
      "with lines around them",
      { pattern: "^(needle|NEEDLE)", path: "b.txt", context: 1 },
      "b.txt-1-first\nb.txt:2:needle one\nb.txt-3-third\nb.txt:4:NEEDLE two\nb.txt-5-fifth\n--\nb.txt-7-seventh\nb.txt:8:needle three"
    ],
    ["as files only", { pattern: "needle", files_only: true, glob: "{a.ts,b.txt}" }, "a.ts: 1\nb.txt: 2"],
    ["also in what is ignored", { pattern: "needle ignored", include_ignored: true }, "ignored/x.txt:1:needle ignored"],
    [
      "up to a limit",
      { pattern: "needle", limit: 2 },
      "a.ts:1:const needle = 1\nb.txt:2:needle one\n… more than 2 matches; narrow the search …"
    ],
    ["nowhere", { pattern: "haystack" }, "no matches"],
    ["that begin with a dash", { pattern: "-x" }, "no matches"]
  ])("finds lines %s", async (_name, input, expected) => {
    expect(await grep(input)).toEqual({ status: "success", output: expected })
  })

  it.each([["a("], ["(?=a)b"], ["(a)\\1"], ["[z-a]"]])(
    "refuses a pattern that cannot be understood: %s",
    async (pattern) => {
      const outcome = await grep({ pattern })
      expect(outcome).toMatchObject({ status: "error", error: { code: "search_failed" } })
      expect(outcome.error?.message).toMatch(/regex parse error/)
    }
  )

  it.each([
    ["../secret.txt", "sandbox_violation", "outside_workspace"],
    ["secret-link", "sandbox_violation", "outside_workspace"],
    ["out", "sandbox_violation", "outside_workspace"],
    ["none", "error", "file_error"]
  ])("does not leave the workspace: %s", async (path, status, code) => {
    expect(await grep({ pattern: "needle", path })).toMatchObject({ status, error: { code } })
  })

  it("cuts long lines, and finds what is in them", async () => {
    put("long.txt", `${"x".repeat(3_000)}pin${"y".repeat(1_000_000)}\n`)
    const { output } = await grep({ pattern: "pin", path: "long.txt" })
    expect(output?.startsWith("long.txt:1:xxx")).toBe(true)
    expect(output?.length).toBeLessThan(builtinLimits.searchLineCharsMax + 60)
  })

  it("does not look into what belongs to ECHS", async () => {
    put("state/token", "needle token\n")
    const door = workspaceAccess({ ownDirectories: [join(place.workspace, "state")] })
    const outcome = await place.run(grepTool({ door, search: search() }), { pattern: "token", include_ignored: true })
    expect(outcome).toEqual({ status: "success", output: "no matches" })
  })

  it("does not begin when nobody waits", async () => {
    await expect(grep({ pattern: "needle" }, AbortSignal.abort(new Error("enough")))).rejects.toThrow("interrupted")
  })
})

it("both find the same for patterns of all kinds", async (context) => {
  requirePart(context, parts.ripgrep)
  const rounds = count("patterns searched by both", { fast: 12, soak: 2_000 })
  const random = randomFrom(seedFor("patterns"))
  const oneOf = (choices: ReadonlyArray<string>): string => choices[Math.floor(random() * choices.length)]!
  const letters = (length: number): string =>
    Array.from({ length }, () => oneOf(["a", "b", "c", " ", "1", "_", "."])).join("")
  for (let file = 0; file < 12; file += 1)
    put(`random/${oneOf(["x", "y"])}/${file}.txt`, `${Array.from({ length: 30 }, () => letters(8)).join("\n")}\n`)
  const atoms = ["a", "b", "[a-c]", "[^ab]", "\\d", "\\w", "\\s", ".", "(a|bc)", "(?:b)", "\\."]
  const someAtom = (): string => `${oneOf(atoms)}${oneOf(["", "", "*", "+", "?", "{1,2}"])}`
  for (let round = 0; round < rounds; round += 1) {
    const middle = Array.from({ length: 1 + Math.floor(random() * 4) }, someAtom).join(oneOf(["", "", "\\b"]))
    const pattern = `${oneOf(["", "", "^", "\\b"])}${middle}${oneOf(["", "", "$", "\\b"])}`
    const input = { pattern, path: "random", limit: 500, context: round % 3, ignore_case: round % 2 === 0 }
    const door = workspaceAccess({})
    const [theirs, ours] = [byRipgrep(), plainSearch].map((search) => place.run(grepTool({ door, search }), input))
    expect(await ours, pattern).toEqual(await theirs)
  }
  reportCount("patterns for which both searches find the same", rounds)
})

it("a pattern that takes for ever holds up nobody else", async () => {
  put("evil.txt", `${"a".repeat(40)}!\n`)
  const controller = new AbortController()
  const tool = grepTool({ door: workspaceAccess({}), search: plainSearch })
  const running = place.run(tool, { pattern: "^(a+)+$", path: "evil.txt" }, { signal: controller.signal })
  const caught = expect(running).rejects.toThrow("interrupted")
  // Other work goes on meanwhile.
  expect(await place.run(tool, { pattern: "needle", path: "a.ts" })).toMatchObject({ status: "success" })
  controller.abort()
  await caught
})

it("the policy is told that a search reads all below its path", () => {
  const { access } = grepTool({ door: workspaceAccess({}), search: plainSearch })
  expect(access({ pattern: "x" })).toEqual({ reads: ["."], below: true })
  expect(access({ pattern: "x", path: "src" })).toEqual({ reads: ["src"], below: true })
})
