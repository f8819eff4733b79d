// Goal: evidence is what the server finds itself: programs that really run, files that are really there, reports that
// really say so. What cannot be checked has not passed. Method: real programs and files.
import { readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkEvidence as checkAsked } from "#src/autonomy/Evidence.ts"
import type { Place } from "#src/autonomy/evidence/Place.ts"
import { evidenceText } from "#src/autonomy/evidence/Spec.ts"
import type { Tools } from "#src/autonomy/GoalContext.ts"
import { judgeReport } from "#src/autonomy/Report.ts"
import { type CommandPlace, commandRuling } from "#src/policy/CommandRules.ts"
import type { PolicyMode } from "#src/policy/PolicyPort.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { placeIn, useWorkspaces } from "../support/autonomy/workplace.ts"
import { Story } from "../support/story.ts"

const workspaces = useWorkspaces()
const command = (...argv: ReadonlyArray<string>): EvidenceSpec => ({ type: "command", command: argv, expected_exit: 0 })

const place = (workspace: string, mode: PolicyMode = "full_access"): Place => ({
  ...placeIn(workspace),
  state: new Story().create({ policy: { mode }, workspace }).state
})

/** The same, in a plan that somebody approved. */
const approvedBy = (approver: string, where: Place): Place => ({
  ...where,
  state: { ...where.state, plan: { approver, tasks: [] } as never }
})

const tools = (more: Partial<Tools> = {}): Tools => ({
  runner: new TestRunner(),
  look: workspaceLook,
  nowMs: () => 0,
  node: process.execPath,
  ...more
})

const checkEvidence = (own: Tools, specs: ReadonlyArray<EvidenceSpec>, where: Place) =>
  checkAsked(
    own,
    specs.map((spec) => ({ spec })),
    where
  )

const check = (workspace: string, ...specs: ReadonlyArray<EvidenceSpec>) =>
  checkEvidence(tools(), specs, place(workspace))

