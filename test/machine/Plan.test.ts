/**
 * Goal: what a goal needs next follows from the state alone, ends in a command that
 * makes it disappear, and stops with the right name when it goes round in circles.
 * Method: goals driven step by step, every decision and every stop looked at.
 */
import { describe, expect, it } from "vitest"
import { exhaustion } from "#src/machine/decide/Exhaustion.ts"
import { loopBroken, turnBroken } from "#src/machine/decide/LoopBreakers.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { costText, durationText, stopSummary, taskLines, teamUse } from "#src/machine/view/PlanSummary.ts"
import { workspaceOf } from "#src/machine/view/Select.ts"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import type { AgentId, PlanId, TaskId } from "#src/rune/Ids.ts"
import type { Finding, PlanChange } from "#src/rune/kinds/plan.ts"
import { leadId, PlanStory, planId, task } from "../support/planStory.ts"
import { callItem, readTool, textItem } from "../support/story.ts"

const finding = (title: string, file?: string): Finding => ({
  severity: "error",
  category: "tests",
  title,
  ...(file === undefined ? {} : { file })
})

const reviewed = (story: PlanStory): PlanStory => story.carry("Review")
const criticOf = (story: PlanStory): AgentId => story.plan.critic_id!
const workerOf = (story: PlanStory, index = 0): AgentId => story.plan.tasks[index]!.agent_id!

