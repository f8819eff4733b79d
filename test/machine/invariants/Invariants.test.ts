/**
 * Goal: the checker finds each broken promise, by name and at its event, and finds
 * nothing in logs that the machines wrote. Verifies: every INV-* that concerns runes.
 */
import { describe, expect, it } from "vitest"
import { checkInvariants, InvariantChecker, invariantNames } from "#src/machine/invariants/Invariants.ts"
import { checkReplay } from "#src/machine/invariants/Replay.ts"
import type { AgentId, CallId, HookRunId, RequestId, TaskId, TurnId } from "#src/rune/Ids.ts"
import type { AnyRune, Rune } from "#src/rune/Rune.ts"
import { payloadExamples as payloads } from "../../support/runeExamples.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"

const names = (runes: Iterable<AnyRune>) => checkInvariants(runes).map((violation) => violation.invariant)
const call = (id: string) => id as CallId
const stats = payloads["agent.terminated"].stats
const found = new Set<string>()

/** The names of what the story's last rune broke. */
const broken = (story: Story): ReadonlyArray<string> => {
  const head = story.state.head
  const violations = checkInvariants(story.runes)
  for (const violation of violations) found.add(violation.invariant)
  expect(violations.every((violation) => violation.event_id === head)).toBe(true)
  return violations.map((violation) => violation.invariant)
}

const finished = () => {
  const story = new Story().inBatch(callItem("a", writeTool), callItem("b", readTool))
  story.start("call_1")
  story.finish("call_1")
  story.start("call_2")
  story.finish("call_2")
  return story
}

describe("order of events", () => {
  const { runes } = new Story().ready()

  it("is dense and rising", () => {
    expect(names(runes)).toEqual([])
    expect(names(runes.slice(1))).toContain("INV-RESUME-NO-GAPS")
    expect(names([runes[0]!, runes[2]!])[0]).toBe("INV-RESUME-NO-GAPS")
    expect(names([...runes, runes[3]!])).toContain("INV-RESUME-NO-DUPLICATES")
    const rewritten = { ...runes[1]!, rune_id: "run_ffffffffffffffff" as never }
    expect(names([...runes, rewritten])).toContain("INV-EVENTID-MONOTONIC")
    const copied = { ...runes[3]!, event_id: 5 }
    expect(names([...runes, copied])).toContain("INV-RUNE-IMMUTABLE")
    const early = { ...runes[3]!, cause: 4 }
    expect(names([...runes.slice(0, 3), early])).toEqual(["INV-EVENTID-MONOTONIC"])
    for (const name of [
      "INV-RESUME-NO-GAPS",
      "INV-RESUME-NO-DUPLICATES",
      "INV-EVENTID-MONOTONIC",
      "INV-RUNE-IMMUTABLE"
    ])
      found.add(name)
  })

  it("may miss what was thinned, and only that", () => {
    const story = new Story().ready()
    const marker = (from: number, to: number, at: number) =>
      ({
        ...story.runes[0]!,
        event_id: at,
        rune_id: `run_${"e".repeat(16)}`,
        kind: "system.thinned",
        payload: { from, to }
      }) as unknown as Rune
    const next = { ...story.runes[3]!, event_id: 10 }
    expect(names([...story.runes.slice(0, 3), marker(4, 9, 4), next])).toEqual([])
    expect(names([...story.runes.slice(0, 3), marker(4, 9, 9), next])).toEqual([])
    expect(names([...story.runes.slice(0, 3), marker(6, 9, 9), next])).toEqual(["INV-RESUME-NO-GAPS"])
  })

  it("may miss what the log says it dropped, where that follows on", () => {
    const checked = (gap: { readonly from: number; readonly to: number }): ReadonlyArray<string> => {
      const checker = new InvariantChecker()
      for (const rune of runes.slice(0, 3)) checker.check(rune)
      checker.skip(gap)
      checker.check({ ...runes[3]!, event_id: 10 })
      return checker.violations.map(({ invariant }) => invariant)
    }
    expect(checked({ from: 4, to: 9 })).toEqual([])
    expect(checked({ from: 4, to: 8 })).toEqual(["INV-RESUME-NO-GAPS"])
    expect(checked({ from: 5, to: 9 })).toEqual(["INV-RESUME-NO-GAPS"])
    expect(checked({ from: 1, to: 2 })).toEqual(["INV-RESUME-NO-GAPS"])
  })

  it("holds for runes that nobody knows, too", () => {
    const unknown = {
      ...runes[1]!,
      event_id: 5,
      rune_id: `run_${"d".repeat(16)}`,
      kind: "dream.started"
    } as unknown as AnyRune
    expect(names([...runes, unknown])).toEqual([])
  })
})

