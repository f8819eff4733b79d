/**
 * Goal: the machines have every state of the designs they were made from, write every rune that
 * the designs name with the fields they name, and hold in each state what the session design
 * says the state carries. Each line is one state or one row of a table of the designs.
 */
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { commandsOf, decideIn, statusesOf } from "#src/machine/table/Table.ts"
import { stateEvents } from "#src/machine/view/StateEvents.ts"
import type { HookRunId } from "#src/rune/Ids.ts"
import type { Kind } from "#src/rune/Kinds.ts"
import { decode, encode, type Rune } from "#src/rune/Rune.ts"
import { subjects } from "../support/machineSamples.ts"
import { exampleRune, payloadExamples } from "../support/runeExamples.ts"
import { callItem, readTool, Story, textItem, writeTool } from "../support/story.ts"

const subjectOf = (name: string) => subjects.find(({ machine }) => machine.name === name)!

type Part = "begins" | "continues" | "ends"

const states: ReadonlyArray<readonly [machine: string, state: string, ours: string, part: Part]> = [
  ["Turn", "idle", "idle", "begins"],
  ["Turn", "streaming", "streaming", "continues"],
  ["Turn", "tool_executing", "tool_executing", "continues"],
  ["Turn", "interrupted", "interrupted", "continues"],
  ["Turn", "completed", "completed", "continues"],
  ["Turn", "error", "error", "continues"],
  ["Tool", "pending_call", "pending_call", "begins"],
  ["Tool", "awaiting_approval", "awaiting_approval", "continues"],
  ["Tool", "executing", "executing", "continues"],
  ["Tool", "denied", "denied", "ends"],
  ["Tool", "completed_result", "completed", "ends"],
  ["Tool", "error_result", "error", "ends"],
  ["Tool", "timeout_result", "timeout", "ends"],
  ["Tool", "cancelled_result", "cancelled", "ends"],
  ["Session", "created", "created", "begins"],
  ["Session", "active", "active", "continues"],
  ["Session", "paused", "paused", "continues"],
  ["Session", "suspended", "suspended", "continues"],
  ["Session", "closing", "closing", "continues"],
  ["Session", "closed", "closed", "continues"],
  ["Session", "archived", "archived", "ends"],
  ["Agent", "spawning", "spawning", "begins"],
  ["Agent", "idle", "idle", "continues"],
  ["Agent", "running_turn", "running_turn", "continues"],
  ["Agent", "terminated", "terminated", "ends"],
  ["Agent", "failed", "failed", "ends"],
  ["Autonomy", "goal_received", "goal_received", "begins"],
  ["Autonomy", "planning", "planning", "continues"],
  ["Autonomy", "executing", "executing", "continues"],
  ["Autonomy", "blocked", "blocked", "continues"],
  ["Autonomy", "reviewing", "reviewing", "continues"],
  ["Autonomy", "goal_met", "goal_met", "ends"],
  ["Autonomy", "stopped", "stopped", "ends"]
]

describe("state machines design: states", () => {
  it.each(states)("%s has %s as %s, where it %s", (name, _state, ours, part) => {
    const { machine } = subjectOf(name)
    expect(statusesOf(machine)).toContain(ours)
    expect(machine.initial === ours).toBe(part === "begins")
    const steps = commandsOf(machine).filter((command) => machine.table[ours]![command] !== "refuse")
    // The only way out of an end: what was archived can be brought back.
    if (part === "ends") expect(steps).toEqual(ours === "archived" ? ["Restore"] : [])
    else expect(steps).not.toEqual([])
  })
})

interface Fields {
  readonly required: ReadonlyArray<string>
  readonly optional?: ReadonlyArray<string>
  readonly status?: string
}

type RuneRow = readonly [machine: string, from: string, command: string, kind: Kind, fields: Fields]