describe("a goal", () => {
  it("needs nothing while its conversation does not run", () => {
    const story = new PlanStory()
    story.create()
    story.run({ _tag: "SubmitGoal", payload: { plan_id: planId, goal: "g", auto_start: true } })
    expect(story.works).toEqual([])
    story.run({ _tag: "CompleteAgentInit", agent_id: story.root })
    expect(story.works).toEqual(["Plan"])
    story.run({ _tag: "Pause", reason: "p" })
    expect(story.works).toEqual([])
  })

  it("goes from its plan through its tasks and a review to its end, one piece of work at a time", () => {
    const story = new PlanStory().planned([task("a"), task("b", { after: ["a"] })])
    expect(story.works).toEqual(["BeginTask"])
    expect(story.worked().works).toEqual(["BeginTask"])
    expect(story.worked().works).toEqual(["Review"])
    expect(reviewed(story).works).toEqual([])
    story.speak(criticOf(story))
    expect(story.works).toEqual(["Remind"])
    story.judged("pass")
    expect(story.works).toEqual(["Dismiss"])
    expect(story.carry("Dismiss").works).toEqual([])
    expect(story.plan.status).toBe("goal_met")
  })

  it("lets whoever speaks finish when it is met, and nobody when it is stopped", () => {
    const story = new PlanStory().planned([task("a")]).worked()
    reviewed(story)
    story.run({ _tag: "CompleteAgentInit", agent_id: criticOf(story) })
    story.run({ _tag: "StartQueued", agent_id: criticOf(story) })
    story.judged("pass")
    expect(story.works).toEqual([])
    story.speak(criticOf(story))
    expect(story.works).toEqual(["Dismiss"])
    const stopped = new PlanStory().planned([task("a")]).carry("BeginTask")
    stopped.run({ _tag: "CompleteAgentInit", agent_id: workerOf(stopped) })
    stopped.run({ _tag: "StartQueued", agent_id: workerOf(stopped) })
    stopped.step({ _tag: "Cancel", payload: { plan_id: planId, reason: "user_cancel" } })
    expect(stopped.works).toEqual(["Dismiss"])
    stopped.carry("Dismiss")
    expect(stopped.agentNamed(workerOf(stopped))?.status).toBe("terminated")
  })

  it("writes a step with all that belongs to it, or nothing of it", () => {
    const story = new PlanStory().planned([task("a")])
    const { length } = story.runes
    story.carry("BeginTask")
    expect(story.kinds.slice(length)).toEqual([
      "plan.task_assigned",
      "plan.task_started",
      "agent.spawning",
      "turn.queued"
    ])
    const ids = { plan_id: planId, task_id: "a" as TaskId }
    const refusal = story.refused({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "CompleteTask", payload: { ...ids, result: "", evidence: [] } },
      say: { agent_id: "agt_nobody" as AgentId, content: "thanks" }
    })
    expect(refusal.code).toBe("not_found")
    expect(story.plan.tasks[0]?.status).toBe("running")
  })

  it("takes no step twice, none of another plan, and none of a task that is not there", () => {
    const story = new PlanStory().planned([task("a")]).worked()
    const ids = { plan_id: planId, task_id: "a" as TaskId }
    const send = (step: Parameters<PlanStory["step"]>[0]) =>
      story.refused({ _tag: "AdvancePlan", plan_id: planId, step })
    expect(send({ _tag: "CompleteTask", payload: { ...ids, result: "", evidence: [] } }).data).toEqual({
      state: "completed"
    })
    expect(send({ _tag: "StartTask", payload: { ...ids, task_id: "x" as TaskId, attempt: 1 } }).code).toBe("not_found")
    const foreign = "plan_other" as PlanId
    expect(send({ _tag: "BeginReview", payload: { plan_id: foreign, iteration: 1 } }).code).toBe("bad_request")
    const payload = { plan_id: planId, findings: [], verdict: "pass" as const }
    const met = { payload: { plan_id: foreign, summary: "", evidence: [] } }
    expect(send({ _tag: "PassCritique", critique: { payload }, met }).code).toBe("bad_request")
  })

  it("takes a yes only for the plan that was seen, and changes none that waits for one", () => {
    const story = new PlanStory().goal({ auto_start: false }).carry("Plan").speak(leadId)
    const payload = { plan_id: planId, tasks: [task("a")] }
    story.step({ _tag: "CreatePlan", payload })
    expect(
      story.refused({ _tag: "AdvancePlan", plan_id: planId, step: { _tag: "CreatePlan", payload } }).message
    ).toMatch(/a plan was already submitted/)
    story
      .step({ _tag: "RejectPlan", payload: { plan_id: planId, reason: "no" } })
      .carry("Plan")
      .speak(leadId)
    story.step({ _tag: "CreatePlan", payload })
    const approve = { _tag: "ApprovePlan", payload: { plan_id: planId, approver: "ada" } } as const
    const yes = (revision: number) => ({ _tag: "AdvancePlan", plan_id: planId, revision, step: approve }) as const
    expect(story.refused(yes(1))).toMatchObject({
      code: "invalid_state",
      message: "the plan is at revision 2 now, not 1"
    })
    const change = (one: PlanChange) =>
      ({
        _tag: "AdvancePlan",
        plan_id: planId,
        step: { _tag: "UpdatePlan", payload: { plan_id: planId, changes: [one] } }
      }) as const
    expect(story.refused(change({ type: "task_added", task: task("b") })).code).toBe("invalid_state")
    story.run(change({ type: "task_noted", task_id: "a" as TaskId, note: "seen" }))
    story.run(yes(2))
    expect(story.plan).toMatchObject({ status: "executing", tasks: [{ note: "seen" }] })
  })

  it("starts no task before those it depends on, and claims nothing whose evidence failed", () => {
    const story = new PlanStory().planned([task("a"), task("b", { after: ["a"] })])
    const send = (step: Parameters<PlanStory["step"]>[0]) =>
      story.refused({ _tag: "AdvancePlan", plan_id: planId, step }).message
    const agent_id = "agt_early1" as AgentId
    const early = { plan_id: planId, task_id: "b" as TaskId, agent_id }
    expect(send({ _tag: "AssignTask", payload: early })).toBe("b waits for a")
    story.carry("BeginTask")
    const evidence = [{ spec: { type: "file", path: "x" } as const, passed: false }]
    const claim = { plan_id: planId, task_id: "a" as TaskId, result: "done", evidence }
    expect(send({ _tag: "CompleteTask", payload: claim })).toBe("CompleteTask needs evidence that has passed")
    const critique = { payload: { plan_id: planId, findings: [], verdict: "pass" as const } }
    const met = { payload: { plan_id: planId, summary: "", evidence } }
    expect(send({ _tag: "PassCritique", critique, met })).toBe("PassCritique needs evidence that has passed")
    const unchecked = { payload: { ...met.payload, evidence: [] } }
    expect(send({ _tag: "PassCritique", critique, met: unchecked })).toBe("PassCritique needs evidence that has passed")
  })

  it("is another plan each time", () => {
    const story = new PlanStory().goal()
    story.step({ _tag: "Cancel", payload: { plan_id: planId, reason: "user_cancel" } })
    const payload = { plan_id: planId, goal: "again", auto_start: true }
    expect(story.refused({ _tag: "SubmitGoal", payload }).message).toMatch(/submit a new goal for another plan/)
  })

  it("ends with its conversation", () => {
    const story = new PlanStory().planned([task("a")])
    story.run({ _tag: "Close", reason: "enough" })
    expect(story.plan).toMatchObject({ status: "stopped", reason: "conversation_closed" })
    const over = new PlanStory().goal()
    over.step({ _tag: "Cancel", payload: { plan_id: planId, reason: "user_cancel" } })
    over.run({ _tag: "Close", reason: "enough" })
    expect(over.plan.reason).toBe("user_cancel")
  })
})

