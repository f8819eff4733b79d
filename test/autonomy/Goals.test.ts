// Goal: a goal is planned, worked on, reviewed and ended as its scenario says, with the real runtime, real files and real
// programs as evidence. Method: scripted models that drive the real tools; every log is checked against the invariants.
// Verifies: INV-GOAL-EVIDENCE, INV-TASK-ORDER
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { orchestratorIdOf } from "#src/machine/decide/TaskSchedule.ts"
import { aliveAgents } from "#src/machine/view/Select.ts"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import { makePlanId } from "#src/rune/Ids.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import type { PlanTask } from "#src/rune/kinds/plan.ts"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { useWorkspaces } from "../support/autonomy/workplace.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const planKinds = (kinds: ReadonlyArray<string>) => kinds.filter((kind) => kind.startsWith("plan."))
const letterIn = (workspace: string) => readFileSync(join(workspace, "goal/letter.txt"), "utf8")

/** Runs a goal of the given scenario to its end. */
const pursue = async (way: string, more: Partial<Parameters<typeof submitGoal>[1]> = {}) => {
  const workspace = workspaces.make()
  const world = await worlds.open(goalWorld())
  const goal = await submitGoal(world, { model: `scripted/goal-${way}`, workspace, ...more })
  return { workspace, world, goal, talk: goal.talk, end: await goalEnd(goal) }
}

describe("a goal that succeeds", () => {
  it("is planned, worked on in order of dependencies, reviewed and met with its evidence", async () => {
    const { end, talk, workspace } = await pursue("success")
    expect(end.kind).toBe("plan.goal_met")
    expect(letterIn(workspace)).toContain("Dear reader")
    const kinds = planKinds(talk.kinds)
    expect(kinds.slice(0, 5)).toEqual([
      "plan.goal_received",
      "plan.planning_started",
      "plan.created",
      "plan.baseline_checked",
      "plan.approved"
    ])
    expect(talk.of("plan.baseline_checked")[0]?.payload.evidence.map((one) => one.passed)).toEqual(Array(6).fill(false))
    expect(kinds.slice(-3)).toEqual(["plan.review_started", "plan.critique", "plan.goal_met"])
    const order = talk.of("plan.task_completed").map((rune) => rune.payload.task_id)
    expect(order).toHaveLength(3)
    expect(order.at(-1)).toBe("letter")
    expect(talk.of("plan.task_started").map((rune) => rune.payload.attempt)).toEqual([1, 1, 1])
  })

  it("says what was done, which files changed, what was checked, what it cost and how long it took", async () => {
    const { end } = await pursue("success")
    if (end.kind !== "plan.goal_met") throw new Error(end.kind)
    const { changes, evidence, summary, usage, wall_ms } = end.payload
    expect(summary).toMatch(/^The goal is met: Write a letter\n/)
    expect(summary).toMatch(/Changed files: 3\n- goal\/body\.txt/)
    expect(summary).toMatch(/command `grep -q Dear goal\/letter\.txt` exits with 0/)
    expect(summary).toMatch(/Cost: \d+ tokens and \d+ tool calls.* Time: \d+ s\./)
    expect(changes?.map((one) => one.path)).toEqual(["goal/body.txt", "goal/greeting.txt", "goal/letter.txt"])
    expect(evidence).toHaveLength(6)
    expect(evidence.every((one) => one.passed)).toBe(true)
    expect(usage?.input_tokens).toBeGreaterThan(0)
    expect(wall_ms).toBeGreaterThanOrEqual(0)
  })

  it("leaves none of its agents behind, and another goal can follow in the same conversation", async () => {
    const { goal, talk, workspace } = await pursue("success")
    const lead = orchestratorIdOf(goal.planId)
    await talk.until("agent.terminated", 5)
    const state = await talk.state()
    expect(aliveAgents(state).map((agent) => agent.agent_id)).toEqual([talk.root])
    expect(state.agents.find((agent) => agent.agent_id === lead)?.status).toBe("terminated")
    // What is there already would show nothing about the second one.
    rmSync(join(workspace, "goal"), { recursive: true })
    await talk.submit({
      _tag: "SubmitGoal",
      payload: { plan_id: "plan_second" as never, goal: "Write it again", auto_start: true }
    })
    await talk.until("plan.goal_met", 2)
  })

  it("gives the orchestrator and the critic only tools that read, and what they hand in", async () => {
    const { talk } = await pursue("success")
    const state = await talk.state()
    const roles = new Map(state.agents.map((agent) => [agent.agent_id, agent.role]))
    const used = talk.of("tool.call").map((rune) => `${roles.get(rune.agent_id!)} ${rune.payload.tool_name}`)
    expect(used.filter((one) => one.startsWith("orchestrator"))).toEqual([
      "orchestrator list_files",
      "orchestrator submit_plan"
    ])
    expect(used.filter((one) => one.startsWith("critic"))).toEqual(["critic read_file", "critic submit_review"])
  })

  it("is chosen by a word in the goal as well as by the name of the scenario", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const asked = { model: "scripted/goal", workspace, goal: "Write a letter [stuck]" }
    expect((await goalEnd(await submitGoal(world, asked))).payload).toMatchObject({ reason: "unresolvable" })
    const plain = { ...asked, goal: "Write a letter", workspace: workspaces.make() }
    expect((await goalEnd(await submitGoal(world, plain))).kind).toBe("plan.goal_met")
    const demo = { model: "scripted/demo", workspace: workspaces.make(), goal: "Write a letter [liar]" }
    expect((await goalEnd(await submitGoal(world, demo))).kind).toBe("plan.goal_met")
  })
})

