/**
 * Goal: the scheduler runs every task of a plan once, in the order of dependencies, at
 * full parallelism, the most urgent and then the oldest first; a failed task runs
 * again once and then holds back what depends on it. Method: random graphs, folded.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { nextTasks, orchestratorIdOf, outlook, readyTasks, workerIdOf } from "#src/machine/decide/TaskSchedule.ts"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import type { PlanState, TaskState } from "#src/machine/State.ts"
import type { PlanId, TaskId } from "#src/rune/Ids.ts"
import type { Kind, PayloadOf } from "#src/rune/Kinds.ts"
import type { PlanTask } from "#src/rune/kinds/plan.ts"
import { reportCount } from "../../support/counts.ts"
import { PlanStory, planId, task } from "../../support/planStory.ts"
import { exampleRune } from "../../support/runeExamples.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"

const priorities = ["critical", "high", "medium", "low"] as const

/** Folds plan runes into a story, as a log would. */
class Fold {
  readonly story = new PlanStory().goal()

  tell<K extends Kind>(kind: K, payload: PayloadOf<K>): void {
    const { state } = this.story
    evolve(state, { ...exampleRune(kind), payload, event_id: state.head + 1 } as never)
  }

  get plan(): PlanState {
    return this.story.plan
  }

  begin({ task: { task_id }, attempts }: TaskState): void {
    const agent_id = workerIdOf(this.plan, this.plan.tasks.find((one) => one.task.task_id === task_id)!)
    this.tell("plan.task_assigned", { plan_id: planId, task_id, agent_id })
    this.tell("plan.task_started", { plan_id: planId, task_id, attempt: attempts + 1 })
  }

  complete(task_id: TaskId): void {
    this.tell("plan.task_completed", { plan_id: planId, task_id, result: "", evidence: [] })
  }

  fail({ task: { task_id }, attempts }: TaskState): void {
    const error = { code: "evidence_failed", message: "no" }
    this.tell("plan.task_failed", { plan_id: planId, task_id, attempt: attempts, error })
  }
}

const planWith = (tasks: ReadonlyArray<PlanTask>, maxParallel?: number): Fold => {
  const fold = new Fold()
  const received = { plan_id: planId, goal: "g", auto_start: true }
  fold.tell("plan.goal_received", maxParallel === undefined ? received : { ...received, max_parallel: maxParallel })
  fold.tell("plan.created", { plan_id: planId, tasks })
  return fold
}