describe("a plan", () => {
  it("is asked for again, then no more", () => {
    const story = new PlanStory().goal().carry("Plan")
    expect(story.works).toEqual([])
    for (let turn = 1; turn <= limits.remindersMax; turn++) {
      story.speak(leadId)
      expect(story.work("Remind")).toMatchObject({ agent_id: leadId, turns: turn, of: "plan" })
      story.carry("Remind")
    }
    story.speak(leadId)
    expect(story.work("Stop")).toMatchObject({ step: "BreakLoop", reason: "planner_silent" })
    story.carry("Stop")
    expect(story.plan).toMatchObject({ status: "stopped", reason: "planner_silent" })
    expect(story.agentNamed(leadId)?.status).toBe("terminated")
  })

  it("is not asked for twice by two who look at the same time", () => {
    const story = new PlanStory().goal().carry("Plan").speak(leadId)
    const { turns } = story.work("Remind")
    const prompt = { _tag: "PromptTeam", plan_id: planId, agent_id: leadId, turns, content: "well?" } as const
    story.run(prompt)
    expect(story.refused(prompt).message).toMatch(/asked again in the meantime/)
    expect(story.refused({ ...prompt, plan_id: "plan_other" as PlanId }).code).toBe("not_found")
  })

  it("says what went wrong when the planner cannot speak", () => {
    const story = new PlanStory().goal().carry("Plan").speak(leadId)
    for (let turn = 0; turn < limits.remindersMax; turn++) {
      story.carry("Remind")
      const error = { error_type: "auth", message: "no key", retryable: false }
      story.run({ _tag: "FailTurn", agent_id: leadId, error })
    }
    expect(story.work("Stop").detail).toMatch(/no plan in 3 turns: no key/)
  })

  it("waits for a person when it is to, and is shown to them", () => {
    const story = new PlanStory().goal({ auto_start: false }).carry("Plan").speak(leadId)
    const approve = { _tag: "ApprovePlan", payload: { plan_id: planId, approver: "ada" } } as const
    expect(story.refused({ _tag: "AdvancePlan", plan_id: planId, step: approve }).message).toMatch(/no plan has been/)
    expect(attentionItems(story.state)).toEqual([])
    story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task("a")] } })
    expect(story.works).toEqual(["AwaitPerson"])
    expect(attentionItems(story.state)).toMatchObject([
      { type: "plan", event_id: story.plan.proposed, title: "a plan of 1 tasks waits for approval: a goal" }
    ])
    expect(attentionOf(story.state)).toBe("awaiting_approval")
    story.carry("AwaitPerson")
    expect(story.works).toEqual(["Baseline"])
    story.carry("Baseline")
    expect(story.works).toEqual(["BeginTask"])
    expect(attentionItems(story.state)).toEqual([])
  })

  it("waits for a person when it says so itself", () => {
    const story = new PlanStory().goal().carry("Plan").speak(leadId)
    const payload = { plan_id: planId, tasks: [task("a")], needs_approval: "no sandbox" }
    story.step({ _tag: "CreatePlan", payload })
    expect(story.works).toEqual(["AwaitPerson"])
  })

  it("is revised when it is rejected, and given up after five", () => {
    const story = new PlanStory().goal({ auto_start: false })
    for (let attempt = 1; attempt <= limits.planAttemptsMax; attempt++) {
      expect(story.work("Plan").attempt).toBe(attempt)
      story.carry("Plan").speak(leadId)
      story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task("a")] } })
      story.step({ _tag: "RejectPlan", payload: { plan_id: planId, reason: "no" } })
    }
    expect(story.work("Stop")).toMatchObject({ reason: "plans_rejected" })
  })

  it("stops when the agent that leads is gone", () => {
    const story = new PlanStory().planned([task("a")])
    story.run({ _tag: "KillAgent", agent_id: leadId, reason: "k", force: true })
    expect(story.work("Stop")).toMatchObject({ reason: "orchestrator_ended" })
    story.carry("Stop")
    expect(story.works).toEqual([])
  })

  it("is changed where nobody works, and nowhere else", () => {
    const story = new PlanStory().planned([task("a"), task("b", { after: ["a"] })]).carry("BeginTask")
    const update = (change: PlanChange) =>
      ({ _tag: "UpdatePlan", payload: { plan_id: planId, changes: [change] } }) as const
    const refused = (change: PlanChange) =>
      story.refused({ _tag: "AdvancePlan", plan_id: planId, step: update(change) })
    expect(refused({ type: "task_changed", task: task("a") }).data).toEqual({ state: "running" })
    expect(refused({ type: "task_cancelled", task_id: "a" as TaskId, reason: "no" }).data).toEqual({ state: "running" })
    expect(refused({ type: "task_added", task: task("b") }).message).toMatch(/task b already exists/)
    story.step(update({ type: "task_added", task: task("c") }))
    story.step(update({ type: "task_changed", task: task("ghost") }))
    story.step(update({ type: "task_noted", task_id: "a" as TaskId, note: "half-way" }))
    expect(story.plan.tasks[0]).toMatchObject({ status: "running", note: "half-way" })
    expect(story.plan.tasks).toHaveLength(3)
  })
})