describe("a plan that waits for a person", () => {
  it("is revised when it is rejected, with the reason told to the orchestrator", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-rejected", workspace, auto_start: false })
    const { planId: plan_id, talk } = goal
    const approval = { plan_id, approver: "ada" }
    await expect(
      talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "ApprovePlan", payload: approval } })
    ).rejects.toMatchObject({ refusal: { code: "invalid_state" } })
    await talk.until("plan.created")
    const reason = "the letter must be checked, too"
    await talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "RejectPlan", payload: { plan_id, reason } } })
    await talk.until("plan.created", 2)
    expect(JSON.stringify(talk.of("turn.started").map((rune) => rune.payload.input))).toContain(reason)
    expect(talk.of("plan.created")[1]?.payload).toMatchObject({ revision: 2, tasks: [{}, {}, {}] })
    expect(talk.of("plan.task_assigned")).toEqual([])
    await talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "ApprovePlan", payload: approval } })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
  })

  it("is given up when every plan is rejected", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-rejected", workspace, auto_start: false })
    const { planId: plan_id, talk } = goal
    for (let plan = 1; plan <= 5; plan++) {
      await talk.until("plan.created", plan)
      const payload = { plan_id, reason: `no, for the ${plan}. time` }
      await talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "RejectPlan", payload } })
    }
    expect((await goalEnd(goal)).payload).toMatchObject({ reason: "plans_rejected" })
  })

  it("waits although it was to start by itself when its commands would run without a sandbox", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld({ runner: new TestRunner({ contained: false }) }))
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace })
    const { planId: plan_id, talk } = goal
    const created = await talk.until("plan.created")
    expect(created.payload.needs_approval).toMatch(/no sandbox/)
    const state = await talk.state()
    expect(state.plan).toMatchObject({ status: "planning", proposed: created.event_id })
    expect(attentionItems(state)).toMatchObject([{ type: "plan", event_id: created.event_id }])
    expect(attentionOf(state)).toBe("awaiting_approval")
    expect(world.conversations.unload(talk.id)).toBe(false)
    const step = { _tag: "ApprovePlan", payload: { plan_id, approver: "ada" } } as const
    await talk.submit({ _tag: "AdvancePlan", plan_id, step })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
  })
})

