// Goal: a person changes single tasks of a goal while it is pursued, and speaks to workers; what they say is what happens,
// and the log says who said it. Method: the real runtime with scripted models, held where the person acts.
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { TaskChange } from "#src/machine/Command.ts"
import type { TaskId } from "#src/rune/Ids.ts"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { type Goal, goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { type ReplySpec, say, scenarios, use } from "../support/runtime/scenarios.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const file = (path: string) => ({ type: "file", path }) as const
const task = (id: string, more: object = {}) => ({
  ...{ id, title: `make ${id}`, instructions: `write ${id}.txt`, evidence: [file(`${id}.txt`)], ...more }
})
const planner = (...tasks: ReadonlyArray<object>): ReplySpec => ({
  when: { role: "orchestrator" },
  play: [use("submit_plan", { tasks })]
})
const passes: ReplySpec = { when: { role: "critic" }, play: [use("submit_review", { verdict: "pass" })] }
const writes = (id: string): ReplySpec => ({
  when: { role: "worker", input: `Task ${id}:`, step: 1 },
  play: [use("write_file", { path: `${id}.txt`, content: `${id}\n` })]
})
const holds = (id: string): ReplySpec => ({
  when: { role: "worker", input: `Task ${id}:`, step: 1 },
  play: [use("hold", {})]
})
const done: ReplySpec = { when: { role: "worker" }, play: [say("done")] }

/** Tools that end only with their call or when they are let go; `held` resolves when one of them runs. */
const holding = () => {
  const freed = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const hold = async (_input: unknown, { signal }: { readonly signal: AbortSignal }): Promise<string> => {
    begun.resolve()
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))
    await Promise.race([freed.promise, ended])
    return "let go"
  }
  return { tools: [effectTool("hold", hold), tool("look", hold)], held: begun.promise, release: freed.resolve }
}

const begin = async (replies: ReadonlyArray<ReplySpec>, more: Partial<Parameters<typeof submitGoal>[1]> = {}) => {
  const workspace = workspaces.make()
  const { held, release, tools } = holding()
  const world = await worlds.open(
    goalWorld({ scenarios: scenarios({ team: replies }), tools: [...fileTools, ...tools] })
  )
  const goal = await submitGoal(world, { model: "scripted/team", workspace, ...more })
  return { workspace, goal, talk: goal.talk, held, release }
}

const change = ({ planId, talk }: Goal, id: string, asked: TaskChange, more: object = {}) =>
  talk.submit({
    _tag: "ChangeTask",
    plan_id: planId,
    task_id: id as TaskId,
    change: asked,
    principal: "ada",
    ...more
  })

const added = (id: string, more: object = {}) => ({
  type: "add" as const,
  task: {
    title: `make ${id}`,
    instructions: `write ${id}.txt`,
    depends_on: [],
    priority: "medium" as const,
    evidence: [file(`${id}.txt`)],
    ...more
  }
})

const planIn = async ({ talk }: Goal) => (await talk.state()).plan!
const statusOf = async (goal: Goal, id: string) =>
  (await planIn(goal)).tasks.find((one) => one.task.task_id === id)?.status

describe("a task that a person adds", () => {
  it("is worked on, checked with the person's evidence and part of the proof", async () => {
    const { goal, held, release, talk, workspace } = await begin([
      planner(task("a")),
      holds("a"),
      writes("b"),
      { when: { role: "worker", step: 2 }, play: [use("write_file", { path: "a.txt", content: "a\n" })] },
      done,
      passes
    ])
    await held
    await change(goal, "b", added("b"))
    release()
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(existsSync(join(workspace, "b.txt"))).toBe(true)
    if (end.kind !== "plan.goal_met") return
    const proof = end.payload.evidence.find((one) => one.spec.type === "file" && one.spec.path === "b.txt")
    expect(proof).toMatchObject({ passed: true, origin: "person" })
    expect(talk.of("plan.task_added")[0]?.payload).toMatchObject({ task_id: "b", principal: "ada" })
  })

  it("during a review is done first, and the review begins anew", async () => {
    const { goal, held, talk } = await begin(
      [
        planner(task("a")),
        writes("a"),
        writes("b"),
        done,
        { when: { role: "critic", input: "^Review 1", step: 1 }, play: [use("look", {})] },
        passes
      ],
      {}
    )
    await held
    await change(goal, "b", added("b"))
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(talk.of("plan.review_started").length).toBe(2)
    expect(talk.of("plan.task_completed").map((rune) => rune.payload.task_id)).toEqual(["a", "b"])
  })

  it.each([
    ["an id that is taken", "a", added("a"), /there is a task a already/],
    ["an unknown dependency", "b", added("b", { depends_on: ["x"] }), /would wait for x, and there is no such task/],
    ["no evidence", "b", added("b", { evidence: [] }), /names no evidence/],
    ["evidence that cannot be made", "b", added("b", { evidence: [file("../up")] }), /is outside the workspace/]
  ] as const)("with %s is refused, and nothing changes", async (_what, id, asked, message) => {
    const { goal, held, talk } = await begin([planner(task("a")), holds("a"), done, passes])
    await held
    const before = talk.runes.length
    await expect(change(goal, id, asked as TaskChange)).rejects.toThrow(message)
    expect(talk.runes.slice(before).filter((rune) => rune.kind.startsWith("plan."))).toEqual([])
  })
})