describe("a task", () => {
  it("is settled when its worker has ended its turn, or is gone", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b")])
      .carry("BeginTask")
      .carry("BeginTask")
    expect(story.works).toEqual([])
    story.speak(workerOf(story, 0))
    story.run({ _tag: "KillAgent", agent_id: workerOf(story, 1), reason: "k", force: true })
    expect(story.works).toEqual(["SettleTask", "SettleTask"])
    story.carry("SettleTask")
    expect(story.plan.tasks[0]?.status).toBe("completed")
    expect(story.agentNamed(workerOf(story, 0))?.status).toBe("terminated")
  })

  it("goes to another worker when it failed, and the first one is gone", () => {
    const story = new PlanStory().planned([task("a")]).worked("failed")
    const first = workerOf(story)
    expect(story.plan.tasks[0]).toMatchObject({ status: "failed", failure: { code: "evidence_failed" } })
    story.worked()
    expect(workerOf(story)).not.toBe(first)
    expect(story.plan.tasks[0]).toMatchObject({ status: "completed", failure: null, attempts: 2, starts: 2 })
  })

  it("that failed for good blocks the rest; a changed plan unblocks it", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b", { after: ["a"] })])
      .worked("failed")
      .worked("failed")
    expect(story.work("Block").task_ids).toEqual(["b"])
    story.carry("Block")
    expect(story.works).toEqual([])
    const changes = [{ type: "task_changed", task: task("a") } as const]
    story.step({ _tag: "UpdatePlan", payload: { plan_id: planId, changes } })
    expect(story.carry("Unblock").plan.status).toBe("executing")
    expect(story.work("BeginTask")).toMatchObject({ task_id: "a", start: 3 })
    story.worked().worked()
    expect(story.works).toEqual(["Review"])
  })

  it("that nobody needs any more unblocks the review", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b", { after: ["a"] })])
      .worked("failed")
      .worked("failed")
    story.carry("Block")
    const changes = [{ type: "task_cancelled", task_id: "b" as TaskId, reason: "dropped" } as const]
    story.step({ _tag: "UpdatePlan", payload: { plan_id: planId, changes } })
    expect(story.carry("Unblock").works).toEqual(["Review"])
  })

  it("blocks until the orchestrator has nothing more to say, and not for ever", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b", { after: ["a"] })])
      .worked("failed")
      .worked("failed")
    story.carry("Block").speak(leadId)
    expect(story.work("Stop")).toMatchObject({ step: "GiveUp", reason: "unresolvable" })
    const again = new PlanStory().planned([task("a"), task("b", { after: ["a"] })])
    for (let block = 0; block < limits.planBlocksMax; block++) {
      again.worked("failed").worked("failed").carry("Block")
      again.step({
        _tag: "UpdatePlan",
        payload: { plan_id: planId, changes: [{ type: "task_changed", task: task("a") }] }
      })
      again.carry("Unblock")
    }
    again.worked("failed").worked("failed")
    expect(again.work("Stop")).toMatchObject({ step: "BreakLoop", reason: "unresolvable" })
  })

  it("gives up with the plain truth when there is no reason on record", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b", { after: ["a"] })])
      .worked("failed")
      .worked("failed")
    story.carry("Block").speak(leadId)
    const plan = { ...story.plan, reason: null }
    const [effect] = pendingWork({ ...story.state, plan }).filter((one) => one._tag === "PlanWork")
    expect(effect?.work).toMatchObject({ detail: "nothing can run" })
  })
})