const runeRows: ReadonlyArray<RuneRow> = [
  ["Turn", "idle", "Start", "turn.started", { required: ["turn_id", "agent_id", "input"] }],
  ["Turn", "streaming", "AppendText", "turn.assistant_delta", { required: ["content"] }],
  ["Turn", "streaming", "RespondWithCalls", "turn.tool_calls_received", { required: ["call_ids"] }],
  ["Turn", "streaming", "RespondAndComplete", "turn.completed", { required: ["final_output", "usage"] }],
  ["Turn", "streaming", "Interrupt", "turn.interrupted", { required: ["reason", "partial_output"] }],
  ["Turn", "streaming", "Fail", "turn.error", { required: ["error_type", "message"] }],
  ["Turn", "tool_executing", "FinishTools", "turn.tools_finished", { required: ["summaries"] }],
  ["Turn", "streaming", "RespondWithCalls", "tool.call", { required: ["call_id", "tool_name", "arguments"] }],
  ["Tool", "pending_call", "RequireApproval", "tool.approval_requested", { required: ["call_id", "policy_reason"] }],
  ["Tool", "awaiting_approval", "Approve", "tool.approved", { required: ["call_id", "approver"] }],
  ["Tool", "awaiting_approval", "Deny", "tool.denied", { required: ["call_id", "reason"] }],
  ["Tool", "executing", "Progress", "tool.progress", { required: ["call_id", "stream", "chunk"] }],
  [
    "Tool",
    "executing",
    "Succeed",
    "tool.result",
    { required: ["call_id", "status"], optional: ["output"], status: "success" }
  ],
  [
    "Tool",
    "executing",
    "Fail",
    "tool.result",
    { required: ["call_id", "status"], optional: ["error"], status: "error" }
  ],
  ["Tool", "executing", "TimeOut", "tool.result", { required: ["call_id", "status"], status: "timeout" }],
  [
    "Tool",
    "awaiting_approval",
    "ExpireApproval",
    "tool.result",
    { required: ["call_id", "status"], status: "timeout" }
  ],
  ["Tool", "executing", "Cancel", "tool.result", { required: ["call_id", "status"], status: "cancelled" }],
  ["Session", "created", "Activate", "session.activated", { required: ["root_agent_id"] }],
  ["Session", "active", "Pause", "session.paused", { required: ["reason"] }],
  ["Session", "paused", "Resume", "session.resumed", { required: [] }],
  ["Session", "active", "Suspend", "session.suspended", { required: ["reason"], optional: ["budget_info"] }],
  ["Session", "suspended", "Unsuspend", "session.unsuspended", { required: [] }],
  ["Session", "active", "Close", "session.closing", { required: ["reason"] }],
  ["Session", "closing", "FinishClosing", "session.closed", { required: ["final_stats"] }],
  ["Agent", "spawning", "CompleteInit", "agent.ready", { required: ["agent_id"] }],
  ["Agent", "spawning", "FailInit", "agent.failed", { required: ["agent_id", "error"] }],
  ["Agent", "idle", "AssignTurn", "turn.started", { required: ["turn_id", "agent_id", "input"] }],
  ["Agent", "running_turn", "EndTurnCompleted", "turn.completed", { required: ["final_output", "usage"] }],
  ["Agent", "idle", "Kill", "agent.terminated", { required: ["agent_id", "reason", "stats"] }],
  ["Agent", "running_turn", "ForceKill", "agent.terminated", { required: ["agent_id", "reason", "stats"] }],
  ["Autonomy", "planning", "CreatePlan", "plan.created", { required: ["plan_id", "tasks"] }],
  ["Autonomy", "planning", "UpdatePlan", "plan.updated", { required: ["plan_id", "changes"] }],
  ["Autonomy", "executing", "AssignTask", "plan.task_assigned", { required: ["task_id", "agent_id"] }],
  ["Autonomy", "executing", "StartTask", "plan.task_started", { required: ["task_id"] }],
  ["Autonomy", "executing", "CompleteTask", "plan.task_completed", { required: ["task_id", "result", "evidence"] }],
  ["Autonomy", "reviewing", "FindIssues", "plan.critique", { required: ["plan_id", "findings"] }],
  ["Autonomy", "reviewing", "PassCritique", "plan.goal_met", { required: ["plan_id", "summary"] }],
  ["Autonomy", "executing", "Cancel", "plan.stopped", { required: ["reason"] }]
]

/** Whether a rune is still one when this field of its payload is gone. */
const isRuneWithout = (rune: Rune, field: string): boolean => {
  const { [field]: _, ...payload } = rune.payload as Readonly<Record<string, unknown>>
  return Result.isSuccess(decode(encode({ ...rune, payload } as Rune)))
}