describe("work that is not done", () => {
  it("is found out: a worker that says done and did nothing is caught by the evidence, and another one does it", async () => {
    const { end, talk } = await pursue("liar")
    expect(end.kind).toBe("plan.goal_met")
    const [failed] = talk.of("plan.task_failed")
    expect(failed?.payload).toMatchObject({ attempt: 1, error: { code: "evidence_failed" } })
    expect(failed?.payload.error.message).toMatch(/there is no goal\/letter\.txt/)
    expect(failed?.payload.evidence?.map((one) => one.passed)).toEqual([false, false])
    expect(talk.of("plan.task_started").map((rune) => rune.payload.attempt)).toEqual([1, 2])
    expect(talk.of("plan.task_completed")).toHaveLength(1)
  })

  it("is not shown by a command that the policy denies: the goal waits with the rule, and costs no attempt", async () => {
    const workspace = workspaces.make()
    const runner = new TestRunner()
    const world = await worlds.open(goalWorld({ runner }))
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace, auto_start: false })
    const { planId: plan_id, talk } = goal
    await talk.until("plan.created")
    runner.rules = [{ decision: "deny", tool: "bash", command: ["grep", "**"], reason: "no looking" }]
    const step = { _tag: "ApprovePlan", payload: { plan_id, approver: "ada" } } as const
    await talk.submit({ _tag: "AdvancePlan", plan_id, step })
    const suspended = await talk.until("plan.suspended")
    expect(suspended.payload).toMatchObject({ cause: "policy", question: expect.stringMatching(/no looking.*resume/) })
    expect(suspended.payload.question).toContain("it was not run, the policy denies it: rule 1 denies bash: no looking")
    expect(attentionItems(await talk.state())).toMatchObject([{ type: "suspended", title: suspended.payload.question }])
    expect(runner.commands.filter((one) => one.startsWith("grep"))).toEqual([])
    runner.rules = []
    await talk.submit({ _tag: "ResumeGoal", plan_id, reason: "allowed" })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect([...talk.of("plan.task_failed"), ...talk.of("plan.task_released")]).toEqual([])
    // What was done by then is checked again, not done again.
    expect(talk.of("plan.task_assigned")).toHaveLength(3)
  })

  it("is fixed when the critic finds it, by a task made of the finding", async () => {
    const { end, talk, workspace } = await pursue("critique")
    expect(end.kind).toBe("plan.goal_met")
    expect(letterIn(workspace)).toBe("Dear reader,\n")
    expect(talk.of("plan.critique").map((rune) => rune.payload.verdict)).toEqual(["retry", "pass"])
    expect(talk.of("plan.critique")[0]?.payload.findings[0]).toMatchObject({
      severity: "error",
      file: "goal/letter.txt",
      line: 1,
      suggested_fix: "reader"
    })
    expect(talk.of("plan.updated")[0]?.payload.changes[0]).toMatchObject({
      type: "task_added",
      task: { task_id: "fix-1-1", priority: "high", evidence: [{ type: "file" }] }
    })
    expect(talk.of("plan.review_started").map((rune) => rune.payload.iteration)).toEqual([1, 2])
  })

  it("is planned anew when the plan was wrong", async () => {
    const { end, talk } = await pursue("replan")
    expect(end.kind).toBe("plan.goal_met")
    expect(talk.of("plan.critique").map((rune) => rune.payload.verdict)).toEqual(["replan", "pass"])
    expect(talk.of("plan.created").map((rune) => rune.payload.revision)).toEqual([1, 2])
    expect(talk.of("plan.task_completed").map((rune) => rune.payload.task_id)).toEqual(["note", "letter"])
  })

  it("blocks what depends on it, and goes on when the orchestrator changes the plan", async () => {
    const { end, talk } = await pursue("blocked")
    expect(end.kind).toBe("plan.goal_met")
    expect(talk.of("plan.blocked")[0]?.payload).toMatchObject({ task_ids: ["letter"] })
    expect(talk.of("plan.blocked")[0]?.payload.reason).toMatch(
      /^letter cannot run: greeting failed 2 times: the worker said/
    )
    expect(talk.of("plan.unblocked")).toHaveLength(1)
    expect(talk.of("plan.task_failed").map((rune) => rune.payload.attempt)).toEqual([1, 2])
    expect(talk.of("plan.task_started").map((rune) => [rune.payload.task_id, rune.payload.attempt])).toEqual([
      ["greeting", 1],
      ["greeting", 2],
      ["greeting", 1],
      ["letter", 1]
    ])
  })

  it("stops the goal when nobody knows a way out, with the reason and how far it had come", async () => {
    const { end } = await pursue("stuck")
    expect(end.payload).toMatchObject({ reason: "unresolvable" })
    const { summary } = end.payload as { readonly summary: string }
    expect(summary).toMatch(/there is no greeting for this reader/)
    expect(summary).toMatch(/0 of 2 tasks were completed, 1 failed/)
    expect(summary).toMatch(/- greeting \(failed\) Write goal\/greeting\.txt/)
  })
})