describe("a review", () => {
  it("is asked for again, then no more", () => {
    const story = new PlanStory().planned([task("a")]).worked()
    reviewed(story)
    for (let turn = 1; turn <= limits.remindersMax; turn++) {
      story.speak(criticOf(story))
      expect(story.work("Remind")).toMatchObject({ of: "review", turns: turn })
      story.carry("Remind")
    }
    story.speak(criticOf(story))
    expect(story.work("Stop")).toMatchObject({ reason: "critic_silent", detail: "the critic gave no verdict" })
  })

  it("ends with a critic that is gone or was never there", () => {
    const story = new PlanStory().planned([task("a")]).worked()
    reviewed(story)
    story.run({ _tag: "KillAgent", agent_id: criticOf(story), reason: "k", force: true })
    expect(story.work("Stop")).toMatchObject({ reason: "critic_silent" })
    const alone = new PlanStory().planned([task("a")]).worked()
    alone.step({ _tag: "BeginReview", payload: { plan_id: planId, iteration: 1 } })
    expect(alone.work("Stop")).toMatchObject({ detail: "there is no critic" })
  })

  it("that finds something sends the work back, ten times at most", () => {
    const story = new PlanStory().planned([task("a")])
    for (let iteration = 1; iteration <= limits.planIterationsMax; iteration++) {
      story.worked()
      expect(story.work("Review").iteration).toBe(iteration)
      reviewed(story).judged("retry", [finding(`no ${iteration}`)])
      const change = { type: "task_added", task: task(`fix-${iteration}`) } as const
      story.step({ _tag: "UpdatePlan", payload: { plan_id: planId, changes: [change] } })
    }
    story.worked()
    expect(story.work("Stop")).toMatchObject({ reason: "iterations_exhausted" })
  })

  it("may ask for a new plan three times", () => {
    const story = new PlanStory().planned([task("a")])
    for (let replan = 1; replan <= limits.planReplansMax + 1; replan++) {
      story.worked()
      reviewed(story).judged("replan", [finding(`wrong ${replan}`)])
      if (replan > limits.planReplansMax) break
      story.speak(leadId)
      story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task(`a${replan}`)] } })
      story.approved()
    }
    expect(story.work("Stop")).toMatchObject({ reason: "replans_exhausted" })
  })

  it("that says the same three times, or takes turns with another, is a loop", () => {
    const judge = (titles: ReadonlyArray<string>) => {
      const story = new PlanStory().planned([task("a")]).worked()
      for (const title of titles) reviewed(story).judged("retry", [finding(title, "f.ts")])
      return loopBroken(story.state, story.plan)
    }
    expect(judge(["x", "x"])).toBeUndefined()
    expect(judge(["x", "x", "x"])).toMatchObject({
      reason: "verdict_ping_pong",
      detail: "the critic reported the same findings 3 times"
    })
    expect(judge(["x", "y", "x"])).toBeUndefined()
    expect(judge(["x", "y", "x", "y"])).toMatchObject({ detail: "two verdicts alternate" })
    expect(judge(["x", "y", "z", "y"])).toBeUndefined()
    expect(judge(["x", "y", "x", "z"])).toBeUndefined()
    expect(judge(["x", "z", "y", "y"])).toBeUndefined()
  })
})