/** Every task may depend on tasks before it, so there is no cycle; then the order is shuffled. */
const graph = (random: () => number, size: number): ReadonlyArray<PlanTask> => {
  const tasks = Array.from({ length: size }, (_, index) => {
    const wanted = index === 0 ? 0 : Math.floor(random() * 4)
    const after = Array.from({ length: wanted }, () => `t${Math.floor(random() * index)}`)
    return task(`t${index}`, { after: [...new Set(after)], priority: priorities[Math.floor(random() * 4)]! })
  })
  return tasks
    .map((one) => [random(), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one)
}

const execute = (tasks: ReadonlyArray<PlanTask>, maxParallel: number, random: () => number): number => {
  const fold = planWith(tasks, maxParallel)
  const done = new Set<string>()
  const started = new Map<string, number>()
  let active: Array<TaskState> = []
  let widest = 0
  while (done.size < tasks.length) {
    const next = nextTasks(fold.plan)
    for (const one of next) {
      for (const id of one.task.depends_on) if (!done.has(id)) throw new Error(`${one.task.task_id} before ${id}`)
      started.set(one.task.task_id, (started.get(one.task.task_id) ?? 0) + 1)
      fold.begin(one)
      active.push(one)
    }
    // Full parallelism: there is no room, or there is nothing that could use it.
    if (active.length < maxParallel && readyTasks(fold.plan).length > 0) throw new Error("room was left unused")
    if (active.length > maxParallel) throw new Error("more run than may")
    if (active.length === 0) throw new Error("nothing runs and not all is done")
    widest = Math.max(widest, active.length)
    const [ended] = active.splice(Math.floor(random() * active.length), 1)
    fold.complete(ended!.task.task_id)
    done.add(ended!.task.task_id)
    active = active.filter((one) => !done.has(one.task.task_id))
  }
  expect([...started.values()].every((count) => count === 1)).toBe(true)
  expect(outlook(fold.plan)).toEqual({ _tag: "Finished" })
  return widest
}

describe("the scheduler", () => {
  it("executes 500 random graphs of 200 tasks: every task once, in order, with no room left unused", () => {
    const random = randomFrom(seedFor("random plans"))
    let widest = 0
    const graphs = 500
    for (let count = 0; count < graphs; count++) {
      const maxParallel = 1 + Math.floor(random() * 12)
      widest = Math.max(widest, execute(graph(random, 200), maxParallel, random))
    }
    expect(widest).toBeGreaterThan(6)
    reportCount("random plans of 200 tasks executed", graphs)
  }, 240_000)

  it("never starts a less urgent task before a more urgent one that could run as well", () => {
    const ids = fc.array(fc.constantFrom(...priorities), { minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(ids, fc.integer({ min: 1, max: 10 }), (list, room) => {
        const fold = planWith(
          list.map((priority, index) => task(`t${index}`, { priority })),
          room
        )
        const rank = (one: TaskState) =>
          priorities.indexOf(one.task.priority) * 1_000 + Number(one.task.task_id.slice(1))
        const chosen = nextTasks(fold.plan).map(rank)
        const rest = readyTasks(fold.plan).map(rank).slice(chosen.length)
        expect(chosen).toEqual([...chosen].sort((a, b) => a - b))
        expect(rest.every((one) => one > Math.max(...chosen))).toBe(true)
        expect(chosen).toHaveLength(Math.min(room, list.length))
      }),
      { numRuns: 200 }
    )
  })

  it("runs three tasks at once unless told otherwise", () => {
    const fold = planWith(["a", "b", "c", "d"].map((id) => task(id)))
    expect(nextTasks(fold.plan)).toHaveLength(3)
    for (const one of nextTasks(fold.plan)) fold.begin(one)
    expect(nextTasks(fold.plan)).toEqual([])
    expect(outlook(fold.plan)).toEqual({ _tag: "Wait" })
  })

  it("tries a failed task once more, then holds back what depends on it and says why", () => {
    const fold = planWith([task("a"), task("b", { after: ["a"] }), task("c", { after: ["b"] })])
    for (const attempt of [1, 2]) {
      const [next] = nextTasks(fold.plan)
      fold.begin(next!)
      fold.fail(fold.plan.tasks[0]!)
      expect(fold.plan.tasks[0]?.attempts).toBe(attempt)
    }
    expect(outlook(fold.plan)).toEqual({
      _tag: "Stuck",
      task_ids: ["b", "c"],
      reason: "b, c cannot run: a failed 2 times: no"
    })
  })

  it("takes a cancelled task for done", () => {
    const fold = planWith([task("a"), task("b", { after: ["a"] })])
    const change = { type: "task_cancelled", task_id: "a" as TaskId, reason: "not needed" } as const
    fold.tell("plan.updated", { plan_id: planId, changes: [change] })
    expect(nextTasks(fold.plan).map((one) => one.task.task_id)).toEqual(["b"])
  })

  it("is stuck on tasks that are not there, that wait for each other, or that failed without a word", () => {
    const reasonOf = (tasks: ReadonlyArray<PlanTask>) => (outlook(planWith(tasks).plan) as { reason: string }).reason
    expect(reasonOf([task("a", { after: ["ghost"] })])).toBe("a cannot run: there is no task ghost")
    expect(reasonOf([task("a", { after: ["b"] }), task("b", { after: ["a"] })])).toBe(
      "a, b cannot run: they wait for each other"
    )
    const { plan } = planWith([task("a"), task("b", { after: ["a"] })])
    const tasks = plan.tasks.map((one, index) => (index === 0 ? { ...one, status: "failed", attempts: 2 } : one))
    expect(outlook({ ...plan, tasks } as PlanState)).toMatchObject({
      reason: "b cannot run: a failed 2 times: no reason given"
    })
  })

  it("names the agents of a plan by the plan", () => {
    const fold = planWith([task("a"), task("b")])
    expect(orchestratorIdOf(planId)).toBe("agt_1234lead")
    expect(workerIdOf(fold.plan, fold.plan.tasks[1]!)).toBe("agt_1234r1t2s1")
    expect(orchestratorIdOf(`plan_${"f".repeat(64)}` as PlanId)).toMatch(/^agt_[0-9a-z]{4,64}$/)
  })
})