const expectFields = (kind: Kind, { optional = [], required }: Fields): void => {
  const rune = exampleRune(kind)
  expect(Result.isSuccess(decode(encode(rune)))).toBe(true)
  for (const field of [...required, ...optional]) expect(rune.payload, field).toHaveProperty(field)
  for (const field of required) expect(isRuneWithout(rune, field), field).toBe(false)
  for (const field of optional) expect(isRuneWithout(rune, field), field).toBe(true)
}

describe("state machines design: runes", () => {
  it.each(runeRows)("%s, %s × %s writes %s", (name, from, command, kind, fields) => {
    const { machine, samples } = subjectOf(name)
    const decision = decideIn(machine, from, samples[command]!)
    if (decision._tag !== "Accepted") throw new Error("refused")
    const written = decision.runes.filter((draft) => draft.kind === kind)
    expect(written).toHaveLength(1)
    if (fields.status !== undefined) expect(written[0]!.payload).toMatchObject({ status: fields.status })
    if (kind !== "tool.result") return expectFields(kind, fields)
    for (const field of fields.required) expect(isRuneWithout(exampleRune(kind), field), field).toBe(false)
    for (const field of fields.optional ?? []) expect(resultWith(field)).toBe(true)
  })

  /** A result may have this field, and need not. */
  const resultWith = (field: string): boolean => {
    const { payload: _, ...rune } = exampleRune("tool.result")
    const bare = { call_id: "call_1", status: "error", duration_ms: 1 }
    const values: Readonly<Record<string, unknown>> = { output: "o", error: { code: "c", message: "m" } }
    const isRune = (more: object) =>
      Result.isSuccess(decode(encode({ ...rune, payload: { ...bare, ...more } } as Rune)))
    return isRune({}) && isRune({ [field]: values[field] }) && !isRune({ [field]: 5 })
  }

  it.each([
    ["session.created", { required: ["config"] }],
    ["agent.spawning", { required: ["agent_id", "role", "model"], optional: ["parent_id"] }],
    ["plan.goal_received", { required: ["goal"] }]
  ] as const)("%s is how its machine begins", (kind, fields) => {
    expectFields(kind, fields)
    const story = new Story().create()
    story.run({ _tag: "SubmitGoal", payload: payloadExamples["plan.goal_received"] })
    const [first] = story.runes.filter((rune) => rune.kind === kind)
    expect(first).toMatchObject({ conversation_id: story.conversationId })
    for (const field of fields.required) expect(first?.payload).toHaveProperty(field)
  })
})