describe("turns", () => {
  it("one at a time per agent", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.started", { turn_id: "turn_2" as TurnId, agent_id: story.root, input: "x" })
    expect(broken(story)).toEqual(["INV-TURN-SEQUENTIAL"])
  })

  it("are counted up, and only start while the session is active", () => {
    const story = new Story().ready()
    story.post("go")
    story.run({ _tag: "InterruptTurn", reason: "x" })
    story.tell("turn.started", { turn_id: "turn_1" as TurnId, agent_id: story.root, input: "x" })
    expect(broken(story)).toEqual(["INV-TURN-ORDER"])
    const paused = new Story().ready()
    paused.run({ _tag: "Pause", reason: "x" })
    paused.tell("turn.started", { turn_id: "turn_1" as TurnId, agent_id: paused.root, input: "x" })
    expect(broken(paused)).toEqual(["INV-TURN-ORDER"])
  })

  it("end once", () => {
    const story = new Story().ready()
    story.post("go")
    story.run({ _tag: "InterruptTurn", reason: "x" })
    story.tell("turn.completed", payloads["turn.completed"], { turn_id: "turn_1" as TurnId })
    expect(broken(story)).toEqual(["INV-TURN-TERMINAL"])
    const other = new Story().ready()
    other.tell("turn.interrupted", { reason: "x", partial_output: "" })
    expect(broken(other)).toEqual(["INV-TURN-TERMINAL"])
  })

  it("end before their agent does", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("agent.terminated", { agent_id: story.root, reason: "x", stats })
    expect(broken(story)).toEqual(["INV-TURN-TERMINAL"])
  })

  it("own their runes", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.tool_calls_received", { call_ids: [] }, { turn_id: "turn_7" as TurnId })
    expect(broken(story)).toEqual(["INV-TURN-ORDER"])
    const loose = new Story().ready()
    loose.tell("turn.hooks_finished", { summaries: [] })
    expect(broken(loose)).toEqual(["INV-TURN-ORDER"])
  })

  it("answer only what was asked", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.assistant_delta", { content: "x" })
    expect(broken(story)).toEqual(["INV-TURN-ORDER"])
    const other = new Story().ready()
    other.post("go")
    other.tell("turn.assistant_final", { content: "x", items: [] })
    expect(broken(other)).toEqual(["INV-TURN-ORDER"])
  })

  it("ask one model call at a time", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.tell("turn.model_requested", {
      request_id: "req_0000000000000001" as RequestId,
      provider: "p",
      model: "m",
      attempt: 1
    })
    expect(broken(story)).toEqual(["INV-ONE-MODEL-CALL-PER-AGENT"])
  })

  it("ask no model with calls open, or out of budget", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    story.tell("turn.model_requested", {
      request_id: "req_0000000000000001" as RequestId,
      provider: "p",
      model: "m",
      attempt: 1
    })
    expect(broken(story)).toEqual(["INV-READY-NO-PENDING-TOOLS"])
    const poor = new Story().ready()
    poor.post("go")
    poor.tell("agent.budget_exhausted", { agent_id: poor.root, which: "usd", used: 2, limit: 1 })
    poor.tell("turn.model_requested", {
      request_id: "req_0000000000000001" as RequestId,
      provider: "p",
      model: "m",
      attempt: 1
    })
    expect(broken(poor)).toEqual(["INV-AGENT-BUDGET"])
    for (const forgiving of ["session.unsuspended", "config.updated"] as const) {
      const rich = new Story().ready()
      rich.post("go")
      rich.tell("agent.budget_exhausted", { agent_id: rich.root, which: "usd", used: 2, limit: 1 })
      if (forgiving === "session.unsuspended") rich.tell(forgiving, {})
      else {
        rich.tell(forgiving, { changes: { title: "t" } })
        rich.tell(forgiving, { changes: { budget: { usd: 9 } } })
      }
      rich.request()
      expect(broken(rich)).toEqual([])
    }
  })
})

