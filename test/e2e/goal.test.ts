// Goal: `echs goal` on a real repository with failing tests ends with a green run as evidence, and its exit code tells how
// it ended. Method: the real command against a real server process; a scripted model reads, edits and
// runs the tests with the real tools, in the sandbox. A worker that lies is the variant that must not pass.

import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { followGoal } from "#src/cli/goal/Follow.ts"
import { Client } from "#src/client/Client.ts"
import { commandOn, startCommand } from "../support/cli.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap } from "../support/sandbox.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { recordingTerminal } from "../support/terminal.ts"

const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url))

let place = ""
/** Where the server reads scenarios: below the folder that its settings name. */
let scenarioFile = ""
let server: ServerProcess
let repository = ""
let runs = 0

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-goal-"))
  scenarioFile = join(place, "price-list.scenario.json")
  cpSync(join(fixtures, "price-list.scenario.json"), scenarioFile)
  server = await startProcess(join(place, "data"))
})

afterAll(async () => {
  await server.end("SIGTERM")
  rmSync(place, { recursive: true, force: true })
})

const git = (...args: ReadonlyArray<string>): string =>
  spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], {
    cwd: repository,
    encoding: "utf8"
  }).stdout

beforeEach(() => {
  runs += 1
  repository = join(place, `repository-${runs}`)
  cpSync(join(fixtures, "price-list"), repository, { recursive: true })
  git("init", "-q")
  git("add", "-A")
  git("commit", "-qm", "as it was found")
})

const testsPass = (): boolean =>
  spawnSync(process.execPath, ["--test", "test/price.js", "test/report.js"], {
    cwd: repository,
    env: { PATH: process.env["PATH"] }
  }).status === 0

const echs = (...args: ReadonlyArray<string>) => commandOn(join(place, "data"), { cwd: repository })(args)

const goal = (model: string, ...args: ReadonlyArray<string>) =>
  echs("goal", "--model", `scripted/${model}`, "--policy", "full_access", ...args)

/** The scenario with some of its replies changed. */
const variant = (change: (reply: { when?: Record<string, unknown>; play: Array<unknown> }) => void): string => {
  const scenario = JSON.parse(readFileSync(scenarioFile, "utf8"))
  for (const reply of scenario.replies) change(reply)
  const file = join(place, `variant-${runs}.json`)
  writeFileSync(file, JSON.stringify(scenario))
  return file
}

const isWorkerOn = (reply: { when?: Record<string, unknown> }, task: string): boolean =>
  reply.when?.["role"] === "worker" && String(reply.when["input"]).includes(task)