describe("a loop breaker", () => {
  it("stops spending that leads nowhere, and what takes too long", () => {
    const story = new PlanStory().planned([task("a")], { options: { tokens_without_progress: 20 } })
    expect(loopBroken(story.state, story.plan)).toBeUndefined()
    story.carry("BeginTask").speak(workerOf(story))
    expect(loopBroken(story.state, story.plan)).toBeUndefined()
    story.post("and")
    story.request()
    story.respond([textItem("more")])
    expect(story.work("Stop")).toMatchObject({ step: "BreakLoop", reason: "spend_without_progress" })
    const late = new PlanStory().goal({ budget: { wall_ms: 20 } })
    expect(late.works).toEqual(["Plan", "Deadline"])
    expect(late.work("Deadline").due_ms).toBe(late.plan.started_ms + 20)
    late.carry("Deadline")
    expect(late.plan).toMatchObject({ status: "stopped", reason: "budget_exhausted" })
    expect(late.works).toEqual([])
  })

  it("counts what is achieved as progress", () => {
    const story = new PlanStory().planned([task("a"), task("b")], { options: { tokens_without_progress: 20 } })
    story.worked().worked()
    expect(story.works).toEqual(["Review"])
    expect(story.plan.progress_tokens).toBe(45)
  })

  it("stops the goal when a task was lost in a loop", () => {
    const story = new PlanStory().planned([task("a")])
    const error = { code: "repeated_tool_calls", message: "six times" }
    for (const attempt of [1, 2]) {
      story.carry("BeginTask")
      const payload = { plan_id: planId, task_id: "a" as TaskId, attempt, error }
      story.step({ _tag: "FailTask", payload })
    }
    expect(story.work("Stop")).toMatchObject({ reason: "repeated_tool_calls", detail: "a: six times" })
  })

  it("waits for room when as many agents live as may", () => {
    const story = new PlanStory().planned([task("a"), task("b")])
    const crowd = limits.agentsAliveMax - story.state.agents.length - 1
    const guest = (at: number) => `agt_guest${at}` as AgentId
    const come = (at: number) => story.run({ _tag: "SpawnAgent", spec: { agent_id: guest(at), role: "w", model: "m" } })
    const go = (at: number) => story.run({ _tag: "KillAgent", agent_id: guest(at), reason: "over", force: true })
    for (let at = 0; at < crowd; at++) come(at)
    expect(story.works).toEqual(["BeginTask"])
    come(crowd)
    expect(story.works).toEqual([])
    for (let at = 0; at <= crowd; at++) go(at)
    story.worked().worked()
    expect(story.works).toEqual(["Review"])
    for (let at = 1_000; story.works.length > 0; at++) come(at)
    expect(story.plan.status).toBe("executing")
  })

  it("ends a turn that makes the same call over and over, and no other", () => {
    const story = new PlanStory().planned([task("a")]).carry("BeginTask")
    const agent_id = workerOf(story)
    story.run({ _tag: "CompleteAgentInit", agent_id })
    story.run({ _tag: "StartQueued", agent_id })
    const call = (name: string, text: string, output: string) => {
      story.request(agent_id)
      story.respond([callItem(name, readTool, text)], agent_id)
      const { call_id } = story.state.calls[0]!
      story.start(call_id)
      story.finish(call_id, output)
      story.run({ _tag: "SettleTools", agent_id, hooks: [] })
      return turnBroken(story.agentNamed(agent_id)!)
    }
    for (let count = 0; count <= limits.sameCallsMax; count++) expect(call("wait_agent", "{}", "busy")).toBeUndefined()
    for (let count = 1; count < limits.sameCallsMax; count++) expect(call("read", '{"path":"a"}', "x")).toBeUndefined()
    expect(call("read", '{"path":"b"}', "x")).toBeUndefined()
    expect(call("list", '{"path":"b"}', "x")).toBeUndefined()
    expect(call("list", '{"path":"b"}', "y")).toBeUndefined()
    for (let count = 2; count < limits.sameCallsMax; count++) expect(call("list", '{"path":"b"}', "y")).toBeUndefined()
    expect(call("list", '{"path":"b"}', "y")).toMatchObject({ reason: "repeated_tool_calls" })
    story.carry("BreakTurn")
    expect(story.agentNamed(agent_id)?.last_error?.code).toBe("repeated_tool_calls")
    expect(story.works).toEqual(["SettleTask"])
  })

  it("ends a turn that sums itself up before every call", () => {
    const story = new PlanStory().planned([task("a")]).carry("BeginTask")
    const agent_id = workerOf(story)
    story.run({ _tag: "CompleteAgentInit", agent_id })
    story.run({ _tag: "StartQueued", agent_id })
    const { turn } = story.agentNamed(agent_id)!
    const place = { agent_id, turn_id: turn!.turn_id }
    const compact = () => story.tell("turn.compacted", { upto: story.state.head, summary: "s" }, place)
    for (let count = 1; count < limits.compactionsInRowMax; count++) compact()
    expect(turnBroken(story.agentNamed(agent_id)!)).toBeUndefined()
    compact()
    expect(story.work("BreakTurn")).toMatchObject({ reason: "compaction_without_headroom" })
  })

  it("forgives summing up now and then", () => {
    const story = new PlanStory().inBatch(callItem("a", readTool)) as PlanStory
    const compact = () => story.tell("turn.compacted", { upto: 1, summary: "s" })
    compact()
    expect(story.turn.compactions).toBe(1)
    const next = () => {
      const { call_id } = story.state.calls[0]!
      story.start(call_id)
      story.finish(call_id)
      story.settle()
      story.request()
      story.respond([callItem("a", readTool)])
    }
    next()
    next()
    compact()
    expect(story.turn.compactions).toBe(1)
    story.tell("turn.compacted", { upto: 1, summary: "s" }, { agent_id: "agt_nobody" as AgentId })
  })
})