describe("calls", () => {
  it("get one result each", () => {
    const story = finished()
    story.tell("tool.result", { call_id: call("call_1"), status: "success", duration_ms: 1 })
    expect(broken(story)).toEqual(["INV-TOOL-TERMINAL"])
    const open = new Story().inBatch(callItem("a", readTool))
    open.tell("turn.completed", payloads["turn.completed"])
    expect(broken(open)).toEqual(["INV-TOOL-TERMINAL", "INV-READY-NO-PENDING-TOOLS"])
    const batch = new Story().inBatch(callItem("a", readTool))
    batch.tell("turn.tools_finished", { summaries: [] })
    expect(broken(batch)).toEqual(["INV-TOOL-TERMINAL"])
    const twice = new Story().inBatch(callItem("a", readTool))
    twice.tell("tool.call", { ...payloads["tool.call"], call_id: call("call_1") })
    expect(broken(twice)).toEqual(["INV-TOOL-TERMINAL"])
  })

  it("are made before they are answered, and started before they succeed", () => {
    const story = new Story().ready()
    story.tell("tool.result", { call_id: call("call_9"), status: "success", duration_ms: 1 })
    expect(broken(story)).toEqual(["INV-TOOL-CALL-BEFORE-RESULT"])
    for (const tell of [
      (one: Story) => one.tell("tool.result", { call_id: call("call_1"), status: "success", duration_ms: 1 }),
      (one: Story) => one.tell("tool.progress", { call_id: call("call_1"), stream: "stdout", chunk: "x" })
    ]) {
      const early = new Story().inBatch(callItem("a", readTool))
      tell(early)
      expect(broken(early)).toEqual(["INV-TOOL-CALL-BEFORE-RESULT"])
    }
  })

  it("run only when a wanted approval was given", () => {
    const asked = () => {
      const story = new Story().inBatch(callItem("bash", shellTool))
      story.ask("call_1")
      return story
    }
    const started = asked()
    started.tell("tool.started", { call_id: call("call_1"), attempt: 1, sandbox: { level: "none" } })
    expect(broken(started)).toEqual(["INV-TOOL-APPROVAL-BEFORE-EXEC"])
    const denied = asked()
    denied.tell("tool.denied", { call_id: call("call_1"), approver: "a", reason: "r" })
    denied.tell("tool.started", { call_id: call("call_1"), attempt: 1, sandbox: { level: "none" } })
    expect(broken(denied)).toEqual(["INV-TOOL-APPROVAL-BEFORE-EXEC"])
    const late = new Story().inBatch(callItem("bash", shellTool))
    late.start("call_1")
    late.tell("tool.approval_requested", { ...payloads["tool.approval_requested"], call_id: call("call_1") })
    expect(broken(late)).toEqual(["INV-TOOL-APPROVAL-BEFORE-EXEC"])
    const unasked = new Story().inBatch(callItem("bash", shellTool))
    unasked.tell("tool.approved", { ...payloads["tool.approved"], call_id: call("call_1") })
    expect(broken(unasked)).toEqual(["INV-TOOL-APPROVAL-BEFORE-EXEC"])
    const both = asked()
    both.tell("tool.approved", { ...payloads["tool.approved"], call_id: call("call_1") })
    both.tell("tool.denied", { call_id: call("call_1"), approver: "a", reason: "r" })
    expect(broken(both)).toEqual(["INV-TOOL-APPROVAL-BEFORE-EXEC"])
  })

  it("name their sandbox, and break it only by running", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.tell("tool.started", { call_id: call("call_1"), attempt: 1, sandbox: { level: "" } })
    expect(broken(story)).toEqual(["INV-TOOL-SANDBOX"])
    const other = new Story().inBatch(callItem("bash", shellTool))
    other.tell("tool.result", { call_id: call("call_1"), status: "sandbox_violation", duration_ms: 0 })
    expect(broken(other)).toEqual(["INV-TOOL-SANDBOX"])
  })

  it("are as private in their results as in themselves", () => {
    const story = finished()
    const secret = story.runes.map((rune) =>
      rune.kind === "tool.call" ? { ...rune, visibility: "secret" as const } : rune
    )
    const violations = checkInvariants(secret)
    expect(new Set(violations.map((violation) => violation.invariant))).toEqual(new Set(["INV-SECRET-PRIVACY"]))
    expect(violations).toHaveLength(4)
    found.add("INV-SECRET-PRIVACY")
  })

  it("of calls that were never made, in any rune", () => {
    for (const kind of [
      "tool.approval_requested",
      "tool.approved",
      "tool.denied",
      "tool.started",
      "tool.progress"
    ] as const) {
      const story = new Story().ready()
      story.tell(kind, payloads[kind] as never)
      expect(broken(story)).toEqual(["INV-TOOL-CALL-BEFORE-RESULT"])
    }
  })
})

