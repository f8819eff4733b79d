// Goal: what a person asks for beside a goal holds whatever plan, workers and critic do: checks that no plan can drop,
// checks that no model sees, paths that no worker may change. Method: the real runtime with scripted models that cheat.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { PayloadOf } from "#src/rune/Kinds.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { say, scenarios, use } from "../support/runtime/scenarios.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const command = (line: string): EvidenceSpec => ({ type: "command", command: ["sh", "-c", line], expected_exit: 0 })
const write = (path: string, content: string) => use("write_file", { path, content })
const task = (...evidence: ReadonlyArray<unknown>) => ({ id: "a", title: "a", instructions: "do a", evidence })
const passes = { when: { role: "critic" }, play: [use("submit_review", { verdict: "pass" })] }
const retries = (title: string) => ({
  when: { role: "critic", input: "FAILED", step: 1 },
  play: [use("submit_review", { verdict: "retry", findings: [{ severity: "error", title }] })]
})

const weak = { type: "file", path: "a.txt" }
const planner = (...tasks: ReadonlyArray<unknown>) => ({
  when: { role: "orchestrator" },
  play: [use("submit_plan", { tasks })]
})
const done = { when: { role: "worker" }, play: [say("done")] }

/** Everything that any model was ever told. */
const toldIn = (talk: { readonly state: () => Promise<unknown> }) =>
  talk
    .state()
    .then((state) =>
      JSON.stringify(
        (state as { agents: ReadonlyArray<{ transcript: unknown; prompt: unknown }> }).agents.map(
          ({ prompt, transcript }) => [prompt, transcript]
        )
      )
    )