describe("a budget that is used up", () => {
  const usedUp = (node: string) => ({ which: "tokens", used: 12, limit: 10, node }) as const

  it("suspends the conversation, stops a goal that is to stop, or ends one worker, by whose it is", () => {
    const patient = new PlanStory().planned([task("a")]).carry("BeginTask")
    expect(exhaustion(patient.state, workerOf(patient), usedUp(leadId))).toMatchObject({
      _tag: "ExhaustBudget",
      agent_id: leadId,
      consequence: "suspend"
    })
    const story = new PlanStory().planned([task("a")], { options: { stop_on_budget: true } }).carry("BeginTask")
    const worker = workerOf(story)
    expect(exhaustion(story.state, worker, usedUp(story.conversationId))).toMatchObject({
      _tag: "ExhaustBudget",
      consequence: "suspend"
    })
    expect(exhaustion(story.state, worker, usedUp(story.root))).toMatchObject({ _tag: "ExhaustBudget" })
    expect(exhaustion(story.state, worker, usedUp(worker))).toMatchObject({
      _tag: "ExhaustBudget",
      agent_id: worker,
      consequence: "terminate"
    })
    const stop = exhaustion(story.state, worker, usedUp(leadId))
    expect(stop).toMatchObject({ _tag: "AdvancePlan", dismiss: [leadId] })
    story.run(stop)
    expect(story.plan).toMatchObject({ status: "stopped", reason: "budget_exhausted" })
    expect(exhaustion(story.state, worker, usedUp(leadId))).toMatchObject({ _tag: "ExhaustBudget" })
  })

  it("of the root agent suspends the conversation", () => {
    const story = new PlanStory().ready() as PlanStory
    expect(exhaustion(story.state, story.root, usedUp(story.root))).toMatchObject({ consequence: "suspend" })
    story.run({ _tag: "SubmitGoal", payload: { plan_id: planId, goal: "g", auto_start: true } })
    expect(exhaustion(story.state, story.root, usedUp(story.root))).toMatchObject({ consequence: "suspend" })
  })

  it("counts those that are forgotten", () => {
    const story = new PlanStory().planned([task("a")])
    const before = teamUse(story.state, story.plan).usage.input_tokens
    const ids = Array.from({ length: limits.endedAgentsMax + 6 }, (_, index) => `agt_child${index}` as AgentId)
    for (const [index, agent_id] of ids.entries()) {
      const parent_id = index % 2 === 0 ? leadId : ids[index - 1]!
      story.run({ _tag: "SpawnAgent", spec: { agent_id, role: "w", model: "m", parent_id } })
      story.run({ _tag: "PostMessage", agent_id, content: "go", mode: "queue" })
      story.speak(agent_id)
      if (index % 2 === 1) story.run({ _tag: "KillAgent", agent_id: parent_id, reason: "k", force: true })
    }
    expect(story.agentNamed(ids[0]!)).toBeUndefined()
    expect(teamUse(story.state, story.plan).usage.input_tokens).toBe(before + ids.length * 10)
    story.run({ _tag: "SpawnAgent", spec: { agent_id: "agt_orphan" as AgentId, role: "w", model: "m" } })
    story.run({ _tag: "KillAgent", agent_id: "agt_orphan" as AgentId, reason: "k", force: true })
    for (let index = 0; index <= limits.endedAgentsMax; index++) {
      const agent_id = `agt_later${index}` as AgentId
      story.run({ _tag: "SpawnAgent", spec: { agent_id, role: "w", model: "m" } })
      story.run({ _tag: "KillAgent", agent_id, reason: "k", force: true })
    }
    expect(story.agentNamed("agt_orphan" as AgentId)).toBeUndefined()
  })
})