describe("hooks", () => {
  const running = () => {
    const story = finished()
    const hook = { failure_policy: { type: "fail_session" }, timeout_ms: 1, effect_class: "effect" } as const
    story.settle([
      { hook_name: "a", ...hook },
      { hook_name: "b", ...hook }
    ])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as HookRunId })
    return story
  }

  it("never overlap", () => {
    const story = running()
    story.tell("hook.started", { hook_run_id: "hookrun_2" as HookRunId, hook_name: "b", call_ids: [], attempt: 1 })
    expect(broken(story)).toEqual(["INV-HOOKS-NEVER-OVERLAP"])
    const ended = running()
    ended.tell("turn.error", payloads["turn.error"])
    expect(broken(ended)).toEqual(["INV-HOOKS-NEVER-OVERLAP"])
    const other = running()
    other.tell("hook.completed", { hook_run_id: "hookrun_2" as HookRunId, status: "succeeded", duration_ms: 1 })
    expect(broken(other)).toEqual(["INV-HOOKS-NEVER-OVERLAP"])
  })

  it("of different agents of a session never overlap", () => {
    const story = running()
    const id = (name: string) => name as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: id("agt_other"), role: "worker", model: "m" } })
    story.run({ _tag: "CompleteAgentInit", agent_id: id("agt_other") })
    story.run({ _tag: "PostMessage", content: "go", mode: "queue", agent_id: id("agt_other") })
    const place = { agent_id: id("agt_other"), turn_id: "turn_2" as TurnId }
    story.tell(
      "hook.started",
      { hook_run_id: "hookrun_9" as HookRunId, hook_name: "b", call_ids: [], attempt: 1 },
      place
    )
    expect(broken(story)).toEqual(["INV-HOOKS-NEVER-OVERLAP"])
  })

  it("wait for the batch", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    story.tell("hook.started", { hook_run_id: "hookrun_1" as HookRunId, hook_name: "a", call_ids: [], attempt: 1 })
    expect(broken(story)).toEqual(["INV-TURN-ORDER"])
  })

  it("belong to a turn", () => {
    const story = new Story().ready()
    story.tell("hook.started", payloads["hook.started"])
    expect(broken(story)).toEqual(["INV-TURN-ORDER"])
    const other = new Story().ready()
    other.tell("hook.completed", payloads["hook.completed"])
    expect(broken(other)).toEqual(["INV-TURN-ORDER"])
  })
})

