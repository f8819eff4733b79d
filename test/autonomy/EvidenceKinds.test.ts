// Goal: every kind of evidence passes when what it says is so, and fails when it is not, with the reason. Method: real
// programs, a real server, real files.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkEvidence } from "#src/autonomy/Evidence.ts"
import type { Place } from "#src/autonomy/evidence/Place.ts"
import { judgeOutput } from "#src/autonomy/Report.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import type { FileChange } from "#src/rune/kinds/plan.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { placeIn, useWorkspaces } from "../support/autonomy/workplace.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap, makeGround } from "../support/sandbox.ts"
import { Story } from "../support/story.ts"

const workspaces = useWorkspaces()
const tools = { runner: new TestRunner(), look: workspaceLook, nowMs: () => 0, node: process.execPath }

const check = async (spec: EvidenceSpec, more: Partial<Place> = {}) => {
  const workspace = more.workspace ?? workspaces.make()
  const { state } = new Story().create({ policy: { mode: "full_access" }, workspace })
  const [found] = await checkEvidence(tools, [{ spec }], { ...placeIn(workspace), state, ...more })
  return found!
}

describe("tests", () => {
  it.each([
    ["node --test", "✔ a\nℹ tests 3\nℹ suites 0\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\n", 3, true],
    ["node --test that failed", "ℹ tests 3\nℹ pass 2\nℹ fail 1\n", 3, false],
    ["unittest", "...\n----\nRan 3 tests in 0.001s\n\nOK\n", 3, true],
    ["unittest that failed", "F..\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n", 3, false],
    ["unittest without a test", "\nRan 0 tests in 0.000s\n\nOK\n", 0, false],
    ["pytest", "=== 4 passed, 1 skipped in 0.1s ===\n", 4, true],
    ["pytest that failed", "=== 1 failed, 4 passed in 0.1s ===\n", 5, false],
    ["vitest", " Tests  7 passed (7)\n", 7, true],
    ["TAP", "1..2\nok 1\nok 2\n", 2, true],
    ["nothing", "all is well\n", 0, false]
  ])("of %s are counted", (_name, output, tests, passed) => {
    expect(judgeOutput(output)).toMatchObject({ tests, passed })
  })

  it("are counted from a real run", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "a.test.js"), "require('node:test')('a', () => {})\n")
    const spec: EvidenceSpec = { type: "tests", command: [process.execPath, "--test", "a.test.js"] }
    expect(await check(spec, { workspace, directory: workspace })).toMatchObject({ passed: true, exit_code: 0 })
    expect(await check({ ...spec, min_tests: 2 }, { workspace, directory: workspace })).toMatchObject({ passed: false })
    expect(await check({ type: "tests", command: ["true"] })).toMatchObject({ passed: false })
  })
})

describe("an HTTP answer", () => {
  const server = (port: number, body: string) =>
    `require("node:http").createServer((q, r) => r.end(${JSON.stringify(body)})).listen(${port}, "127.0.0.1")`

  it("comes from the server that is started for it, with its status and its text", async () => {
    const port = 20_000 + (process.pid % 20_000)
    const spec = {
      type: "http",
      start: [process.execPath, "-e", server(port, "hello there")],
      url: `http://127.0.0.1:${port}/`
    } as const
    expect(await check({ ...spec, includes: "hello" })).toMatchObject({ passed: true })
    expect(await check({ ...spec, includes: "goodbye" })).toMatchObject({
      passed: false,
      detail: expect.stringMatching(/without it: hello/)
    })
    expect(await check({ ...spec, status: 404 })).toMatchObject({
      passed: false,
      detail: expect.stringMatching(/answered 200/)
    })
  })
})

describe("a JSON value", () => {
  it("is found by its pointer, in a file or in what a command prints", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "p.json"), '{"a":{"b/c":[1,{"d":2}]}}')
    const at = { workspace, directory: workspace }
    const json = (more: object): EvidenceSpec =>
      ({ type: "json", pointer: "/a/b~1c/1/d", equals: 2, ...more }) as EvidenceSpec
    expect(await check(json({ path: "p.json" }), at)).toMatchObject({ passed: true })
    expect(await check(json({ path: "p.json", equals: 3 }), at)).toMatchObject({ passed: false, detail: "it is 2" })
    expect(await check(json({ path: "p.json", pointer: "/a/x" }), at)).toMatchObject({
      passed: false,
      detail: "nothing there"
    })
    expect(await check(json({ path: "p.json", pointer: "/constructor" }), at)).toMatchObject({ passed: false })
    expect(await check(json({ command: ["cat", "p.json"] }), at)).toMatchObject({ passed: true })
    expect(await check(json({ command: ["echo", "no"] }), at)).toMatchObject({
      passed: false,
      detail: "it is not JSON"
    })
  })
})

