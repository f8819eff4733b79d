/**
 * Goal: progress of a goal is a check that turned green; what brings none is stopped with that reason, and so is whoever is
 * refused again and again; the summary says why, what failed and what to do. Method: goals driven step by step.
 */
import { describe, expect, it } from "vitest"
import { loopBroken, stopReasons, turnBroken } from "#src/machine/decide/LoopBreakers.ts"
import { mergesAlone } from "#src/machine/decide/TaskSchedule.ts"
import { errorInfo } from "#src/machine/ErrorTable.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { stopSummary } from "#src/machine/view/PlanSummary.ts"
import type { AgentId, TaskId } from "#src/rune/Ids.ts"
import type { Evidence } from "#src/rune/kinds/evidence.ts"
import type { Finding } from "#src/rune/kinds/plan.ts"
import { leadId, PlanStory, planId, task } from "../support/planStory.ts"
import { callItem, readTool } from "../support/story.ts"

const finding = (title: string): Finding => ({ severity: "error", category: "tests", title })
const check = (path: string, passed: boolean, more: Partial<Evidence> = {}): Evidence => ({
  spec: { type: "file", path },
  passed,
  ...more
})
const a = "a" as TaskId

/** The next review, with what was checked for it, and a verdict that asks for more. */
const round = (
  story: PlanStory,
  evidence: ReadonlyArray<Evidence>,
  verdict: "retry" | "replan" = "retry"
): PlanStory => {
  const iteration = story.plan.iterations + 1
  story.step({ _tag: "BeginReview", payload: { plan_id: planId, iteration, evidence } })
  return story.judged(verdict, [finding(`round ${iteration}`)])
}

const settled = (story: PlanStory, evidence: ReadonlyArray<Evidence>): PlanStory => {
  story.carry("BeginTask")
  const running = story.plan.tasks.find((one) => one.status === "running")!
  story.speak(running.agent_id!)
  const payload = { plan_id: planId, task_id: running.task.task_id, result: "done", evidence }
  return story.step({ _tag: "CompleteTask", payload })
}

describe("progress", () => {
  it("is a check that turned green: three rounds without one stop the goal with that reason", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true)])
    round(story, [check("a", true), check("b", false)])
    expect(story.plan.stale_reviews).toBe(0)
    for (let stale = 1; stale < limits.staleReviewsMax; stale++) {
      round(story, [check("a", true), check("b", false)])
      expect(loopBroken(story.state, story.plan)).toBeUndefined()
    }
    round(story, [check("a", false), check("b", false)])
    expect(story.work("Stop")).toMatchObject({
      reason: "no_progress",
      detail: "in 3 rounds no check turned green that had not passed before"
    })
  })

  it("begins to count anew with each check that turned green, and with a person who resumes the goal", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true)])
    for (const _ of [1, 2, 3]) round(story, [check("a", true), check("b", false)])
    expect(story.plan.stale_reviews).toBe(2)
    round(story, [check("a", true), check("b", true)])
    expect(story.plan.stale_reviews).toBe(0)
    round(story, [check("b", false)])
    // What was green before and is so again is no progress.
    round(story, [check("b", true)])
    expect(story.plan.stale_reviews).toBe(2)
    story.step({ _tag: "Suspend", payload: { plan_id: planId, cause: "merge", question: "?" } })
    story.run({ _tag: "ResumeGoal", plan_id: planId, reason: "go on" })
    expect(story.plan.stale_reviews).toBe(0)
  })

  it("is neither a check that passed before the work nor a review that checks nothing", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true, { was_green: true })])
    expect(story.plan.green).toEqual([])
    round(story, [])
    expect(story.plan.stale_reviews).toBe(0)
    round(story, [check("a", true, { was_green: true })])
    expect(story.plan.stale_reviews).toBe(1)
  })

  it("is left to the critic while it reviews: a pass in the third round still counts", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true)])
    for (const _ of [1, 2, 3]) round(story, [check("a", true)])
    story.step({ _tag: "BeginReview", payload: { plan_id: planId, iteration: 4, evidence: [check("a", true)] } })
    expect(story.plan.stale_reviews).toBe(3)
    expect(loopBroken(story.state, story.plan)).toBeUndefined()
  })

  it("sets the tokens that may be spent without it, and a task that shows nothing new does not", () => {
    const story = new PlanStory().planned([task("a"), task("b")])
    settled(story, [check("a", true)])
    const { progress_tokens: tokens } = story.plan
    expect(tokens).toBeGreaterThan(0)
    settled(story, [check("a", true)])
    expect(story.plan.progress_tokens).toBe(tokens)
  })
})