describe("a loop", () => {
  it("of two verdicts that take turns is broken within four reviews", async () => {
    const { end, talk } = await pursue("oscillation")
    expect(end.payload).toMatchObject({ reason: "verdict_ping_pong" })
    expect(talk.of("plan.critique")).toHaveLength(4)
  })

  it("of reviews ends at the limit", async () => {
    const { end, talk } = await pursue("oscillation", { options: { max_iterations: 2 } })
    expect(end.payload).toMatchObject({ reason: "iterations_exhausted" })
    expect(talk.of("plan.review_started")).toHaveLength(2)
  })

  it("of the same tool call ends the turn, then the task, then the goal, by its name", async () => {
    const { end, talk } = await pursue("repetition")
    expect(end.payload).toMatchObject({ reason: "repeated_tool_calls" })
    expect(talk.of("turn.error").map((rune) => rune.payload.error_type)).toEqual([
      "repeated_tool_calls",
      "repeated_tool_calls"
    ])
    const calls = talk.of("tool.call").filter((rune) => rune.payload.tool_name === "list_files")
    expect(calls.length).toBeLessThanOrEqual(14)
  })

  it("of spending without progress ends at its limit", async () => {
    const { end } = await pursue("oscillation", { options: { tokens_without_progress: 10 } })
    expect(end.payload).toMatchObject({ reason: "spend_without_progress" })
  })

  it("of words without a plan ends after two reminders", async () => {
    const { end, talk } = await pursue("silence")
    expect(end.payload).toMatchObject({ reason: "planner_silent" })
    expect(talk.of("turn.started")).toHaveLength(3)
  })
})

describe("a goal that is stopped from outside", () => {
  it("ends at once when a person cancels it, whatever was under way", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-endless", workspace })
    const { planId: plan_id, talk } = goal
    await talk.until("plan.task_started", 2)
    const payload = { plan_id, reason: "user_cancel", summary: "I have changed my mind" }
    await talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "Cancel", payload } })
    const end = await goalEnd(goal)
    expect(end.payload).toMatchObject({ reason: "user_cancel" })
    expect((end.payload as { summary: string }).summary).toMatch(/I have changed my mind\n0 of 3 tasks/)
    await talk.until("agent.terminated", 3)
    expect(aliveAgents(await talk.state()).map((agent) => agent.agent_id)).toEqual([talk.root])
    expect(existsSync(join(workspace, "goal/letter.txt"))).toBe(false)
  })

  it("ends with its conversation", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-endless", workspace })
    await goal.talk.until("plan.task_started")
    await goal.talk.submit({ _tag: "Close", reason: "enough" })
    expect((await goalEnd(goal)).payload).toMatchObject({ reason: "conversation_closed" })
    await goal.talk.until("session.closed")
  })

  it("waits when its budget is used up, and continues with every finished task kept when it has more", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const model = "scripted/goal-expensive"
    const goal = await submitGoal(world, { model, workspace, budget: { tokens: 60_000 }, max_parallel: 1 })
    const { planId: plan_id, talk } = goal
    const suspended = await talk.until("session.suspended")
    const lead = orchestratorIdOf(plan_id)
    expect(suspended.payload).toMatchObject({ budget_info: { which: "tokens", limit: 60_000, agent_id: lead } })
    expect(talk.of("plan.stopped")).toEqual([])
    const done = talk.of("plan.task_completed").length
    await talk.submit({ _tag: "ResumeGoal", plan_id, reason: "more", budget: { tokens: 60_100 } })
    await talk.until("session.suspended", 2)
    await talk.submit({ _tag: "UpdateConfig", changes: {}, agent_id: lead, budget: { tokens: 10_000_000 } })
    await goalEnd(goal)
    const completed = talk.of("plan.task_completed").map((rune) => rune.payload.task_id)
    expect(new Set(completed).size).toBe(completed.length)
    expect(completed.length).toBeGreaterThanOrEqual(done)
    expect((await talk.state()).plan?.budget).toEqual({ tokens: 10_000_000 })
  })

  it("stops when its budget is used up and it is to stop then, without suspending the conversation", async () => {
    const { end, talk } = await pursue("expensive", {
      budget: { tokens: 60_000 },
      max_parallel: 1,
      options: { stop_on_budget: true }
    })
    expect(end.payload).toMatchObject({ reason: "budget_exhausted" })
    expect((end.payload as { summary: string }).summary).toMatch(/tokens: \d+ of 60000 used/)
    expect(talk.of("session.suspended")).toEqual([])
    expect((await talk.state()).session.status).toBe("active")
  })

  it("stops when its time is over, whoever is waited for", async () => {
    const { end, talk } = await pursue("endless", { budget: { wall_ms: 300 }, options: { stop_on_budget: true } })
    expect(end.payload).toMatchObject({ reason: "budget_exhausted" })
    expect((end.payload as { summary: string }).summary).toMatch(/wall_ms: 300 of 300 used/)
    expect(aliveAgents(await talk.state()).map((agent) => agent.agent_id)).toEqual([talk.root])
  })

  it("fails the task of a worker that has used up its own budget, and nothing else", async () => {
    const { end, talk } = await pursue("expensive", { options: { task_budget: { tokens: 1_000 } } })
    expect(end.payload).toMatchObject({ reason: "unresolvable" })
    expect(talk.of("plan.task_failed").map((rune) => rune.payload.error.code)).toContain("budget_exhausted")
    expect(talk.of("session.suspended")).toEqual([])
  })

  it("waits while its conversation is paused, and goes on after it", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace })
    await goal.talk.until("plan.task_completed")
    await goal.talk.submit({ _tag: "Pause", reason: "lunch" })
    await goal.talk.submit({ _tag: "Resume" })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
  })
})

