// Goal: the tools of agents that pursue a goal do what the machine allows, refuse the rest in words a model can act on, and
// take effect once however often they are run. Method: the real machine behind each tool, every refusal looked at.
import { describe, expect, it } from "vitest"
import type { Tools } from "#src/autonomy/GoalContext.ts"
import { limits } from "#src/autonomy/GoalLimits.ts"
import { parseReview, specsToReview } from "#src/autonomy/Review.ts"
import { endsTurn, partOf, withRoleTools } from "#src/autonomy/RoleTools.ts"
import { agentTools } from "#src/autonomy/tools/Agents.ts"
import { giveUpTool, makeSubmitPlan, makeUpdatePlan } from "#src/autonomy/tools/Plan.ts"
import { makeSubmitReview } from "#src/autonomy/tools/Review.ts"
import { CommandRefused } from "#src/contract/CommandErrors.ts"
import type { CallState } from "#src/machine/State.ts"
import type { AgentId, CallId, TurnId } from "#src/rune/Ids.ts"
import type { Evidence, EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import type { Tool } from "#src/tool/Tool.ts"
import type { ToolOutcome } from "#src/tool/ToolPort.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { leadId, PlanStory, planId, task } from "../support/planStory.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { functionTools } from "../support/tool/FunctionTools.ts"
import { authorizeCall, previewOf, runCall, runTool, type TestContext } from "../support/tool/runTool.ts"

const tools: Tools = {
  runner: new TestRunner(),
  look: workspaceLook,
  nowMs: () => 1_763_251_300_000,
  node: process.execPath
}

const specsOf = ({ plan }: PlanStory) => specsToReview(plan).map(({ spec }) => spec)

/** The context of a call in a story: commands go to the real machine. */
const contextIn = (story: PlanStory, agentId: AgentId, more: Partial<TestContext> = {}): TestContext => ({
  conversation_id: story.conversationId,
  agent_id: agentId,
  turn_id: "turn_1" as TurnId,
  call_id: "call_1" as CallId,
  attempt: 1,
  workspace: undefined,
  network: false,
  signal: new AbortController().signal,
  progress: () => undefined,
  conversation: {
    state: () => story.state,
    submit: async (command) => {
      const verdict = story.send(command)
      if (verdict._tag === "Refused") throw new CommandRefused({ refusal: verdict.refusal, command: command._tag })
    },
    changed: () => new Promise((resolve) => setImmediate(resolve))
  },
  ...more
})

const run = (one: Tool, input: object, context: TestContext): Promise<ToolOutcome> =>
  runTool(one, input as Readonly<Record<string, unknown>>, context)

const messageOf = (outcome: ToolOutcome): string => outcome.error?.message ?? ""
const evidence = [{ type: "file", path: "a.txt" }]
const written = (id: string, more: object = {}) => ({ id, title: id, instructions: id, evidence, ...more })
const planning = () => new PlanStory().goal().carry("Plan")
const submitPlan = makeSubmitPlan(tools)
const updatePlanTool = makeUpdatePlan(tools)
const submitReview = makeSubmitReview(tools)

const sentBack = (story: PlanStory): void => {
  story
    .speak(leadId)
    .step({ _tag: "RejectPlan", payload: { plan_id: planId, reason: "not like this" } })
    .carry("Plan")
}

describe("submit_plan", () => {
  it("puts the plan on record; another takes its place only when it was sent back, with the difference", async () => {
    const story = planning()
    const first = await run(submitPlan, { tasks: [written("a")], summary: "one" }, contextIn(story, leadId))
    expect(first.status).toBe("success")
    expect(story.plan).toMatchObject({ revision: 1, tasks: [{ task: { task_id: "a" } }] })
    const second = await run(submitPlan, { tasks: [written("b")] }, contextIn(story, leadId))
    expect(messageOf(second)).toMatch(/not expected now: a plan was already submitted/)
    expect(story.plan).toMatchObject({ revision: 1, tasks: [{ task: { task_id: "a" } }] })
    sentBack(story)
    expect((await run(submitPlan, { tasks: [written("b")] }, contextIn(story, leadId))).status).toBe("success")
    expect(story.plan).toMatchObject({ revision: 2, tasks: [{ task: { task_id: "b" } }] })
    expect(story.runes.findLast((rune) => rune.kind === "plan.created")?.payload).toMatchObject({
      difference: { added: ["b"], changed: [], dropped: [{ task_id: "a", status: "pending" }] }
    })
  })

  it("tells what is wrong, and writes nothing", async () => {
    const story = planning()
    const outcome = await run(submitPlan, { tasks: [written("a", { depends_on: ["b"] })] }, contextIn(story, leadId))
    expect(outcome.status).toBe("error")
    expect(messageOf(outcome)).toMatch(/was not accepted:\n- a: depends on b.*\nMend it and call the tool again\./)
    expect(story.plan.revision).toBe(0)
  })

  it("takes effect once when its call was cut off, and is refused when no plan is expected", async () => {
    const story = planning()
    const input = { tasks: [written("a")] }
    await run(submitPlan, input, contextIn(story, leadId))
    story.approved()
    expect((await run(submitPlan, input, contextIn(story, leadId, { attempt: 2 }))).status).toBe("success")
    expect(story.plan.revision).toBe(1)
    expect(messageOf(await run(submitPlan, input, contextIn(story, leadId)))).toMatch(/not expected now/)
    const nothing = new PlanStory().ready() as PlanStory
    expect(messageOf(await run(submitPlan, input, contextIn(nothing, leadId)))).toMatch(/there is no goal/)
  })

  it("asks for a person when its commands would run unheld, whatever the policy is", async () => {
    const unheld = makeSubmitPlan({ ...tools, runner: new TestRunner({ contained: false }) })
    const commands = { tasks: [written("a", { evidence: [{ type: "command", command: "true" }] })] }
    const story = planning()
    await run(unheld, commands, contextIn(story, leadId))
    expect(story.plan.needs_approval).toMatch(/no sandbox/)
    sentBack(story)
    await run(unheld, { tasks: [written("a")] }, contextIn(story, leadId))
    expect(story.plan.needs_approval).toBeNull()
    sentBack(story)
    story.run({ _tag: "UpdateConfig", changes: { policy: { mode: "full_access" } } })
    await run(unheld, commands, contextIn(story, leadId))
    expect(story.plan.needs_approval).toMatch(/no sandbox/)
  })

  it("is refused with commands that rules deny, and waits for a person with those that rules ask about", async () => {
    const runner = new TestRunner()
    const ruled = makeSubmitPlan({ ...tools, runner })
    const story = planning()
    const checked = (command: string) => written("a", { evidence: [{ type: "command", command }] })
    const submit = (command: string) => run(ruled, { tasks: [checked(command)] }, contextIn(story, leadId))
    runner.rules = [
      { decision: "deny", command: ["curl", "**"] },
      { decision: "ask", command: ["make", "**"] }
    ]
    expect(messageOf(await submit("curl example.org"))).toMatch(/a\.evidence: the policy denies .*rule 1 denies bash/)
    expect(story.plan.proposed).toBeNull()
    await submit("$HOME/curl example.org")
    expect(story.plan.needs_approval).toMatch(/asked about: rule 1 may be about/)
    sentBack(story)
    await submit("make test")
    expect(story.plan.needs_approval).toMatch(/asked about: rule 2 asks about bash/)
    sentBack(story)
    await submit("ls a.txt")
    expect(story.plan.needs_approval).toBeNull()
  })
})

describe("a plan with commands as evidence", () => {
  it.each([
    ["auto", /asked about: bash changes things, and the policy is auto/],
    ["read_only", /asked about: the policy is read_only/],
    ["full_access", null]
  ] as const)("waits for a person where the policy would ask about them: %s", async (mode, why) => {
    const story = planning()
    story.run({ _tag: "UpdateConfig", changes: { policy: { mode } } })
    await run(submitPlan, { tasks: [written("a")] }, contextIn(story, leadId))
    expect(story.plan.needs_approval).toBeNull()
    const commands = [written("a", { evidence: [{ type: "command", command: "make test" }] })]
    sentBack(story)
    await run(submitPlan, { tasks: commands }, contextIn(story, leadId))
    if (why === null) expect(story.plan.needs_approval).toBeNull()
    else expect(story.plan.needs_approval).toMatch(why)
  })

  it("takes no other command later, and those that a person has seen again", async () => {
    const seen = task("a", { evidence: [{ type: "command", command: ["make", "test"], expected_exit: 0 }] })
    const story = new PlanStory().planned([seen])
    story.run({ _tag: "UpdateConfig", changes: { policy: { mode: "auto" } } })
    const add = (id: string, command: ReadonlyArray<string>) =>
      run(
        updatePlanTool,
        { add: [written(id, { evidence: [{ type: "command", command }] })] },
        contextIn(story, leadId)
      )
    expect(messageOf(await add("b", ["make", "clean"]))).toMatch(/b\.evidence: this command is asked about/)
    expect(await add("c", ["make", "test"])).toMatchObject({ status: "success" })
  })
})

describe("update_plan", () => {
  const blocked = () =>
    new PlanStory()
      .planned([task("a"), task("b", { after: ["a"] })])
      .worked("failed")
      .worked("failed")
      .carry("Block")

  it("changes, adds and cancels tasks for the orchestrator", async () => {
    const story = blocked()
    const input = {
      change: [written("a")],
      add: [written("c", { depends_on: ["a"] })],
      cancel: [{ id: "b" }]
    }
    expect((await run(updatePlanTool, input, contextIn(story, leadId))).status).toBe("success")
    expect(story.plan.tasks.map((one) => [one.task.task_id, one.status])).toEqual([
      ["a", "pending"],
      ["b", "cancelled"],
      ["c", "pending"]
    ])
  })

  it("lets changed tasks depend on those that stay, and refuses what makes no sense", async () => {
    const story = blocked()
    const context = contextIn(story, leadId)
    const change = (input: object) => run(updatePlanTool, input, context)
    expect(messageOf(await change({}))).toMatch(/nothing is changed/)
    expect(messageOf(await change({ change: [written("x")] }))).toMatch(/there is no task x/)
    expect(messageOf(await change({ add: [written("a")] }))).toMatch(/two tasks with this id/)
    expect(messageOf(await change({ change: [{ id: "a" }] }))).toMatch(/title: must be text/)
    expect(messageOf(await change({ cancel: [{}] }))).toMatch(/cancel\.id: must be text/)
    expect(messageOf(await change({ cancel: [{ id: "x" }] }))).toMatch(/cancel: there is no task x/)
    expect(messageOf(await change({ change: [written("a", { depends_on: ["b"] })] }))).toMatch(/b → a → b|a → b → a/)
    const round = { change: [written("a", { depends_on: ["c"] })], add: [written("c", { depends_on: ["b"] })] }
    expect(messageOf(await change(round))).toMatch(/wait for each other/)
    expect(messageOf(await change({ change: [written("b", { depends_on: ["x"] })] }))).toMatch(/depends on x, and/)
    const many = Array.from({ length: limits.tasksMax - 2 }, (_, index) => written(`n${index}`))
    expect(messageOf(await change({ add: many }))).toMatch(/fewer than 1000 tasks, this one has 1000/)
    expect((await change({ change: [written("b", { depends_on: ["a"], title: "anew" })] })).status).toBe("success")
    expect(story.plan.tasks[1]?.task).toMatchObject({ task_id: "b", title: "anew", depends_on: ["a"] })
  })

  it("takes no command that nobody has approved where nothing would hold it", async () => {
    const story = blocked()
    const unheld = makeUpdatePlan({ ...tools, runner: new TestRunner({ contained: false }) })
    const command = written("a", { evidence: [{ type: "command", command: "true" }] })
    const change = (input: object) => run(unheld, input, contextIn(story, leadId))
    expect(messageOf(await change({ change: [command] }))).toMatch(/a\.evidence: .*no sandbox.*name a file instead/)
    expect(messageOf(await change({ add: [{ ...command, id: "c" }] }))).toMatch(/c\.evidence/)
    expect((await run(updatePlanTool, { change: [command] }, contextIn(story, leadId))).status).toBe("success")
    expect((await change({ change: [written("a")] })).status).toBe("success")
  })

  it("takes no command that rules deny or ask about", async () => {
    const story = blocked()
    const runner = new TestRunner()
    runner.rules = [
      { decision: "deny", command: ["curl", "**"] },
      { decision: "ask", command: ["make", "**"] }
    ]
    const ruled = makeUpdatePlan({ ...tools, runner })
    const change = (command: string) => {
      const changed = written("a", { evidence: [{ type: "command", command }] })
      return run(ruled, { change: [changed] }, contextIn(story, leadId))
    }
    expect(messageOf(await change("curl example.org"))).toMatch(/a\.evidence: the policy denies this command/)
    expect(messageOf(await change("make test"))).toMatch(/a\.evidence: this command is asked about/)
    expect((await change("ls a.txt")).status).toBe("success")
  })

  it("leaves a note of a worker on its own task", async () => {
    const story = new PlanStory().planned([task("a")]).carry("BeginTask")
    const worker = story.plan.tasks[0]!.agent_id!
    expect((await run(updatePlanTool, { note: "half-way" }, contextIn(story, worker))).status).toBe("success")
    expect(story.plan.tasks[0]?.note).toBe("half-way")
    expect(messageOf(await run(updatePlanTool, { note: "x" }, contextIn(story, story.root)))).toMatch(/no task of this/)
    expect(messageOf(await run(updatePlanTool, {}, contextIn(story, worker)))).toMatch(/note: must be text/)
    story.step({ _tag: "Cancel", payload: { plan_id: planId, reason: "user_cancel" } })
    expect((await run(updatePlanTool, { note: "late" }, contextIn(story, worker))).status).toBe("error")
    expect((await run(updatePlanTool, { cancel: [{ id: "a" }] }, contextIn(story, leadId))).status).toBe("error")
    const nothing = new PlanStory().ready() as PlanStory
    expect(messageOf(await run(updatePlanTool, { note: "x" }, contextIn(nothing, leadId)))).toMatch(/there is no goal/)
  })

  it("gives up where nothing can run, and only there", async () => {
    const story = blocked()
    expect(messageOf(await run(giveUpTool, {}, contextIn(story, leadId)))).toMatch(/reason: must be text/)
    expect((await run(giveUpTool, { reason: "no way" }, contextIn(story, leadId))).status).toBe("success")
    expect(story.plan).toMatchObject({ status: "stopped", reason: "unresolvable" })
    expect((await run(giveUpTool, { reason: "no way" }, contextIn(story, leadId))).status).toBe("error")
    const nothing = new PlanStory().ready() as PlanStory
    expect((await run(giveUpTool, { reason: "x" }, contextIn(nothing, leadId))).status).toBe("error")
  })
})

describe("submit_review", () => {
  const spec = { type: "file", path: "a.txt" } as const
  const reviewing = (found: ReadonlyArray<Evidence> = [{ spec, passed: true }]) => {
    const story = new PlanStory().planned([task("a", { evidence: [spec] })]).worked()
    const agentId = "agt_1234review1" as AgentId
    story.step({
      _tag: "BeginReview",
      payload: { plan_id: planId, iteration: 1, agent_id: agentId, evidence: found }
    })
    return { story, context: contextIn(story, agentId) }
  }
  const error = { severity: "error", title: "wrong", file: "a.ts", line: 3, suggested_fix: "mend it" }

  it("passes with the evidence, and the goal is met", async () => {
    const { context, story } = reviewing()
    expect((await run(submitReview, { verdict: "pass" }, context)).status).toBe("success")
    expect(story.plan.status).toBe("goal_met")
    expect((await run(submitReview, { verdict: "pass" }, { ...context, attempt: 2 })).status).toBe("success")
    expect(messageOf(await run(submitReview, { verdict: "pass" }, context))).toMatch(/not expected now/)
  })

  it("is no pass while evidence fails, a task has failed, or the critic itself found an error", async () => {
    const { context, story } = reviewing([{ spec, passed: false, detail: "there is no a.txt" }])
    const refused = await run(submitReview, { verdict: "pass" }, context)
    expect(messageOf(refused)).toMatch(/a pass is refused: FAILED: file a\.txt exists\nthere is no a\.txt/)
    expect(story.plan.status).toBe("reviewing")
    const own = await run(submitReview, { verdict: "pass", findings: [error] }, reviewing().context)
    expect(messageOf(own)).toMatch(/you found an error yourself: wrong/)
    const lost = new PlanStory()
      .planned([task("a")])
      .worked("failed")
      .worked("failed")
    const parsed = parseReview({ verdict: "pass" }, lost.plan)
    expect(parsed).toMatchObject({
      problems: expect.arrayContaining([expect.stringMatching(/task a failed: npm test/)])
    })
  })

  it("refuses a pass when nothing was checked", () => {
    const { story } = reviewing([])
    expect(parseReview({ verdict: "pass" }, story.plan)).toMatchObject({
      problems: [expect.stringMatching(/nothing was checked/)]
    })
  })

  it("gives a follow-up that belongs to no task all that was checked, when all of it passed", async () => {
    const { context, story } = reviewing([{ spec, passed: true }])
    await run(submitReview, { verdict: "retry", findings: [{ severity: "error", title: "dull" }] }, context)
    expect(story.plan.tasks.at(-1)?.task).toMatchObject({ task_id: "fix-1-1", evidence: [spec] })
  })

  it("checks what was reached before a new plan again, and what had failed no more", () => {
    const other = { type: "file", path: "failed.txt" } as const
    const { story } = reviewing([
      { spec, passed: true },
      { spec: other, passed: false }
    ])
    story.judged("replan").speak(leadId)
    const anew = { ...task("b"), evidence: [{ type: "file", path: "b.txt" } as const] }
    story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [anew] } })
    story.approved().worked()
    expect(specsOf(story)).toEqual([spec, ...anew.evidence])
  })

  it("keeps what was reached through several plans, and tells whoever plans anew what is lost of it", async () => {
    const file = (path: string): EvidenceSpec => ({ type: "file", path })
    const { context, story } = reviewing([{ spec, passed: true }])
    const replanned = async (at: TestContext, path: string) => {
      await run(submitReview, { verdict: "replan", findings: [{ ...error, title: path }] }, at)
      const told = JSON.stringify(story.agentNamed(leadId)?.transcript.at(-1)?.content)
      story.speak(leadId)
      story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task(path, { evidence: [file(path)] })] } })
      story.approved().worked()
      return told
    }
    const reviewed = (iteration: number, found: ReadonlyArray<Evidence>) => {
      const agentId = `agt_1234review${iteration}` as AgentId
      story.step({ _tag: "BeginReview", payload: { plan_id: planId, iteration, agent_id: agentId, evidence: found } })
      return contextIn(story, agentId)
    }
    expect(await replanned(context, "b.txt")).not.toContain("had been reached")
    expect(specsOf(story)).toEqual([spec, file("b.txt")])
    const second = reviewed(
      2,
      specsOf(story).map((one) => ({ spec: one, passed: true }))
    )
    expect(await replanned(second, "c.txt")).not.toContain("had been reached")
    expect(specsOf(story)).toEqual([spec, file("b.txt"), file("c.txt")])
    const third = reviewed(
      3,
      specsOf(story).map((one) => ({ spec: one, passed: one.type === "file" && one.path === "b.txt" }))
    )
    const told = await replanned(third, "d.txt")
    expect(told).toMatch(/had been reached, and is so no more:.*FAILED: file a\.txt exists.*evidence of a task/)
    expect(told).not.toMatch(/no more:.*c\.txt exists.*What was done/)
    expect(specsOf(story)).toEqual([file("b.txt"), file("d.txt")])
  })

  it("makes tasks of what has to be fixed, with the evidence that will show it", async () => {
    const { context, story } = reviewing([{ spec, passed: false }])
    const findings = [
      { ...error, task_id: "a" },
      { severity: "warning", title: "dull" },
      { severity: "info", title: "nice" }
    ]
    expect((await run(submitReview, { verdict: "retry", findings }, context)).status).toBe("success")
    expect(story.plan.status).toBe("executing")
    expect(story.plan.tasks.slice(1).map((one) => one.task)).toMatchObject([
      { task_id: "fix-1-1", priority: "high", evidence: [spec] },
      { task_id: "fix-1-2", priority: "medium", evidence: [spec] }
    ])
    expect(story.plan.tasks[1]?.task.instructions).toMatch(/error: wrong \(a\.ts:3\) – mend it/)
  })

  it("gives those tasks ids that no task of the plan has", async () => {
    const story = new PlanStory()
      .planned([task("fix-1-1"), task("fix-1-1-2")])
      .worked()
      .worked()
    story.carry("Review")
    const findings = [error, { ...error, title: "wrong too" }]
    const outcome = await run(submitReview, { verdict: "retry", findings }, contextIn(story, story.plan.critic_id!))
    expect(outcome.status).toBe("success")
    expect(story.plan.tasks.map((one) => one.task.task_id)).toEqual(["fix-1-1", "fix-1-1-2", "fix-1-1-3", "fix-1-2"])
  })

  it("tries failed tasks again, with what the review found out about them", async () => {
    const story = new PlanStory()
      .planned([task("a"), task("b")])
      .worked("failed")
      .worked("failed")
      .worked()
    story.carry("Review")
    const findings = [{ severity: "error", title: "the file is elsewhere", task_id: "a" }]
    await run(submitReview, { verdict: "retry", findings }, contextIn(story, story.plan.critic_id!))
    expect(story.plan.tasks).toHaveLength(2)
    expect(story.plan.tasks[0]).toMatchObject({ status: "pending", attempts: 0 })
    expect(story.plan.tasks[0]?.task.instructions).toMatch(/A review found:\n- error: the file is elsewhere/)
  })

  it("sends the orchestrator back to the plan", async () => {
    const { context, story } = reviewing()
    expect((await run(submitReview, { verdict: "replan", findings: [error] }, context)).status).toBe("success")
    expect(story.plan).toMatchObject({ status: "planning", replans: 1 })
    expect(story.agentNamed(leadId)?.turn).not.toBeNull()
  })

  it.each([
    [{ verdict: "maybe" }, /verdict: must be pass, retry or replan/],
    [{ verdict: "retry" }, /a retry needs at least one finding/],
    [{ verdict: "retry", findings: "x" }, /findings: must be a list/],
    [{ verdict: "retry", findings: [{ title: "x" }] }, /severity: must be/],
    [{ verdict: "retry", findings: [{ ...error, line: "3" }] }, /line: must be a line number/],
    [{ verdict: "retry", findings: Array(70).fill(error) }, /has more than 64 entries/]
  ])("refuses %j", async (input, problem) => {
    expect(messageOf(await run(submitReview, input, reviewing().context))).toMatch(problem)
  })

  it("needs a goal", async () => {
    const story = new PlanStory().ready() as PlanStory
    expect((await run(submitReview, { verdict: "pass" }, contextIn(story, story.root))).status).toBe("error")
  })
})