describe("session design: what a state carries", () => {
  const kindOf = (story: Story) => stateEvents(story.runes).findLast((event) => event.type === "state_changed")
  const warn = { failure_policy: { type: "warn_continue" }, timeout_ms: 9, effect_class: "pure" } as const
  const error = { error_type: "streaming_failed", message: "cut", retryable: true, source: "harness" } as const

  const asked = (): Story => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    return story
  }

  it("Idle is before there is an agent", () => {
    const story = new Story()
    expect(story.state.agents).toEqual([])
    expect(kindOf(story.create())).toMatchObject({ from: "Idle", to: "Starting" })
  })

  it("Starting has the model that answers and the workspace", () => {
    const story = new Story().create({ workspace: "/w" })
    expect(kindOf(story)).toMatchObject({ to: "Starting" })
    expect(story.agent).toMatchObject({ status: "spawning", model: "scripted/demo" })
    expect(story.state.session.config.workspace).toBe("/w")
  })

  it("Ready has the last message of the user, and nothing open", () => {
    const story = asked()
    const { started_event_id: asks } = story.turn
    story.respond([textItem("done")])
    expect(kindOf(story)).toMatchObject({ to: "Ready" })
    expect(story.agent.transcript.findLast((item) => item.type === "user")?.event_id).toBe(asks)
    expect([story.agent.turn, story.state.calls]).toEqual([null, []])
  })

  it("CallingLlm has the stream, the request and the attempt", () => {
    const story = asked()
    expect(kindOf(story)).toMatchObject({ to: "CallingLlm", streamId: "turn_1" })
    expect(story.turn).toMatchObject({ turn_id: "turn_1", request: { attempt: 1 } })
    expect(story.turn.request?.request_id).toMatch(/^req_/)
  })

  it("ProcessingResponse has the stream", () => {
    const story = asked()
    const items = [{ type: "tool_call", call_id: "call_1" as never }] as const
    story.tell("turn.assistant_final", { content: "", items })
    expect(kindOf(story)).toMatchObject({ to: "ProcessingResponse", streamId: "turn_1" })
    expect(story.turn).toMatchObject({ turn_id: "turn_1", status: "processing" })
  })

  it("ExecutingTools has the runs of the batch", () => {
    const story = new Story().inBatch(callItem("a", readTool), callItem("b", readTool))
    expect(kindOf(story)).toMatchObject({ to: "ExecutingTools" })
    expect(story.turn.call_ids).toEqual(["call_1", "call_2"])
    const runs = story.state.calls.map(({ run_id }) => run_id)
    expect(new Set(runs).size).toBe(2)
    for (const run of runs) expect(run).toMatch(/^toolrun_/)
  })

  it("PostToolsHook has the runs of its hooks", () => {
    const story = new Story().inBatch(callItem("a", writeTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle([
      { hook_name: "lint", ...warn },
      { hook_name: "test", ...warn }
    ])
    expect(kindOf(story)).toMatchObject({ to: "PostToolsHook" })
    expect(story.turn.hooks.map(({ hook_run_id, hook_name }) => [hook_run_id, hook_name])).toEqual([
      ["hookrun_1", "lint"],
      ["hookrun_2", "test"]
    ])
  })

  it("Error has the error, with its code, message, source and whether a retry can help", () => {
    const story = asked()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    expect(kindOf(story)).toMatchObject({ to: "Error" })
    expect(story.turn.retry).toMatchObject({ error_type: "streaming_failed", message: "cut", target: { type: "llm" } })
    const over = new Story().ready({ limits: { max_llm_retries: 0 } })
    over.post("go")
    over.request()
    over.run({ _tag: "FailModelCall", agent_id: over.root, error })
    const { error_type: code, ...rest } = error
    expect(over.agent.last_error).toMatchObject({ code, ...rest })
  })

  it("Stopping has the reason, and Stopped the reason and the figures of the agent", () => {
    const story = new Story().ready()
    story.run({ _tag: "Close", reason: "done" })
    expect(story.state.session).toMatchObject({ status: "closing", reason: "done" })
    expect(kindOf(story)).toMatchObject({ from: "Stopping", to: "Stopped" })
    expect(story.runes.at(-1)?.payload).toMatchObject({ reason: "session_closing", stats: { turns: 0 } })
  })

  it("a snapshot has the state, the stream, open calls, runs of tools and hooks, and the last error", () => {
    const story = new Story().ready({ limits: { max_llm_retries: 0 } })
    story.post("go")
    story.request()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    story.inBatch(callItem("a", writeTool), callItem("b", readTool))
    story.start("call_1")
    const inTools = JSON.parse(JSON.stringify(story.state))
    expect(inTools.agents[0]).toMatchObject({
      status: "running_turn",
      turn: { turn_id: "turn_2", status: "tool_executing", call_ids: ["call_1", "call_2"] },
      last_error: { code: "streaming_failed", message: "cut", retryable: true, source: "harness" }
    })
    expect(inTools.calls).toMatchObject([
      { call_id: "call_1", tool_name: "a", mutating: true, status: "executing", attempt: 1 },
      { call_id: "call_2", tool_name: "b", mutating: false, status: "pending_call", attempt: 0, started_ms: null }
    ])
    expect(inTools.calls[0].started_ms).toBeGreaterThan(0)
    for (const call of ["call_1", "call_2"]) {
      if (call === "call_2") story.start(call)
      story.finish(call)
    }
    story.settle([{ hook_name: "lint", ...warn }])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as HookRunId })
    expect(JSON.parse(JSON.stringify(story.turn)).hooks).toMatchObject([
      { hook_run_id: "hookrun_1", hook_name: "lint", status: "running", attempt: 1, started_ms: expect.any(Number) }
    ])
  })
})