describe("approvals inside a goal", () => {
  it("are asked for and, once given, the work goes on", async () => {
    const [list, read, write] = fileTools
    const asking = effectTool("write_file", write!.run, { approval: "ask", effect_class: "idempotent" })
    const world = await worlds.open(goalWorld({ tools: [list!, read!, asking] }))
    const goal = await submitGoal(world, { model: "scripted/goal-liar", workspace: workspaces.make() })
    const asked = await goal.talk.until("tool.approval_requested")
    await goal.talk.approve(asked.payload.call_id)
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
  })
})

describe("a goal in a conversation without a workspace", () => {
  const replies = [
    { when: { role: "orchestrator" }, play: [{ text: "I wait." }, { stall: true as const }] },
    { play: [{ text: "Done." }] }
  ]
  const evidence: ReadonlyArray<EvidenceSpec> = [{ type: "file", path: "letter.txt" }]

  it("ends a task that asks for no check, and fails one that does", async () => {
    const world = await worlds.open({ scenarios: { plain: { name: "plain", replies } } })
    const talk = await world.create({ model: "scripted/plain" })
    const plan_id = makePlanId(world.ids)
    await talk.submit({ _tag: "SubmitGoal", payload: { plan_id, goal: "Think", auto_start: true } })
    await talk.until("plan.planning_started")
    const task = (name: string, more: Partial<PlanTask> = {}): PlanTask => ({
      task_id: name as PlanTask["task_id"],
      title: name,
      instructions: name,
      depends_on: [],
      priority: "medium",
      ...more
    })
    const tasks = [task("think"), task("write", { evidence })]
    await talk.submit({ _tag: "AdvancePlan", plan_id, step: { _tag: "CreatePlan", payload: { plan_id, tasks } } })
    await talk.until("plan.task_completed")
    await talk.until("plan.task_failed")
    expect(talk.of("plan.task_completed").map((rune) => rune.payload.task_id)).toEqual(["think"])
    expect(talk.of("plan.task_failed")[0]?.payload).toMatchObject({ task_id: "write", error: { code: "no_workspace" } })
  })
})