describe("agents that need help", () => {
  const [spawnAgent, sendAgent, waitAgent] = agentTools as readonly [Tool, Tool, Tool]

  it("spawn one, once for each call, and hear its answer", async () => {
    const story = new PlanStory().ready() as PlanStory
    const context = contextIn(story, story.root)
    const outcome = await run(spawnAgent, { message: "look", role: "explorer", tools: ["read_file"] }, context)
    const child = /agt_[0-9a-f]{16}/.exec(outcome.output ?? "")![0] as AgentId
    expect(story.agentNamed(child)).toMatchObject({ role: "explorer", parent_id: story.root, tools: ["read_file"] })
    await run(spawnAgent, { message: "look" }, { ...context, attempt: 2 })
    expect(story.state.agents).toHaveLength(2)
    expect(story.agentNamed(child)?.queue).toHaveLength(1)
    setImmediate(() => story.speak(child))
    const heard = await run(waitAgent, { agent_ids: [child] }, context)
    expect(heard.output).toBe(`${child} answers:\nwords`)
    expect((await run(sendAgent, { agent_id: child, message: "and?" }, context)).status).toBe("success")
    expect((await run(waitAgent, { agent_ids: [child], timeout_ms: 5 }, context)).output).toMatch(/still at work/)
    story.run({ _tag: "KillAgent", agent_id: child, reason: "k", force: true })
    expect((await run(waitAgent, { agent_ids: [child] }, context)).output).toBe(`${child} has ended.`)
    expect((await run(sendAgent, { agent_id: child, message: "and?" }, context)).status).toBe("error")
  })

  it("say what they want to one that a cut-off call had only brought up", async () => {
    const story = new PlanStory().ready() as PlanStory
    const context = contextIn(story, story.root)
    const outcome = await run(spawnAgent, { message: "look" }, context)
    const child = /agt_[0-9a-f]{16}/.exec(outcome.output ?? "")![0] as AgentId
    Object.assign(story.agentNamed(child)!, { queue: [] })
    await run(spawnAgent, { message: "look" }, { ...context, attempt: 2 })
    expect(story.agentNamed(child)?.queue).toHaveLength(1)
  })

  it("hear of the failure of one", async () => {
    const story = new PlanStory().ready() as PlanStory
    const context = contextIn(story, story.root)
    const outcome = await run(spawnAgent, { message: "look" }, context)
    const child = /agt_[0-9a-f]{16}/.exec(outcome.output ?? "")![0] as AgentId
    story.run({ _tag: "CompleteAgentInit", agent_id: child })
    story.run({ _tag: "StartQueued", agent_id: child })
    story.run({
      _tag: "FailTurn",
      agent_id: child,
      error: { error_type: "auth", message: "no key", retryable: false }
    })
    expect((await run(waitAgent, { agent_ids: [child] }, context)).output).toBe(`${child} failed: no key`)
  })

  it("cannot spawn without end, wait for those who wait for them, or speak to nobody", async () => {
    const story = new PlanStory().ready() as PlanStory
    const context = contextIn(story, story.root)
    for (let index = 0; index < 8; index++) {
      const call_id = `call_${index}` as CallId
      expect((await run(spawnAgent, { message: "go" }, { ...context, call_id })).status).toBe("success")
    }
    const ninth = await run(spawnAgent, { message: "go" }, { ...context, call_id: "call_9" as CallId })
    expect(ninth.error).toMatchObject({ code: "too_many_agents" })
    let parent = story.state.agents[1]!.agent_id
    for (let depth = 2; depth <= 4; depth++) {
      const call_id = `deep_${depth}` as CallId
      await run(spawnAgent, { message: "go" }, contextIn(story, parent, { call_id }))
      parent = story.state.agents.at(-1)!.agent_id
    }
    expect(story.state.agents).toHaveLength(11)
    const deepest = contextIn(story, parent)
    const { agents } = story.state
    expect(messageOf(await run(waitAgent, { agent_ids: [story.root] }, deepest))).toMatch(/waits for you/)
    expect(messageOf(await run(waitAgent, {}, deepest))).toMatch(/name at least one/)
    expect(messageOf(await run(waitAgent, { agent_ids: ["x"] }, deepest))).toMatch(/there is no agent x/)
    expect(messageOf(await run(sendAgent, { agent_id: "x", message: "m" }, deepest))).toMatch(/there is no agent x/)
    expect(messageOf(await run(sendAgent, { agent_id: parent, message: "m" }, deepest))).toMatch(/that is you/)
    expect(
      messageOf(await run(spawnAgent, {}, contextIn(story, agents[2]!.agent_id, { call_id: "c" as CallId })))
    ).toMatch(/message:/)
    story.run({ _tag: "Pause", reason: "p" })
    const paused = { ...contextIn(story, story.state.agents[3]!.agent_id), call_id: "call_p" as CallId }
    expect((await run(spawnAgent, { message: "go" }, paused)).status).toBe("error")
  })

  it("show what they are about to do, and touch nothing that a policy guards", async () => {
    expect(spawnAgent.access({})).toEqual({})
    expect(await previewOf(spawnAgent, { message: "x" }, { workspace: undefined })).toMatchObject({
      title: "spawn_agent"
    })
    expect(agentTools.map((one) => [one.approval, one.mutating])).toEqual(Array(3).fill(["never", false]))
  })
})