describe("agents", () => {
  const stranger = "agt_9999" as AgentId

  it("are spawned before they speak", () => {
    for (const [kind, payload] of [
      ["agent.ready", { agent_id: stranger }],
      ["turn.queued", payloads["turn.queued"]],
      ["turn.started", { turn_id: "turn_1", agent_id: stranger, input: "x" }],
      ["turn.completed", payloads["turn.completed"]],
      ["turn.retry_scheduled", payloads["turn.retry_scheduled"]],
      ["turn.model_requested", payloads["turn.model_requested"]],
      ["turn.assistant_delta", payloads["turn.assistant_delta"]],
      ["turn.assistant_final", payloads["turn.assistant_final"]],
      ["turn.tools_finished", payloads["turn.tools_finished"]],
      ["agent.budget_exhausted", payloads["agent.budget_exhausted"]],
      ["agent.terminated", { agent_id: stranger, reason: "x", stats }],
      ["harness.event", payloads["harness.event"]]
    ] as const) {
      const story = new Story().ready()
      story.tell(kind, payload as never, { agent_id: stranger })
      expect(broken(story)).toEqual(["INV-AGENT-SUPERVISED"])
    }
    const nameless = new Story().ready()
    const rune = {
      ...nameless.runes[3]!,
      event_id: 5,
      rune_id: "run_00000000000000aa",
      kind: "turn.queued",
      payload: payloads["turn.queued"]
    }
    expect(names([...nameless.runes, rune as never])).toEqual(["INV-AGENT-SUPERVISED"])
  })

  it("are spawned once, by a parent that lives, and do not outlive it", () => {
    const spec = { agent_id: stranger, role: "w", model: "m" }
    const twice = new Story().ready()
    twice.tell("agent.spawning", { ...spec, agent_id: twice.root })
    expect(broken(twice)).toEqual(["INV-AGENT-SUPERVISED"])
    const orphan = new Story().ready()
    orphan.tell("agent.spawning", { ...spec, parent_id: "agt_8888" as AgentId })
    expect(broken(orphan)).toEqual(["INV-AGENT-SUPERVISED"])
    const survivor = new Story().ready()
    survivor.tell("agent.spawning", { ...spec, parent_id: survivor.root })
    survivor.tell("agent.terminated", { agent_id: survivor.root, reason: "x", stats })
    expect(broken(survivor)).toEqual(["INV-AGENT-SUPERVISED"])
  })

  it("are over before the conversation is closed", () => {
    const story = new Story().ready()
    story.tell("session.closed", payloads["session.closed"])
    expect(broken(story)).toEqual(["INV-AGENT-SUPERVISED"])
  })
})

describe("replay", () => {
  it("gives the same state in every way of folding", () => {
    const story = finished()
    story.settle()
    const options = { conversation_id: story.conversationId, snapshotEvery: 1 }
    expect(checkReplay(story.runes, options).violations).toEqual([])
    expect(checkReplay(story.runes, { ...options, snapshotEvery: 0 }).violations).toEqual([])
    expect(checkReplay([], options).violations).toEqual([])
  })

  it("says so when a fold remembers something that is not in the log", () => {
    const story = finished()
    let reads = 0
    // A log that reads differently the second time stands for a fold that is not a function of it.
    const shifting = new Proxy(story.runes, {
      get: (target, key) => {
        if (key === Symbol.iterator && ++reads >= 2)
          return target.slice(0, -1)[Symbol.iterator].bind(target.slice(0, -1))
        return Reflect.get(target, key)
      }
    })
    const { violations } = checkReplay(shifting, { conversation_id: story.conversationId, snapshotEvery: 0 })
    expect(violations.map((violation) => violation.invariant)).toEqual(["INV-REPLAY-DETERMINISTIC"])
    found.add("INV-REPLAY-DETERMINISTIC")
  })

  it("can be checked rune by rune", () => {
    const checker = new InvariantChecker()
    for (const rune of new Story().ready().runes) checker.check(rune)
    expect(checker.violations).toEqual([])
  })
})