describe("checks of the person", () => {
  it("keep a goal from being met whatever its plan checks, and are told to the critic by name", async () => {
    const workspace = workspaces.make()
    const story = scenarios({
      sly: [
        planner(task(weak)),
        { when: { role: "worker", input: "^Task fix", step: 1 }, play: [write("b.txt", "right\n")] },
        { when: { role: "worker", step: 1 }, play: [write("a.txt", "x\n")] },
        done,
        retries("b.txt is missing"),
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: story }))
    const evidence = [command("grep -q right b.txt")]
    const goal = await submitGoal(world, { model: "scripted/sly", workspace, evidence })
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    const reviews = goal.talk.of("plan.review_started").map((rune) => rune.payload.evidence ?? [])
    expect(reviews.map((all) => all.find((one) => one.origin === "person")?.passed)).toEqual([false, true])
    expect((end.payload as PayloadOf<"plan.goal_met">).evidence[0]).toMatchObject({ origin: "person", passed: true })
    expect((end.payload as PayloadOf<"plan.goal_met">).summary).toMatch(/grep -q right b\.txt` exits with 0 \(yours\)/)
  })

  it("that are hidden are run at every review, and no model sees their commands or output", async () => {
    const workspace = workspaces.make()
    const story = scenarios({
      sly: [
        planner(task(weak)),
        { when: { role: "worker", input: "^Task fix", step: 1 }, play: [write("a.txt", "42\n")] },
        { when: { role: "worker", step: 1 }, play: [write("a.txt", "x\n")] },
        done,
        retries("something is not right"),
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: story }))
    const hidden_evidence = [command("echo SECRET-OUTPUT; grep -q 42 a.txt # SECRET-COMMAND")]
    const goal = await submitGoal(world, { model: "scripted/sly", workspace, hidden_evidence })
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(goal.talk.of("plan.review_started")).toHaveLength(2)
    const told = await toldIn(goal.talk)
    expect(told).toContain("FAILED: a check that only the person knows")
    expect(told).not.toContain("SECRET")
    expect((end.payload as PayloadOf<"plan.goal_met">).summary).not.toContain("SECRET")
    expect(JSON.stringify(goal.talk.of("plan.updated"))).not.toContain("SECRET")
  })

  it("that cannot be made are refused before anything is there", async () => {
    const world = await worlds.open(goalWorld())
    const workspace = workspaces.make()
    const http = { type: "http", start: ["x"], url: "http://example.org/" } as const
    const bad = (more: object) => submitGoal(world, { model: "scripted/goal-success", workspace, ...more })
    await expect(bad({ evidence: [http] })).rejects.toThrow(/evidence\[0\]: .*127\.0\.0\.1/)
    await expect(bad({ protect: ["../up"] })).rejects.toThrow(/protect\[0\]: .*is outside/)
    await expect(bad({ hidden_evidence: [{ type: "command", command: [], expected_exit: 0 }] })).rejects.toThrow(
      /empty/
    )
  })
})

describe("protected paths", () => {
  const original = "test('a', () => fail())\n"
  const shell = effectTool("shell", async (input, { workspace }) => {
    appendFileSync(join(workspace ?? "", String(input["path"])), "// bent\n")
    return "done"
  })

  it.each([false, true])(
    "that a worker changed behind the policy's back fail its task (worktrees: %s)",
    async (worktrees) => {
      const workspace = gitWorkspace(workspaces.make(), { "test/a.test.js": original })
      const story = scenarios({
        sly: [
          planner(task(weak)),
          {
            when: { role: "worker", input: "put them back", step: 1 },
            play: [write("test/a.test.js", original), write("a.txt", "honest\n")]
          },
          {
            when: { role: "worker", step: 1 },
            play: [use("shell", { path: "test/a.test.js" }), write("a.txt", "x\n")]
          },
          done,
          passes
        ]
      })
      const world = await worlds.open(goalWorld({ scenarios: story, tools: [...fileTools, shell] }))
      const goal = await submitGoal(world, {
        ...{ model: "scripted/sly", workspace, protect: ["test/**"] },
        options: { worktrees }
      })
      expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
      const [failed] = goal.talk.of("plan.task_failed")
      expect(failed?.payload.error.message).toMatch(/changed: test\/a\.test\.js; put them back as they were/)
      expect(readFileSync(join(workspace, "test/a.test.js"), "utf8")).toBe(original)
    }
  )
})

describe("checks before the work", () => {
  it("send a plan back whose checks pass already, and then leave it to a person", async () => {
    const workspace = workspaces.make()
    const story = scenarios({ lazy: [planner(task({ type: "command", command: "true" })), done, passes] })
    const world = await worlds.open(goalWorld({ scenarios: story }))
    const goal = await submitGoal(world, { model: "scripted/lazy", workspace })
    const { talk } = goal
    await talk.until("plan.baseline_checked", 2)
    expect(talk.of("plan.rejected").map((rune) => rune.payload.reason)).toEqual([
      expect.stringMatching(/only checks that pass already.*\n- a: command `true` exits with 0\n.*fails now/)
    ])
    await talk.world.until(() => talk.of("plan.baseline_checked").length === 2, talk.id)
    const { plan } = await talk.state()
    expect(plan).toMatchObject({ status: "planning", needs_approval: expect.stringMatching(/checks of a pass before/) })
    expect(talk.of("plan.task_started")).toEqual([])
    const step = { _tag: "ApprovePlan", payload: { plan_id: goal.planId, approver: "ada" } } as const
    await talk.submit({ _tag: "AdvancePlan", plan_id: goal.planId, step })
    const end = (await goalEnd(goal)) as { readonly payload: PayloadOf<"plan.goal_met"> }
    expect(end.payload.evidence).toMatchObject([{ passed: true, was_green: true }])
    expect(end.payload.summary).toMatch(/passed before any work, so it shows nothing/)
  })

  it("let a plan through whose own checks are weak when the person's fail", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "a.txt"), "there\n")
    const story = scenarios({
      weak: [planner(task(weak)), { when: { role: "worker", step: 1 }, play: [write("b.txt", "b\n")] }, done, passes]
    })
    const world = await worlds.open(goalWorld({ scenarios: story }))
    const goal = await submitGoal(world, {
      model: "scripted/weak",
      workspace,
      evidence: [{ type: "file", path: "b.txt" }]
    })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(goal.talk.of("plan.rejected")).toEqual([])
  })
})

describe("the proof of a goal", () => {
  it("names the tree it is about, ran on a clean copy of it, and leaves nothing behind", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "run.sh": "touch made-by-check; test -f a.txt\n" })
    const runner = new TestRunner()
    const plan = task({ type: "command", command: ["sh", "run.sh"] })
    const story = scenarios({
      fair: [planner(plan), { when: { role: "worker", step: 1 }, play: [write("a.txt", "a\n")] }, done, passes]
    })
    const world = await worlds.open(goalWorld({ scenarios: story, runner }))
    const goal = await submitGoal(world, { model: "scripted/fair", workspace, options: { worktrees: true } })
    const end = (await goalEnd(goal)) as { readonly payload: PayloadOf<"plan.goal_met"> }
    expect(end.payload.tree).toMatch(/^[0-9a-f]{40}$/)
    expect(end.payload.evidence.every((one) => one.tree === end.payload.tree)).toBe(true)
    expect(existsSync(join(workspace, "made-by-check"))).toBe(false)
    expect(existsSync(join(workspace, "a.txt"))).toBe(true)
    expect(existsSync(join(workspace, ".echs/proof"))).toBe(false)
  })

  it("is made again when the files changed between the review and the pass", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "b.txt": "b\n" })
    const spoil = effectTool(
      "read_it",
      async () => {
        writeFileSync(join(workspace, "a.txt"), "spoiled\n")
        return "read"
      },
      { mutating: false, effect_class: "pure" }
    )
    const plan = task({ type: "command", command: "grep -q good a.txt" })
    const story = scenarios({
      race: [
        planner(plan),
        { when: { role: "worker", step: 1 }, play: [write("a.txt", "good\n")] },
        done,
        { when: { role: "critic", input: "^Review 1", step: 1 }, play: [use("read_it", {})] },
        { when: { role: "critic", input: "^Review 1", step: 2 }, play: [use("submit_review", { verdict: "pass" })] },
        {
          when: { role: "critic", input: "^Review 1" },
          play: [use("submit_review", { verdict: "retry", findings: [{ severity: "error", title: "spoiled" }] })]
        },
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: story, tools: [...fileTools, spoil] }))
    const goal = await submitGoal(world, { model: "scripted/race", workspace })
    const end = (await goalEnd(goal)) as { readonly payload: PayloadOf<"plan.goal_met"> }
    const refused = goal.talk.of("tool.result").find((rune) => rune.payload.error?.message.includes("changed since"))
    expect(refused?.payload.error?.message).toMatch(/the files changed since the review: FAILED: command `grep -q good/)
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("good\n")
    expect(end.payload.evidence.every((one) => one.passed)).toBe(true)
  })

  it("shows the critic and the person which checks read files that workers changed", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "test/check.sh": "exit 1\n" })
    const story = scenarios({
      bent: [
        planner(task({ type: "command", command: "sh test/check.sh" })),
        { when: { role: "worker", step: 1 }, play: [write("test/check.sh", "exit 0\n")] },
        done,
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: story }))
    const goal = await submitGoal(world, { model: "scripted/bent", workspace })
    const end = (await goalEnd(goal)) as { readonly payload: PayloadOf<"plan.goal_met"> }
    expect(end.payload.evidence).toMatchObject([{ suspect: ["test/check.sh"] }])
    expect(end.payload.summary).toMatch(/look at it: workers changed test\/check\.sh/)
    expect(await toldIn(goal.talk)).toMatch(/workers changed what it reads: test\/check\.sh/)
  })
})