describe("the parts of a team", () => {
  const inner = functionTools([tool("read_file", async () => "r"), effectTool("write_file", async () => "w")])
  const port = withRoleTools(inner, tools)
  const story = new PlanStory().planned([task("a")]).carry("BeginTask")
  const worker = story.plan.tasks[0]!.agent_id!
  const names = (agentId: AgentId) => port.describe(story.state, agentId).map((one) => one.name)
  const call = (agent_id: AgentId | null, tool_name: string) =>
    ({ call_id: "call_1", agent_id, tool_name, arguments: {}, result: null }) as never as CallState

  it("have the tools of their part, and those that only read none that changes anything", () => {
    expect(names(leadId)).toEqual(["read_file", "submit_plan", "update_plan", "give_up"])
    expect(names(worker)).toEqual(["read_file", "write_file", "update_plan", "spawn_agent", "send_agent", "wait_agent"])
    expect(names(story.root)).toEqual(["read_file", "write_file"])
    expect(partOf(story.state, null)).toBeUndefined()
    const { state } = story
    expect(port.facts(state, leadId, "write_file")).toBeUndefined()
    expect(port.facts(state, worker, "write_file")).toMatchObject({ mutating: true })
    expect(port.facts(state, leadId, "submit_plan")).toMatchObject({ effect_class: "idempotent" })
    expect(port.facts(state, worker, "submit_plan")).toBeUndefined()
  })

  it("are held to them when a call comes all the same", async () => {
    const { state } = story
    expect(await authorizeCall(port, state, call(leadId, "write_file"))).toMatchObject({ _tag: "Deny" })
    expect(await authorizeCall(port, state, call(leadId, "submit_plan"))).toMatchObject({ _tag: "Allow" })
    expect(await authorizeCall(port, state, call(worker, "write_file"))).toMatchObject({ _tag: "Allow" })
    expect(await authorizeCall(port, state, call(null, "write_file"))).toMatchObject({ _tag: "Allow" })
    expect(port.sandbox(state, call(leadId, "give_up"))).toMatchObject({ level: "in_process" })
    expect(port.sandbox(state, call(worker, "write_file"))).toMatchObject({ level: "in_process" })
    const context = contextIn(story, worker)
    expect(await runCall(port, state, call(worker, "read_file"), context)).toMatchObject({ output: "r" })
    expect(await runCall(port, state, call(worker, "update_plan"), context)).toMatchObject({ status: "error" })
  })

  it("have said all when what they were asked for is handed in", () => {
    const over = (tool_name: string, status: string) =>
      endsTurn({ ...call(leadId, tool_name), result: { status } } as never)
    expect(over("submit_plan", "success")).toBe(true)
    expect(over("submit_plan", "error")).toBe(false)
    expect(over("read_file", "success")).toBe(false)
    expect(endsTurn(call(leadId, "submit_plan"))).toBe(false)
  })
})