describe("a command", () => {
  it("passes with the exit code it must have, and its output is kept", async () => {
    const workspace = workspaces.make()
    const wanted: EvidenceSpec = { type: "command", command: ["sh", "-c", "echo seen; exit 3"], expected_exit: 3 }
    const [found] = await check(workspace, wanted)
    expect(found).toMatchObject({ passed: true, exit_code: 3, detail: "seen" })
    const [failed] = await check(workspace, command("sh", "-c", "echo no >&2; exit 1"))
    expect(failed).toMatchObject({ passed: false, exit_code: 1, detail: "no" })
    expect(evidenceText(failed!)).toMatch(/^FAILED: command `echo no .*` exits with 0 \(exit 1\)\nno$/)
  })

  it("that cannot be started, is killed, or that nobody runs has not passed", async () => {
    const workspace = workspaces.make()
    const [missing, killed] = await check(workspace, command("no-such-program"), command("sh", "-c", "kill -9 $$"))
    expect(missing?.passed).toBe(false)
    expect(missing?.detail).toMatch(/could not be started/)
    expect(killed).toMatchObject({ passed: false })
    expect(killed?.detail).toMatch(/it was ended \(killed\)/)
    const [nobody] = await checkEvidence(tools({ runner: undefined }), [command("true")], place(workspace))
    expect(nobody).toMatchObject({ passed: false, detail: "this server runs no commands" })
  })

  it("runs once however often it is asked for, may write only where that is allowed, and shows its end", async () => {
    const workspace = workspaces.make()
    const asked: Array<ReadonlyArray<string>> = []
    const real = new TestRunner()
    const runner: Tools["runner"] = {
      contained: true,
      ruling: real.ruling,
      run: (request) => {
        asked.push(request.writable)
        return real.run(request)
      }
    }
    const long = command("sh", "-c", "seq 1 2000")
    const found = await checkEvidence(tools({ runner }), [long, long, long], place(workspace))
    expect(found).toHaveLength(1)
    expect(found[0]?.detail).toMatch(/^….*2000$/s)
    await checkEvidence(tools({ runner }), [long], approvedBy("ann", place(workspace, "read_only")))
    expect(asked).toEqual([[workspace], []])
  })

  it("that a rule of the policy denies is not run, in whatever form it comes, and says which rule it was", async () => {
    const workspace = workspaces.make()
    const runner = new TestRunner()
    runner.rules = [{ decision: "deny", tool: "bash", command: ["touch", "**"], reason: "leave no marks" }]
    const forms = [
      command("touch", "a.txt"),
      command("/usr/bin/touch", "b.txt"),
      command("sh", "-c", "true && touch c.txt"),
      command("bash", "-c", "touch 'd.txt'")
    ]
    const found = await checkEvidence(tools({ runner }), [...forms, command("ls", "-a")], place(workspace))
    expect(found.map(({ passed }) => passed)).toEqual([false, false, false, false, true])
    for (const one of found.slice(0, 4)) {
      expect(one.exit_code).toBeUndefined()
      expect(one.detail).toBe("it was not run, the policy denies it: rule 1 denies bash: leave no marks")
    }
    expect(runner.commands).toEqual(["ls -a"])
    expect(readdirSync(workspace)).toEqual([])
  })

  it.each(["auto", "read_only"] as const)("is run in %s with the yes of a person, and not without", async (mode) => {
    const workspace = workspaces.make()
    const runner = new TestRunner()
    const touch = command("touch", "a.txt")
    const where = place(workspace, mode)
    const reason = mode === "auto" ? "bash changes things, and the policy is auto" : "the policy is read_only"
    for (const unasked of [where, approvedBy("auto_start", where)])
      expect(await checkEvidence(tools({ runner }), [touch], unasked)).toEqual([
        { spec: touch, passed: false, detail: `it was not run, it is asked about, and nobody said yes: ${reason}` }
      ])
    expect(runner.commands).toEqual([])
    expect(readdirSync(workspace)).toEqual([])
    expect(await checkEvidence(tools({ runner }), [touch], approvedBy("ann", where))).toMatchObject([{ passed: true }])
    expect(runner.commands).toEqual(["touch a.txt"])
    runner.rules = [{ decision: "deny", command: ["touch", "**"] }]
    expect(await checkEvidence(tools({ runner }), [touch], approvedBy("ann", where))).toMatchObject([{ passed: false }])
  })

  it("is run in auto where a rule or a permission given before allows exactly it, and in read_only not even then", async () => {
    const rule = { decision: "allow", tool: "bash", command: ["touch", "a.txt"] }
    const grant = { tool_name: "bash", scope: "session", arguments_hash: "", expires_ms: null, rule } as const
    const touch = ["touch", "a.txt"]
    const at = (more: Partial<CommandPlace>) =>
      commandRuling(touch, {
        ...{ rules: [], grants: [], workspace: undefined, nowMs: 0, contained: true, mode: "auto", ...more }
      }).decision
    expect([at({}), at({ rules: [rule] }), at({ grants: [grant] })]).toEqual(["ask", "allow", "allow"])
    const mode = "read_only"
    expect([at({ mode }), at({ mode, rules: [rule] }), at({ mode, grants: [grant] })]).toEqual(["ask", "ask", "ask"])
    expect(at({ mode, rules: [{ ...rule, decision: "deny" }] })).toBe("deny")
    expect(at({ mode: "full_access" })).toBe("allow")
    expect(at({ mode: "full_access", contained: false })).toBe("ask")
  })

  it("is not run when the work is cut off", async () => {
    const cut = { ...place(workspaces.make()), signal: AbortSignal.abort() }
    expect(await checkEvidence(tools(), [command("true")], cut)).toMatchObject([{ passed: false }])
  })
})

describe("a file", () => {
  it("passes when it is there, inside the workspace", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "a.txt"), "abc")
    symlinkSync("/etc/passwd", join(workspace, "out"))
    const found = await check(
      workspace,
      { type: "file", path: "a.txt" },
      { type: "file", path: "b.txt" },
      { type: "file", path: "../" },
      { type: "file", path: "out" },
      { type: "file", path: "a.txt/b" }
    )
    expect(found.map((one) => one.passed)).toEqual([true, false, false, false, false])
    expect(found.map((one) => one.detail).slice(0, 4)).toEqual([
      "a.txt is there, 3 bytes",
      "there is no b.txt",
      "../ is not inside the workspace",
      "out is not inside the workspace"
    ])
  })
})