describe("a task that a person edits", () => {
  it("ends its worker and is done by another one, as it is now and at no cost of an attempt", async () => {
    const { goal, held, talk, workspace } = await begin([
      planner(task("a")),
      {
        when: { role: "worker", input: "write it in capitals", step: 1 },
        play: [use("write_file", { path: "a.txt", content: "A\n" })]
      },
      holds("a"),
      done,
      passes
    ])
    await held
    const [first] = talk.of("plan.task_assigned")
    await change(goal, "a", { type: "edit", fields: { instructions: "write it in capitals" } })
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("A\n")
    expect(talk.of("plan.task_started").map((rune) => rune.payload.attempt)).toEqual([1, 1])
    const [, second] = talk.of("plan.task_assigned")
    expect(second?.payload.agent_id).not.toBe(first?.payload.agent_id)
    expect(talk.of("agent.terminated").some((rune) => rune.agent_id === first?.payload.agent_id)).toBe(true)
  })

  it("cannot be made to wait for itself by way of others", async () => {
    const { goal, held } = await begin([planner(task("a"), task("b", { depends_on: ["a"] })), holds("a"), done, passes])
    await held
    const asked: TaskChange = { type: "edit", fields: { depends_on: ["b" as TaskId] } }
    await expect(change(goal, "a", asked)).rejects.toThrow(/would wait for each other: .*a → b|b → a/)
    await expect(change(goal, "a", { type: "edit", fields: {} })).rejects.toThrow(/name what is to be changed/)
    await expect(change(goal, "z", { type: "drop", reason: "" })).rejects.toThrow(/no task z/)
  })

  it("in a plan that waits for approval makes another revision of it, and its checks run before the work", async () => {
    const { goal, talk } = await begin([planner(task("a")), writes("a"), writes("c"), done, passes], {
      auto_start: false
    })
    await talk.until("plan.created", 1)
    const evidence = [file("c.txt")]
    await change(goal, "a", { type: "edit", fields: { evidence, instructions: "write c.txt" } }, { revision: 1 })
    const approve = (revision: number) =>
      talk.submit({
        _tag: "AdvancePlan",
        plan_id: goal.planId,
        revision,
        step: { _tag: "ApprovePlan", payload: { plan_id: goal.planId, approver: "ada" } }
      })
    await expect(approve(1)).rejects.toThrow(/revision 2 now/)
    await approve(2)
    await talk.until("plan.baseline_checked", 1)
    expect(talk.of("plan.baseline_checked")[0]?.payload.evidence.map((one) => one.spec)).toEqual(evidence)
  })
})