describe("echs goal on a repository whose tests fail", () => {
  beforeEach((context) => requirePart(context, bubblewrap))

  it("reads, edits and runs the tests until they pass, and shows the proof", () => {
    expect(testsPass()).toBe(false)
    const run = goal(scenarioFile, "make the tests pass")
    expect(run.code, run.stderr + run.stdout).toBe(0)
    expect(testsPass()).toBe(true)
    for (const said of [
      "◆ make the tests pass",
      "├─ ○ 1. Mend src/price.js",
      "└─ ○ 3. Run the whole suite  after 1, 2 · high",
      "✓ node --test test/price.js · exit 0",
      "the critic says: pass",
      "✓ goal met",
      "src/price.js (+2 −2)"
    ])
      expect(run.stdout).toContain(said)
    expect(run.stdout).not.toContain("\u001b")
    expect(readFileSync(join(repository, "CHECKS.md"), "utf8").trim().split("\n").sort()).toEqual([
      "- all: green",
      "- price: green",
      "- report: green"
    ])
    expect(git("status", "--short")).toMatch(/^ M src\/price\.js\n M src\/report\.js\n\?\? CHECKS\.md\n$/)
  })

  it("says the same as JSON, and nothing else", () => {
    const run = goal(scenarioFile, "--json", "make the tests pass")
    expect(run.code, run.stderr).toBe(0)
    const report = JSON.parse(run.stdout)
    expect(report).toMatchObject({ outcome: "goal_met", tool_calls: expect.any(Number) })
    expect(report.evidence.length).toBeGreaterThan(0)
    expect(report.evidence.every((one: { passed: boolean }) => one.passed)).toBe(true)
    expect(report.tasks.map((task: { state: string }) => task.state)).toEqual(["done", "done", "done"])
    writeFileSync(join(repository, "src/price.js"), "broken since\n")
    const proof = echs("verify", "--goal", report.conversation_id, "--json")
    expect(proof.code, proof.stderr + proof.stdout).toBe(0)
    expect(JSON.parse(proof.stdout)).toMatchObject({ tree: report.tree, failed: 0, not_repeated: 0 })
    expect(JSON.parse(proof.stdout).passed).toBe(report.evidence.length)
  })

  it("does not believe a worker that says it is done and changed nothing", () => {
    const lying = variant((reply) => {
      if (isWorkerOn(reply, "price")) reply.play = [{ text: "src/price.js is mended and all tests are green." }]
    })
    const run = goal(lying, "make the tests pass")
    expect(run.code).toBe(1)
    expect(run.stdout).toContain("✗ Mend src/price.js")
    expect(run.stdout).toMatch(/✗ stopped: /)
    expect(testsPass()).toBe(false)
  })

  it("plans no evidence that a rule of the server denies", () => {
    const rules = [{ decision: "deny", command: ["node", "--test", "**"], reason: "not here" }]
    const file = join(place, "data", "policy.json")
    writeFileSync(file, JSON.stringify({ rules }))
    try {
      const run = goal(scenarioFile, "--json", "make the tests pass")
      expect(run.code, run.stderr).toBe(1)
      const { conversation_id: id } = JSON.parse(run.stdout)
      expect(echs("export", id).stdout).toContain("the policy denies this command (rule 1 denies bash: not here)")
      expect(testsPass()).toBe(false)
    } finally {
      rmSync(file)
    }
  })

  it("waits with a plan for a yes, and can be told to stop", async () => {
    const data = join(place, "data")
    const following = startCommand(data, [
      "goal",
      "--review",
      "--model",
      `scripted/${scenarioFile}`,
      "--policy",
      "full_access",
      "--workspace",
      repository,
      "make the tests pass"
    ])
    await expect.poll(following.stdout, { timeout: 20_000 }).toContain("Run the whole suite")
    const id = /conv_[0-9a-z]+/.exec(following.stdout())?.[0] ?? ""
    expect(testsPass()).toBe(false)
    expect(echs("plan", "cancel", id, "--reason", "not today").code).toBe(0)
    expect(await following.ended).toBe(1)
    expect(following.stdout()).toContain("✗ stopped: ")
    expect(echs("plan", "approve", id).code).toBe(6)
    expect(testsPass()).toBe(false)
  })

  it("takes a yes for the plan that was seen, and refuses it when there is another by now", async () => {
    const asked = goal("goal-rejected", "--review", "--detach", "--json", "write a letter")
    const { conversation_id: id } = JSON.parse(asked.stdout)
    const shown = () => echs("plan", "show", id).stdout
    await expect.poll(shown, { timeout: 20_000 }).toContain("revision 1 of the plan")
    expect(shown()).toMatch(/1\. .*evidence\[0\]\.path: goal\/letter\.txt/s)
    expect(echs("plan", "reject", id, "--revision", "1", "--reason", "check it, too").code).toBe(0)
    await expect.poll(shown, { timeout: 20_000 }).toContain("revision 2 of the plan")
    const late = echs("plan", "approve", id, "--revision", "1")
    expect(late).toMatchObject({ code: 6, stdout: "" })
    expect(late.stderr).toContain("the plan is at revision 2 now, not 1")
    expect(echs("plan", "approve", id, "--revision", "two").code).toBe(2)
    const approved = JSON.parse(echs("plan", "approve", "--json", id).stdout)
    expect(approved).toMatchObject({ revision: 2, event_id: expect.any(Number) })
    echs("plan", "cancel", id)
  })

  it("works in the directory that is meant from where it is called", () => {
    const run = goal(scenarioFile, "--review", "--detach", "--json", "--workspace", "src", "make the tests pass")
    const { conversation_id: id } = JSON.parse(run.stdout)
    expect(JSON.parse(echs("show", "--json", id).stdout).workspace).toBe(join(repository, "src"))
    echs("plan", "cancel", id)
  })

  it("is pursued as its flags say, also in a conversation that is there already", () => {
    const flags = ["--worktrees", "--time", "1h", "--max-iterations", "4", "--task-tokens", "1000000"]
    const first = goal("goal-success", "--json", ...flags, "write a letter")
    expect(first.code, first.stderr).toBe(0)
    const { conversation_id: id } = JSON.parse(first.stdout)
    const received = () =>
      echs("export", id)
        .stdout.split("\n")
        .filter((line) => line.includes('"plan.goal_received"'))
        .map((line) => JSON.parse(line).payload)
    expect(received()[0]).toMatchObject({
      budget: { wall_ms: 3_600_000 },
      options: { worktrees: true, max_iterations: 4, task_budget: { tokens: 1_000_000 } }
    })
    // What is there already would show nothing about the second one.
    rmSync(join(repository, "goal"), { recursive: true })
    const second = echs("goal", "--in", id, "write it again")
    expect(second.code, second.stderr).toBe(0)
    expect(second.stdout).toContain("◆ write it again")
    expect(second.stdout).not.toContain("◆ write a letter")
    expect(received()).toHaveLength(2)
    expect(echs("goal", "--in", id, "--time", "soon", "x").code).toBe(2)
  })

  it("leaves no worktree behind when it is stopped, also by a server that was killed right after", async () => {
    const begun = () => {
      const run = goal("goal-endless", "--worktrees", "--detach", "--json", "write for ever")
      return JSON.parse(run.stdout).conversation_id as string
    }
    const worktrees = () => git("worktree", "list").trim().split("\n").length
    const first = begun()
    await expect.poll(worktrees, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(echs("plan", "cancel", first).code).toBe(0)
    await expect.poll(worktrees, { timeout: 20_000 }).toBe(1)
    const second = begun()
    await expect.poll(worktrees, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(echs("plan", "cancel", second).code).toBe(0)
    await server.end("SIGKILL")
    server = await startProcess(join(place, "data"))
    await expect.poll(worktrees, { timeout: 20_000 }).toBe(1)
    await expect.poll(() => existsSync(join(repository, ".echs")), { timeout: 20_000 }).toBe(false)
    await expect.poll(() => existsSync(join(place, "data", "worktrees.json")), { timeout: 20_000 }).toBe(false)
  })

  it("goes on without whoever stops following it", async () => {
    const detached = JSON.parse(goal(scenarioFile, "--detach", "--json", "make the tests pass").stdout)
    expect(detached).toMatchObject({ conversation_id: expect.stringMatching(/^conv_/), plan_id: expect.any(String) })
    const following = startCommand(join(place, "data"), ["tail", "--json", detached.conversation_id])
    await expect.poll(following.stdout, { timeout: 50_000 }).toContain("plan.goal_met")
    following.child.kill("SIGINT")
    await following.ended
    expect(testsPass()).toBe(true)
  })
})

describe("a goal where there is no sandbox", () => {
  let bare: ServerProcess
  let data = ""

  beforeAll(async () => {
    const programs = join(place, "programs")
    mkdirSync(programs)
    for (const name of ["bash", "sh", "git"])
      symlinkSync(spawnSync("which", [name], { encoding: "utf8" }).stdout.trim(), join(programs, name))
    symlinkSync(process.execPath, join(programs, "node"))
    data = join(place, "bare")
    bare = await startProcess(data, { env: { PATH: programs } })
  })

  afterAll(() => bare.end("SIGTERM"))

  it("puts its plan to whoever sits at the terminal, says why, and ends well after a yes", async () => {
    const client = await Client.connect({ endpoint: { url: bare.url, token: bare.token } })
    try {
      const { conversation_id: conversationId, plan_id: planId } = await client.call("goal.submit", {
        goal: "make the tests pass",
        workspace: repository,
        model: `scripted/${scenarioFile}`,
        policy: { mode: "full_access" }
      })
      const terminal = recordingTerminal({ answers: Array.from({ length: 30 }, () => "y") })
      const { signal } = new AbortController()
      const board = await followGoal({ client, terminal, conversationId, planId, signal, review: false })
      expect(board.end?.outcome, terminal.output()).toBe("goal_met")
      expect(terminal.output()).toMatch(/waits for approval: .*no sandbox.*start this plan\?.*started by/s)
      expect(testsPass()).toBe(true)
    } finally {
      await client.close()
    }
  })

  it.each([
    ["nobody is there", undefined],
    ["the answer is empty", [""]]
  ])("says how to approve it when %s", async (_, answers) => {
    const client = await Client.connect({ endpoint: { url: bare.url, token: bare.token } })
    try {
      const { conversation_id: conversationId, plan_id: planId } = await client.call("goal.submit", {
        goal: "make the tests pass",
        workspace: repository,
        model: `scripted/${scenarioFile}`
      })
      const terminal = recordingTerminal(answers === undefined ? {} : { answers })
      const { signal } = new AbortController()
      const following = followGoal({ client, terminal, conversationId, planId, signal, review: false })
      const how = `echs plan approve ${conversationId} --revision 1`
      await expect.poll(terminal.complaints, { timeout: 20_000 }).toContain(how)
      const unseen = { conversation_id: conversationId, plan_id: planId, revision: 7 }
      await expect(client.call("plan.approve", unseen)).rejects.toMatchObject({ code: "invalid_state" })
      expect(commandOn(data)(["plan", "approve", conversationId]).code).toBe(0)
      await expect.poll(terminal.output, { timeout: 20_000 }).toContain("started by")
      await client.call("plan.cancel", { conversation_id: conversationId, plan_id: planId })
      expect((await following).end?.outcome).toBe("stopped")
    } finally {
      await client.close()
    }
  })
})
