// Goal: the demo shows what it says, in time, leaves nothing behind, and can fail. Method: the real command as a process
// for the whole sequence; servers that misbehave in place of the real one for the rest.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { compare } from "#src/cli/demo/Compare.ts"
import { make as makeDemo } from "#src/cli/verbs/demo.ts"
import { recordingTerminal } from "../support/terminal.ts"

const launcher = fileURLToPath(new URL("../../src/cli/echs.js", import.meta.url))
const misbehaving = (script: string): ReadonlyArray<string> => [process.execPath, "-e", script, "--"]

const runDemo = async (
  command: ReadonlyArray<string>,
  options: { readonly args?: ReadonlyArray<string>; readonly interruptAfterMs?: number } = {}
) => {
  const terminal = recordingTerminal()
  const demo = makeDemo({
    command,
    variables: process.env,
    version: "0",
    localEndpoint: async () => undefined,
    prepareDemo: async (workspace) => ({ goal: "nothing", workspace }),
    verify: async () => "missing"
  })
  if (options.interruptAfterMs !== undefined) setTimeout(terminal.interrupt, options.interruptAfterMs)
  const code = await demo.run(options.args ?? ["--json"], terminal)
  return { code, output: terminal.output(), complaints: terminal.complaints() }
}

describe("the demo as a process", () => {
  let temporary = ""
  beforeAll(() => {
    temporary = mkdtempSync(join(tmpdir(), "echs-demo-test-"))
  })
  afterAll(() => rmSync(temporary, { recursive: true, force: true }))

  const echsIn = (environment: NodeJS.ProcessEnv, args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [launcher, "demo", ...args], {
      encoding: "utf8",
      env: { ...process.env, TMPDIR: temporary, OPENAI_API_KEY: "sk-not-to-be-used", ECHS_PORT: "1", ...environment }
    })
  const echs = (...args: ReadonlyArray<string>) => echsIn({}, args)

  it("shows the sequence, without color in a pipe, and cleans up", () => {
    const run = echs()
    expect(run.status, run.stderr + run.stdout).toBe(0)
    const places = [
      "a server listens on",
      "session.created",
      "plan.goal_received",
      "starters, mains, starters+mains → menu",
      "so the demo allows the plan",
      "plan.approved",
      "in the middle of a sentence",
      "a new server",
      "write_file",
      "plan.task_completed",
      "tool.approval_requested",
      "so the demo allows bash",
      "tool.approved",
      "retry · The heading says Manu",
      "task_added fix-1-1",
      "3 of 3 checks passed",
      "session.closed",
      "the goal is met, by itself, after the kill: 3 checks run by the server",
      "0 shown runes lost, 0 repeated",
      "the conversation is archived",
      "every byte of the log read back: 0 problems",
      "Nothing that was acknowledged is lost."
    ].map((text) => [text, run.stdout.indexOf(text)] as const)
    expect(places.filter(([, at]) => at < 0)).toEqual([])
    expect(places.toSorted(([, left], [, right]) => left - right)).toEqual(places)
    expect(run.stdout).not.toContain("\u001b")
    expect(run.stderr).toBe("")
    expect(readdirSync(temporary).filter((name) => name.startsWith("echs-demo-"))).toEqual([])
  })

  it("says the same as JSON and nothing else", () => {
    const run = echs("--json")
    expect(run.status, run.stderr).toBe(0)
    const report = JSON.parse(run.stdout)
    expect(report).toMatchObject({
      survived: true,
      outcome: "plan.goal_met",
      lost: 0,
      repeated: 0,
      problems: 0,
      archived: true,
      // The plan, whose evidence runs commands, and the command of an agent.
      approvals: 2
    })
    expect(report.runes_before_kill).toBeGreaterThan(20)
    expect(report.runes).toBeGreaterThan(report.runes_before_kill)
  })

  it("ends as well where there is no sandbox, and says that it approves the plan itself", () => {
    const programs = join(temporary, "programs")
    mkdirSync(programs)
    for (const name of ["bash", "sh", "cat", "head", "grep"]) symlinkSync(join("/bin", name), join(programs, name))
    const run = echsIn({ PATH: programs }, [])
    expect(run.status, run.stderr + run.stdout).toBe(0)
    for (const said of [
      "no sandbox holds them",
      "so the demo allows the plan",
      "Nothing that was acknowledged is lost."
    ])
      expect(run.stdout).toContain(said)
    expect(JSON.parse(echsIn({ PATH: programs }, ["--json"]).stdout)).toMatchObject({ survived: true, approvals: 2 })
  })
})

describe("what the demo showed", () => {
  const rune = (event_id: number, kind: string, content = "") => ({ event_id, kind, payload: { content } }) as never
  const seen = [rune(1, "turn.started"), rune(2, "turn.assistant_delta", "a"), rune(3, "turn.assistant_final", "ab")]
  const gap = { from: 2, to: 2, reason: "thinned" }

  it("is there when the pieces of a text are gone and the log says so", () => {
    expect(compare(seen, { runes: seen, gaps: [] })).toEqual({ lost: 0, repeated: 0 })
    expect(compare(seen, { runes: [seen[0]!, seen[2]!], gaps: [gap] })).toEqual({ lost: 0, repeated: 0 })
  })

  it("is lost when it is gone without a word, is no piece of a text, or is another", () => {
    expect(compare(seen, { runes: [seen[0]!, seen[2]!], gaps: [] })).toEqual({ lost: 1, repeated: 0 })
    expect(compare(seen, { runes: [seen[0]!], gaps: [{ ...gap, to: 3 }] })).toEqual({ lost: 1, repeated: 0 })
    const other = rune(3, "turn.assistant_final", "other")
    expect(compare(seen, { runes: [seen[0]!, other], gaps: [gap] })).toEqual({ lost: 1, repeated: 0 })
    expect(compare([...seen, seen[0]!], { runes: seen, gaps: [] })).toEqual({ lost: 0, repeated: 1 })
  })
})

describe("a demo that cannot work", () => {
  it.each([
    [
      "ends by itself",
      "console.error('the disk is on fire'); process.exit(4)",
      /ended by itself, code 4: the disk is on fire/
    ],
    ["babbles", "console.log('hello'); setInterval(() => {}, 1000)", /the server said "hello"/],
    [
      "is nowhere to be found",
      'console.log(\'{"url":"http://127.0.0.1:1"}\'); setInterval(() => {}, 1000)',
      /no server is known/
    ]
  ])("says so when the server %s", async (_, script, message) => {
    const { code, output, complaints } = await runDemo(misbehaving(script))
    expect(code).toBe(1)
    expect(output).toBe("")
    expect(complaints).toMatch(message)
  })

  it("says so when there is no such program", async () => {
    expect((await runDemo(["/nowhere/echs"])).complaints).toMatch(/could not be started/)
  })

  it("ends in good order when interrupted", async () => {
    // A place of its own: other files run demos at the same time.
    const place = mkdtempSync(join(tmpdir(), "echs-interrupted-"))
    vi.stubEnv("TMPDIR", place)
    try {
      const run = await runDemo(misbehaving("setInterval(() => {}, 1000)"), { interruptAfterMs: 200 })
      expect(run).toMatchObject({ code: 130, output: "" })
      expect(readdirSync(place)).toEqual([])
    } finally {
      vi.unstubAllEnvs()
      rmSync(place, { recursive: true, force: true })
    }
  })

  it("refuses an option it does not have", async () => {
    const { code, complaints } = await runDemo([], { args: ["--fast"] })
    expect(code).toBe(2)
    expect(complaints).toContain("--fast")
  })
})