/** Has an agent make a call that is answered so. */
const refuse = (story: PlanStory, agentId: AgentId, name: string, nth: number, code: "invalid_arguments" | "none") => {
  story.request(agentId)
  story.respond([callItem(name, readTool, JSON.stringify({ nth }))], agentId)
  const { call_id } = story.state.calls[0]!
  story.start(call_id)
  if (code === "none") story.finish(call_id, `fine ${nth}`)
  else {
    const error = errorInfo(code, `tasks[0]: problem ${nth}`)
    story.run({ _tag: "FinishCall", call_id, status: "error", error, duration_ms: 1 })
  }
  story.run({ _tag: "SettleTools", agent_id: agentId, hooks: [] })
}

const begun = (story: PlanStory, agentId: AgentId): AgentId => {
  story.run({ _tag: "CompleteAgentInit", agent_id: agentId })
  story.run({ _tag: "StartQueued", agent_id: agentId })
  return agentId
}

describe("refusals", () => {
  it("of ten plans in a row stop the goal and say what was wrong, whatever was read in between", () => {
    const story = new PlanStory().goal().carry("Plan")
    begun(story, leadId)
    for (let nth = 1; nth < limits.refusalsInRowMax; nth++) {
      refuse(story, leadId, "submit_plan", nth, "invalid_arguments")
      refuse(story, leadId, "read_file", nth, "none")
      expect(loopBroken(story.state, story.plan)).toBeUndefined()
    }
    refuse(story, leadId, "submit_plan", 10, "invalid_arguments")
    expect(story.work("Stop")).toMatchObject({
      reason: "plans_refused",
      detail: "10 plans in a row were refused; the last one: tasks[0]: problem 10"
    })
    story.carry("Stop")
    expect(story.plan).toMatchObject({ status: "stopped", reason: "plans_refused" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("of ten reviews in a row do the same", () => {
    const story = settled(new PlanStory().planned([task("a")]), []).carry("Review")
    const critic = begun(story, story.plan.critic_id!)
    for (let nth = 1; nth <= limits.refusalsInRowMax; nth++) {
      expect(loopBroken(story.state, story.plan)).toBeUndefined()
      refuse(story, critic, "submit_review", nth, "invalid_arguments")
    }
    expect(story.work("Stop")).toMatchObject({ reason: "reviews_refused" })
  })

  it("of ten calls of a worker in a row end its turn, and one that was accepted begins anew", () => {
    const story = new PlanStory().planned([task("a")]).carry("BeginTask")
    const worker = begun(story, story.plan.tasks[0]!.agent_id!)
    const broken = () => turnBroken(story.agentNamed(worker)!)
    for (let nth = 1; nth < limits.refusalsInRowMax; nth++) refuse(story, worker, "bash", nth, "invalid_arguments")
    refuse(story, worker, "bash", 10, "none")
    expect(broken()).toBeUndefined()
    for (let nth = 11; nth < 20; nth++) refuse(story, worker, "bash", nth, "invalid_arguments")
    expect(broken()).toBeUndefined()
    refuse(story, worker, "bash", 20, "invalid_arguments")
    expect(broken()).toEqual({
      reason: "refused_tool_calls",
      detail: "10 tool calls in a row were refused; the last one: tasks[0]: problem 20"
    })
    story.carry("BreakTurn")
    expect(story.works).toEqual(["SettleTask"])
  })
})

describe("a task", () => {
  const returned = (story: PlanStory) => {
    const { agent_id, task: one } = story.plan.tasks[0]!
    const error = { code: "merge_conflict", message: "others changed the same lines in a.txt" }
    return story.run({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "ReturnTask", payload: { plan_id: planId, task_id: one.task_id, agent_id: agent_id!, error } },
      say: { agent_id: agent_id!, content: "both sides" }
    })
  }

  it("whose work conflicts is back with the same worker, at no attempt, and the second time before anything else moves", () => {
    const story = new PlanStory().planned([task("a"), task("b"), task("c"), task("d")])
    for (const _ of [1, 2, 3]) story.carry("BeginTask")
    const [first, second] = story.plan.tasks.map((one) => one.agent_id!)
    story.speak(first!).speak(second!)
    const before = story.planWork.map(({ key }) => key)
    expect(story.works).toEqual(["SettleTask", "SettleTask"])
    returned(story)
    expect(story.works).toEqual(["SettleTask"])
    story.speak(first!)
    expect(story.planWork.map(({ key }) => key)).not.toContain(before[0])
    expect(story.plan.tasks[0]).toMatchObject({ status: "running", attempts: 1, returns: 1, agent_id: first })
    expect(story.works).toEqual(["SettleTask", "SettleTask"])
    returned(story)
    expect(mergesAlone(story.plan.tasks[0]!)).toBe(true)
    expect(story.works).toEqual([])
    story.speak(first!)
    expect(story.work("SettleTask")).toMatchObject({ task_id: "a", returns: 2 })
    expect(story.works).toEqual(["SettleTask"])
    story.carry("SettleTask")
    expect(story.works).toEqual(["SettleTask", "BeginTask"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("that broke something is open again with what it broke, at no attempt", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true)])
    const error = { code: "regression", message: "its work broke b" }
    story.step({ _tag: "ReopenTask", payload: { plan_id: planId, task_id: a, error, evidence: [check("b", false)] } })
    expect(story.plan.tasks[0]).toMatchObject({
      status: "pending",
      attempts: 0,
      reopens: 1,
      regressions: [{ type: "file", path: "b" }],
      tries: [{ counted: false, code: "regression" }]
    })
    expect(story.works).toEqual(["BeginTask"])
    story.step({
      _tag: "UpdatePlan",
      payload: { plan_id: planId, changes: [{ type: "task_changed", task: task("a") }] }
    })
    expect(story.plan.tasks[0]?.reopens).toBe(1)
    expect(checkInvariants(story.runes)).toEqual([])
    const open = { _tag: "ReopenTask", payload: { plan_id: planId, task_id: a, error, evidence: [] } } as const
    expect(story.refused({ _tag: "AdvancePlan", plan_id: planId, step: open }).data).toEqual({ state: "pending" })
  })

  it("whose checks or merge wait for a person is settled when the goal is resumed, not before", () => {
    const story = new PlanStory().planned([task("a")]).carry("BeginTask")
    story.speak(story.plan.tasks[0]!.agent_id!)
    for (const cause of ["policy", "merge"] as const) {
      story.step({ _tag: "Suspend", payload: { plan_id: planId, cause, question: "?" } })
      expect(story.works).toEqual([])
      story.run({ _tag: "ResumeGoal", plan_id: planId, reason: "seen to" })
      expect(story.works).toEqual(["SettleTask"])
    }
  })
})

describe("the summary of a stop", () => {
  it("names the cause, the checks that failed and what to do next, and hides what is hidden", () => {
    const story = settled(new PlanStory().planned([task("a")]), [check("a", true)])
    const evidence = [
      check("a", true),
      check("b", false, { detail: "one\nno such file" }),
      check("c", false, { origin: "hidden", detail: "SECRET" }),
      ...Array.from({ length: 12 }, (_, at) => check(`more${at}`, false))
    ]
    round(story, evidence)
    const lines = stopSummary(story.state, story.plan, { reason: "no_progress", summary: "in 3 rounds nothing" }).split(
      "\n"
    )
    expect(lines[0]).toBe("The goal was not met (no_progress): in 3 rounds nothing")
    expect(lines).toContain("Checks that failed:")
    expect(lines).toContain("- file b exists: no such file")
    expect(lines).toContain("- a check that only you know")
    expect(lines).toContain("- and 4 more")
    expect(lines.join()).not.toContain("SECRET")
    expect(lines.at(-2)).toMatch(/^What to do next: look at the checks that failed/)
  })

  it("has a next step for every reason to stop", () => {
    const story = new PlanStory().planned([task("a")])
    for (const reason of stopReasons) {
      expect(stopSummary(story.state, story.plan, { reason }), reason).toMatch(/What to do next: .+\./)
    }
    expect(stopSummary(story.state, story.plan, { reason: "of an older build" })).not.toContain("What to do next")
  })
})
