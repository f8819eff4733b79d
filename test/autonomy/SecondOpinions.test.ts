// Goal: a critic looks before it passes, one task that loops does not end the others, and a worker's helpers are part of its
// task. Method: the real runtime with scripted models that do otherwise.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { useWorkspaces } from "../support/autonomy/workplace.ts"
import { type ReplySpec, say, scenarios, use } from "../support/runtime/scenarios.ts"
import { tool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const task = (id: string, more: object = {}) => ({
  ...{ id, title: id, instructions: `write ${id}.txt`, evidence: [{ type: "file", path: `${id}.txt` }], ...more }
})
const planner = (...tasks: ReadonlyArray<object>): ReplySpec => ({
  when: { role: "orchestrator" },
  play: [use("submit_plan", { tasks })]
})
const write = (id: string) => use("write_file", { path: `${id}.txt`, content: `${id}\n` })
const done: ReplySpec = { when: { role: "worker" }, play: [say("done")] }
const pass = use("submit_review", { verdict: "pass" })
const works = (id: string): ReplySpec => ({
  when: { role: "worker", input: `Task ${id}:`, step: 1 },
  play: [write(id)]
})

const pursue = async (replies: ReadonlyArray<ReplySpec>, more: ReadonlyArray<ReturnType<typeof tool>> = []) => {
  const workspace = workspaces.make()
  const world = await worlds.open(
    goalWorld({ scenarios: scenarios({ team: replies }), tools: [...fileTools, ...more] })
  )
  const goal = await submitGoal(world, { model: "scripted/team", workspace })
  return { goal, talk: goal.talk, workspace }
}

describe("a critic", () => {
  const reviews = (runes: ReadonlyArray<{ readonly payload: { readonly tool_name?: string } }>) =>
    runes.filter(({ payload }) => payload.tool_name === "submit_review").length

  it("that passes without a look at what changed is asked once, with the names of the files", async () => {
    const { goal, talk } = await pursue([
      planner(task("a")),
      works("a"),
      done,
      {
        when: { role: "critic", last_output: "you have not looked at what changed \\(a\\.txt\\)" },
        play: [use("read_file", { path: "a.txt" })]
      },
      { when: { role: "critic" }, play: [pass] }
    ])
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(reviews(talk.of("tool.call"))).toBe(2)
    expect(talk.of("plan.review_started")).toHaveLength(1)
  })

  it("that looked first is believed at once", async () => {
    const { goal, talk } = await pursue([
      planner(task("a")),
      works("a"),
      done,
      { when: { role: "critic", step: 1 }, play: [use("read_file", { path: "a.txt" })] },
      { when: { role: "critic" }, play: [pass] }
    ])
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(reviews(talk.of("tool.call"))).toBe(1)
  })
})

describe("a task that loops", () => {
  it("is lost alone: its siblings are finished before the goal stops for that reason", async () => {
    const { goal, talk, workspace } = await pursue([
      planner(task("a"), task("b", { depends_on: ["c"] }), task("c")),
      { when: { role: "worker", input: "Task a:" }, play: [use("read_file", { path: "." })] },
      works("b"),
      works("c"),
      done
    ])
    const end = await goalEnd(goal)
    expect(end.payload).toMatchObject({ reason: "repeated_tool_calls" })
    expect(talk.of("plan.task_completed").map((rune) => rune.payload.task_id)).toEqual(["c", "b"])
    expect(existsSync(join(workspace, "b.txt"))).toBe(true)
  })
})

describe("a worker that ends while its helpers work", () => {
  it("waits for them: its task is checked with what they did", async () => {
    const freed = Promise.withResolvers<void>()
    const hold = tool("hold", async () => {
      await freed.promise
      return "let go"
    })
    const { goal, talk } = await pursue(
      [
        planner(task("a")),
        {
          when: { role: "worker", input: "Task a:", step: 1 },
          play: [use("spawn_agent", { message: "help with a", role: "helper" })]
        },
        { when: { role: "helper", step: 1 }, play: [use("hold", {})] },
        { when: { role: "helper", step: 2 }, play: [write("a")] },
        { when: { role: "helper" }, play: [say("done")] },
        done,
        { when: { role: "critic" }, play: [pass] }
      ],
      [hold]
    )
    await talk.world.until(() => {
      const worker = talk.of("plan.task_assigned")[0]?.payload.agent_id
      return worker !== undefined && talk.of("turn.completed").some((rune) => rune.agent_id === worker)
    }, talk.id)
    freed.resolve()
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(talk.of("plan.task_failed")).toEqual([])
  })
})