describe("other changes to a task", () => {
  it("dropped: its worker is ended, and what depended on it runs", async () => {
    const { goal, held } = await begin([
      planner(task("a"), task("b", { depends_on: ["a"] })),
      holds("a"),
      writes("b"),
      done,
      passes
    ])
    await held
    await change(goal, "a", { type: "drop", reason: "not needed" })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(await statusOf(goal, "a")).toBe("cancelled")
    await expect(change(goal, "a", { type: "drop", reason: "" })).rejects.toThrow(/is over/)
  })

  it("retried: one that failed permanently gets all its attempts again, and the worker reads why", async () => {
    const { goal, talk } = await begin([
      planner(task("a"), task("b")),
      {
        when: { role: "worker", input: "the disk is back", step: 1 },
        play: [use("write_file", { path: "a.txt", content: "a\n" })]
      },
      { when: { role: "worker", input: "Task a:" }, play: [say("cannot")] },
      holds("b"),
      { when: { role: "worker", step: 2 }, play: [use("write_file", { path: "b.txt", content: "b\n" })] },
      done,
      passes
    ])
    await talk.until("plan.task_failed", 2)
    await change(goal, "a", { type: "retry", reason: "the disk is back" })
    await talk.until("plan.task_completed", 1)
    expect(talk.of("plan.task_completed")[0]?.payload.task_id).toBe("a")
    expect(talk.of("plan.task_started").map(({ payload }) => [payload.task_id, payload.attempt])).toContainEqual([
      "a",
      1
    ])
    await expect(change(goal, "b", { type: "retry", reason: "" })).rejects.toThrow(/b is running: it is not over/)
  })

  it("reassigned: another worker with another model, at no cost of an attempt", async () => {
    const workspace = workspaces.make()
    const { held, tools } = holding()
    const story = scenarios({
      team: [planner(task("a")), holds("a"), done, passes],
      other: [writes("a"), done]
    })
    const world = await worlds.open(goalWorld({ scenarios: story, tools: [...fileTools, ...tools] }))
    const goal = await submitGoal(world, { model: "scripted/team", workspace })
    await held
    await change(goal, "a", { type: "reassign", reason: "too slow", model: "scripted/other" })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(goal.talk.of("plan.task_started").map((rune) => rune.payload.attempt)).toEqual([1, 1])
    const worker = goal.talk.of("plan.task_assigned")[1]?.payload.agent_id
    const spawned = goal.talk.of("agent.spawning").find((rune) => rune.payload.agent_id === worker)
    expect(spawned?.payload.model).toBe("scripted/other")
    await expect(change(goal, "a", { type: "reassign", reason: "" })).rejects.toThrow()
  })

  it("reordered: runs before the one it is put in front of, and ids of workers stay apart", async () => {
    const { goal, held, release, talk } = await begin(
      [
        planner(task("a"), task("b", { priority: "high" }), task("c", { priority: "low" })),
        holds("a"),
        holds("b"),
        holds("c"),
        {
          when: { role: "worker", input: "Task a:", step: 2 },
          play: [use("write_file", { path: "a.txt", content: "" })]
        },
        {
          when: { role: "worker", input: "Task b:", step: 2 },
          play: [use("write_file", { path: "b.txt", content: "" })]
        },
        {
          when: { role: "worker", input: "Task c:", step: 2 },
          play: [use("write_file", { path: "c.txt", content: "" })]
        },
        done,
        passes
      ],
      { max_parallel: 1 }
    )
    await held
    await change(goal, "c", { type: "reorder", before: "a" as TaskId })
    await expect(change(goal, "c", { type: "reorder", before: "x" as TaskId })).rejects.toThrow(/no task x/)
    release()
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(talk.of("plan.task_started").map((rune) => rune.payload.task_id)).toEqual(["b", "c", "a"])
    const workers = talk.of("plan.task_assigned").map((rune) => rune.payload.agent_id)
    expect(new Set(workers).size).toBe(3)
  })
})

describe("a word to the worker of a task", () => {
  it("is read in its running turn, and the plan names the answer that had read it", async () => {
    const { goal, held, release, talk } = await begin([
      planner(task("a")),
      {
        when: { role: "worker", input: "in capitals", step: 1 },
        play: [use("write_file", { path: "a.txt", content: "A\n" })]
      },
      holds("a"),
      done,
      passes
    ])
    await held
    await change(goal, "a", { type: "steer", content: "in capitals" })
    expect((await planIn(goal)).steers).toMatchObject([{ task_id: "a", text: "in capitals", read_event_id: null }])
    release()
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    const [steer] = (await planIn(goal)).steers
    const read = talk.runes.find((rune) => rune.event_id === steer?.read_event_id)
    expect(read?.kind).toBe("turn.assistant_final")
    expect(read?.agent_id).toBe(steer?.agent_id)
  })

  it("is refused where nobody works on it", async () => {
    const { goal, held } = await begin([planner(task("a"), task("b", { depends_on: ["a"] })), holds("a"), done, passes])
    await held
    await expect(change(goal, "b", { type: "steer", content: "look" })).rejects.toThrow(
      /b is pending: nobody works on it/
    )
  })
})

describe("in worktrees", () => {
  it("what the worker of an edited task had changed is kept, and not merged", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "README.md": "x\n" })
    const { held, tools } = holding()
    const story = scenarios({
      team: [
        planner(task("a")),
        writes("b"),
        {
          when: { role: "worker", input: "Task a: other", step: 1 },
          play: [use("write_file", { path: "a.txt", content: "2\n" })]
        },
        {
          when: { role: "worker", input: "Task a:", step: 1 },
          play: [use("write_file", { path: "a.txt", content: "1\n" }), use("hold", {})]
        },
        done,
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: story, tools: [...fileTools, ...tools] }))
    const goal = await submitGoal(world, { model: "scripted/team", workspace, options: { worktrees: true } })
    await held
    await change(goal, "a", { type: "edit", fields: { title: "other" } })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("2\n")
    const kept = execFileSync("git", ["-C", workspace, "for-each-ref", "--format=%(refname)", "refs/echs/kept"])
      .toString()
      .trim()
    expect(execFileSync("git", ["-C", workspace, "show", `${kept}:a.txt`]).toString()).toBe("1\n")
  })
})