describe("a report", () => {
  it.each([
    ["JUnit", '<testsuites><testsuite name="a" tests="3" failures="0" errors="0"></testsuite></testsuites>', true],
    ["JUnit", '<testsuite tests="3" failures="1" errors="0">', false],
    ["JUnit", '<testsuite tests="3" failures="0" errors="2">', false],
    ["JUnit without a test", '<testsuite tests="0" failures="0">', false],
    ["JUnit with markup in its names", '<testsuite name="a > b" tests="3" failures="1" errors="0">', false],
    ["JUnit with markup in its names", "<testsuite name='tests=\"9\" > b' tests='3' failures='1'>", false],
    ["JUnit that counts no failures and names one", '<testsuite tests="1"><failure message="x"/></testsuite>', false],
    ["JUnit that prints markup", '<testsuite tests="1" failures="0"><![CDATA[<failure />]]></testsuite>', true],
    ["TAP", "1..2\nok 1 - a\nok 2 - b\n", true],
    ["TAP that bailed out", "1..1\nok 1 - a\nBail out! no database\n", false],
    ["TAP that ended early", "1..3\nok 1 - a\nok 2 - b\n", false],
    ["TAP with its plan at the end", "ok 1\nok 2\n1..2\n", true],
    ["JSON of a run that failed", '{"numTotalTests":4,"numFailedTests":0,"success":false}', false],
    ["JSON of a run that passed", '{"numTotalTests":4,"numFailedTests":0,"success":true}', true],
    ["TAP", "ok 1\nnot ok 2\n", false],
    ["TAP with a known gap", "ok 1\nnot ok 2 # skip later\n", true],
    ["JSON of vitest", '{"numTotalTests":4,"numFailedTests":0}', true],
    ["JSON of mocha", '{"stats":{"tests":4,"failures":1}}', false],
    ["JSON of another", '{"tests":1,"failures":0}', true],
    ["JSON of nobody", '{"ok":true}', false],
    ["a text", "all green, believe me", false]
  ])("of %s is read", (_format, text, passed) => {
    expect(judgeReport(text).passed).toBe(passed)
  })

  it("that somebody wrote proves nothing: only a run of the server is counted", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "r.json"), '{"tests":2,"failures":0}')
    expect(await check(workspace, { type: "report", path: "r.json" })).toMatchObject([
      { passed: false, detail: expect.stringMatching(/^an existing report proves nothing/) }
    ])
    const forged: EvidenceSpec = { type: "tests", command: ["true"], report: "r.json" }
    expect(await check(workspace, forged)).toMatchObject([
      { passed: false, detail: "the command did not write r.json" }
    ])
    const write = 'printf \'{"tests":2,"failures":0}\' > r.json'
    const ran: EvidenceSpec = { type: "tests", command: ["sh", "-c", write], report: "r.json" }
    expect(await check(workspace, ran)).toMatchObject([{ passed: true, detail: "2 tests, 0 failures" }])
    expect(await check(workspace, { ...ran, min_tests: 3 })).toMatchObject([
      { passed: false, detail: "2 tests ran, at least 3 must" }
    ])
    const failing: EvidenceSpec = { type: "tests", command: ["sh", "-c", `${write}; exit 1`], report: "r.json" }
    expect(await check(workspace, failing)).toMatchObject([{ passed: false, exit_code: 1 }])
  })
})

describe("a look at the workspace", () => {
  it("lists files with marks that change when they do, and says nothing when there are too many", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "a.txt"), "a")
    const before = await workspaceLook.listing(workspace, 10)
    expect(Object.keys(before!)).toEqual(["a.txt"])
    writeFileSync(join(workspace, "a.txt"), "ab")
    const after = await workspaceLook.listing(workspace, 10)
    expect(after?.["a.txt"]).not.toBe(before?.["a.txt"])
    expect(await workspaceLook.listing(workspace, 0)).toBeUndefined()
    expect(await workspaceLook.listing(join(workspace, "gone"), 10)).toBeUndefined()
    expect(await workspaceLook.text(workspace, "gone", 10)).toBeUndefined()
    expect(await workspaceLook.text(workspace, "..", 10)).toBeUndefined()
    expect(await workspaceLook.text(workspace, "a.txt", 1)).toBe("a")
  })
})