describe("a summary", () => {
  it("says why it stopped, what was done, what failed and what it cost", () => {
    const story = new PlanStory()
      .planned([task("a"), task("b")])
      .worked()
      .worked("failed")
    story.step({
      _tag: "UpdatePlan",
      payload: { plan_id: planId, changes: [{ type: "task_noted", task_id: "b" as TaskId, note: "it is hard" }] }
    })
    expect(stopSummary(story.state, story.plan, { reason: "user_cancel" }).split("\n")).toEqual([
      "The goal was not met (user_cancel)",
      "1 of 2 tasks were completed, 0 failed, 0 were in progress.",
      "- a (completed) do a",
      "- b (failed) do b: npm test exited with 1 – it is hard",
      "What to do next: submit the goal again when it is wanted.",
      "Cost: 45 tokens and 0 tool calls, $0.7500. Time: 0 s."
    ])
  })

  it("stays short and reads well", () => {
    const story = new PlanStory().planned(Array.from({ length: 43 }, (_, index) => task(`t${index}`)))
    expect(taskLines(story.plan.tasks)).toHaveLength(41)
    expect(taskLines(story.plan.tasks).at(-1)).toBe("- and 3 more")
    expect(durationText(75_000)).toBe("1 min 15 s")
    expect(costText({ usage: { ...teamUse(story.state, story.plan).usage, usd: 0 }, tool_calls: 1, agents: 1 })).toBe(
      "15 tokens and 1 tool calls"
    )
  })
})

describe("a place of its own", () => {
  it("is where an agent works, and the conversation's where it has none", () => {
    const story = new PlanStory().ready({ workspace: "/w" }) as PlanStory
    const agent_id = "agt_away1" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id, role: "w", model: "m", workspace: "/w/tree" } })
    expect(workspaceOf(story.state, agent_id)).toBe("/w/tree")
    expect(workspaceOf(story.state, story.root)).toBe("/w")
    expect(workspaceOf(story.state, null)).toBe("/w")
  })
})