describe("a number that may only fall", () => {
  const spec: EvidenceSpec = {
    type: "delta",
    name: "problems",
    command: ["echo", "12 files, found 5 problems"],
    after: "found",
    may: "fall"
  }
  it.each([
    [5, "fall", true],
    [6, "fall", true],
    [4, "fall", false],
    [4, "rise", true],
    [6, "rise", false]
  ] as const)("from %i, may %s: %s", async (value, may, passed) => {
    const found = await check({ ...spec, may }, { baseline: () => ({ passed: true, value }) })
    expect(found).toMatchObject({ passed, value: 5, detail: `${value} at the beginning, 5 now` })
  })

  it("has to be printed, and passes alone only before the work", async () => {
    expect(await check({ ...spec, after: "lost" })).toMatchObject({ passed: false })
    expect(await check(spec)).toMatchObject({ passed: false })
    expect(await check(spec, { isBaseline: true })).toMatchObject({ passed: true, value: 5 })
  })
})

describe("limits of what changes", () => {
  const changed: ReadonlyArray<FileChange> = [
    { path: "src/a.ts", added: 3, removed: 1, status: "modified" },
    { path: "test/a.test.ts", added: 1, removed: 0, status: "added" }
  ]
  const changes = async () => changed

  it("count files and lines, and hold changes to where they belong", async () => {
    expect(await check({ type: "diff", max_files: 2, max_lines: 5 }, { changes })).toMatchObject({ passed: true })
    expect(await check({ type: "diff", max_files: 1 }, { changes })).toMatchObject({ passed: false })
    expect(await check({ type: "diff", max_lines: 4 }, { changes })).toMatchObject({ passed: false })
    expect(await check({ type: "diff", only: ["src"] }, { changes })).toMatchObject({
      passed: false,
      detail: "changed besides: test/a.test.ts"
    })
    expect(await check({ type: "diff", max_files: 9 })).toMatchObject({ passed: false })
  })

  it("keep what is protected as it was", async () => {
    expect(await check({ type: "unchanged", paths: ["docs/**"] }, { changes })).toMatchObject({ passed: true })
    expect(await check({ type: "unchanged", paths: ["test"] }, { changes })).toMatchObject({ passed: false })
    expect(await check({ type: "unchanged", paths: ["**/*.ts"] }, { changes })).toMatchObject({ passed: false })
    expect(await check({ type: "unchanged", paths: ["test"] })).toMatchObject({ passed: false })
  })
})

describe("the whole path of the workspace", () => {
  it("in a check means the copy that is checked, and neither its neighbor nor what is only in the workspace", async () => {
    const [workspace, directory] = [workspaces.make(), workspaces.make()]
    writeFileSync(join(directory, "a.txt"), "copy\n")
    const echo = `cat ${workspace}/a.txt; echo ${workspace}-other ${workspace}/node_modules/x`
    const spec = { type: "command", command: ["sh", "-c", echo], expected_exit: 0 } as const
    expect((await check(spec, { workspace, directory })).detail).toBe(
      `copy\n${workspace}-other ${workspace}/node_modules/x`
    )
  })
})

describe("in the real sandbox", () => {
  it("a server is started, asked and ended without a network", async (context) => {
    requirePart(context, bubblewrap)
    const ground = await makeGround()
    try {
      const server = 'require("node:http").createServer((q, r) => r.end("hello")).listen(8099, "127.0.0.1")'
      writeFileSync(join(ground.workspace, "server.cjs"), server)
      const { state } = new Story().create({ policy: { mode: "full_access" }, workspace: ground.workspace })
      const runner = { contained: true, run: ground.processes.run.bind(ground.processes), ruling: tools.runner.ruling }
      const url = "http://127.0.0.1:8099/"
      const asked = (includes: string) => ({
        spec: { type: "http", start: ["node", "server.cjs"], url, includes } as const
      })
      const place = { ...placeIn(ground.workspace), state }
      const found = await checkEvidence({ ...tools, node: "node", runner }, [asked("hello"), asked("goodbye")], place)
      expect(found.map(({ detail, passed }) => [passed, detail])).toEqual([
        [true, `${url} answered 200`],
        [false, `${url} answered without it: hello`]
      ])
    } finally {
      await ground.clear()
    }
  })
})