describe("the names", () => {
  it("of goals are found broken: tasks out of order or twice, and claims without evidence", () => {
    const plan_id = payloads["plan.created"].plan_id
    const first = payloads["plan.created"].tasks[0]!
    const second = { ...first, task_id: "task_2" as TaskId, depends_on: [first.task_id] }
    const begun = () => {
      const story = new Story().ready()
      story.tell("plan.goal_received", payloads["plan.goal_received"])
      story.tell("plan.created", { plan_id, tasks: [first, second] })
      return story
    }
    const start = (story: Story, task_id: TaskId) => story.tell("plan.task_started", { plan_id, task_id, attempt: 1 })
    const complete = (story: Story, task_id: TaskId, passed = true) => {
      const evidence = [{ spec: { type: "file", path: "x" } as const, passed }]
      story.tell("plan.task_completed", { plan_id, task_id, result: "", evidence })
    }
    const done = begun()
    start(done, first.task_id)
    complete(done, first.task_id)
    start(done, second.task_id)
    expect(broken(done)).toEqual([])
    start(done, first.task_id)
    expect(broken(done)).toEqual(["INV-TASK-ORDER"])
    const early = begun()
    start(early, second.task_id)
    expect(broken(early)).toEqual(["INV-TASK-ORDER"])
    const unstarted = begun()
    complete(unstarted, first.task_id)
    expect(broken(unstarted)).toEqual(["INV-TASK-ORDER"])
    const unknown = begun()
    start(unknown, "ghost" as TaskId)
    complete(unknown, "ghost" as TaskId)
    expect(names(unknown.runes)).toEqual(["INV-TASK-ORDER", "INV-TASK-ORDER"])
    const claimed = begun()
    start(claimed, first.task_id)
    complete(claimed, first.task_id, false)
    expect(broken(claimed)).toEqual(["INV-GOAL-EVIDENCE"])
    const changed = begun()
    const added = { ...first, task_id: "task_3" as TaskId }
    const changes = [
      { type: "task_cancelled", task_id: first.task_id, reason: "no" },
      { type: "task_cancelled", task_id: "ghost" as TaskId, reason: "no" },
      { type: "task_noted", task_id: first.task_id, note: "n" },
      { type: "task_added", task: added },
      { type: "task_changed", task: second }
    ] as const
    changed.tell("plan.updated", { plan_id, changes })
    start(changed, second.task_id)
    start(changed, added.task_id)
    expect(broken(changed)).toEqual([])
    const evidence = [{ spec: { type: "file", path: "x" } as const, passed: false }]
    changed.tell("plan.goal_met", { plan_id, summary: "", evidence })
    expect(broken(changed)).toEqual(["INV-GOAL-EVIDENCE"])
  })

  it("are all shown to be found", () => {
    const shownElsewhere = ["INV-REPLAY-IDEMPOTENT", "INV-SNAPSHOT-INTEGRITY"]
    expect([...found, ...shownElsewhere].sort()).toEqual([...invariantNames].sort())
  })

  it("hold for a turn with everything in it", () => {
    const story = finished()
    story.settle()
    story.request()
    story.respond([textItem("done")])
    story.run({ _tag: "Close", reason: "x" })
    story.run({ _tag: "FinishClosing" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("say nothing about a summary of nobody, and let one end the request for it", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const before = checkInvariants(story.runes)
    story.tell("turn.compacted", { upto: 1, summary: "s" })
    story.tell("turn.compacted", { upto: 1, summary: "s" }, { agent_id: "agt_nobody" as AgentId })
    expect(checkInvariants(story.runes)).toEqual(before)
    story.tell("turn.compacted", { upto: 1, summary: "s" }, { agent_id: story.root, turn_id: story.turn.turn_id })
    story.tell("turn.assistant_delta", { content: "late" }, { agent_id: story.root, turn_id: story.turn.turn_id })
    expect(checkInvariants(story.runes)).toMatchObject([{ invariant: "INV-TURN-ORDER" }])
  })
})
