/**
 * Goal: the view state_events says what the session design says, in the order it
 * lists: completions before the change they lead to, an error before its state.
 */
import { describe, expect, it } from "vitest"
import type { StateEvent } from "#src/machine/projection/StateEvent.ts"
import { emptyStateProjection, projectStateEvents, stateEvents } from "#src/machine/StateEvents.ts"
import type { AgentId, CallId, HookRunId } from "#src/rune/Ids.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../support/story.ts"

/** One line per event, as the design writes its example. */
const line = (event: StateEvent): string => {
  switch (event.type) {
    case "state_changed":
      return `state_changed(${event.from} -> ${event.to}, ${event.reason})`
    case "tool_lifecycle":
      return `tool_lifecycle(${event.status})`
    case "hook_lifecycle":
      return `hook_lifecycle(${event.status})`
    case "session_error":
      return `session_error(${event.code}, ${event.retryable}, ${event.source})`
  }
}
const lines = (story: Story, after = 0): ReadonlyArray<string> =>
  stateEvents(story.runes)
    .filter((event) => Number.parseInt(event.eventId, 10) > after)
    .map(line)

const hookRun = "hookrun_1" as HookRunId
const hook = {
  hook_name: "lint",
  failure_policy: { type: "fail_session" },
  timeout_ms: 9,
  effect_class: "pure"
} as const

describe("state events", () => {
  it("follow the example of the design: a single tool that changes something", () => {
    const story = new Story().ready()
    const before = story.state.head
    story.post("go")
    story.request()
    story.run({ _tag: "AppendText", agent_id: story.root, content: "I write" })
    story.respond([textItem("I write"), callItem("write", writeTool)])
    story.start("call_1")
    story.finish("call_1")
    story.settle([hook])
    story.run({ _tag: "StartHook", hook_run_id: hookRun })
    story.run({ _tag: "FinishHook", hook_run_id: hookRun, status: "succeeded", duration_ms: 1 })
    story.request()
    story.respond([textItem("done")])
    expect(lines(story, before)).toEqual([
      "state_changed(Ready -> CallingLlm, user_input)",
      "state_changed(CallingLlm -> ProcessingResponse, stream_completed)",
      "state_changed(ProcessingResponse -> ExecutingTools, tools_requested)",
      "tool_lifecycle(Running)",
      "tool_lifecycle(Succeeded)",
      "state_changed(ExecutingTools -> PostToolsHook, tools_completed)",
      "hook_lifecycle(Running)",
      "hook_lifecycle(Succeeded)",
      "state_changed(PostToolsHook -> CallingLlm, hooks_completed)",
      "state_changed(CallingLlm -> Ready, stream_completed)"
    ])
  })

  it("begin with the start of the agent and end with its stop", () => {
    const story = new Story().ready()
    story.inBatch(callItem("bash", shellTool))
    story.start("call_1")
    story.run({ _tag: "Close", reason: "done" })
    expect(lines(story)).toEqual([
      "state_changed(Idle -> Starting, spawn_requested)",
      "state_changed(Starting -> Ready, harness_ready)",
      "state_changed(Ready -> CallingLlm, user_input)",
      "state_changed(CallingLlm -> ProcessingResponse, stream_completed)",
      "state_changed(ProcessingResponse -> ExecutingTools, tools_requested)",
      "tool_lifecycle(Running)",
      "state_changed(ExecutingTools -> Stopping, stop_requested)",
      "tool_lifecycle(Canceled)",
      "state_changed(Stopping -> Stopped, harness_exited)"
    ])
  })

  it("carry an id, a time, the session, and the stream", () => {
    const story = new Story().ready()
    story.post("go")
    const [last] = stateEvents(story.runes).slice(-1)
    expect(last).toEqual({
      eventId: `${story.state.head}.0`,
      timestampMs: story.runes.at(-1)?.ts_ms,
      sessionId: story.conversationId,
      agentId: story.root,
      type: "state_changed",
      from: "Ready",
      to: "CallingLlm",
      reason: "user_input",
      streamId: "turn_1"
    })
    const ids = stateEvents(story.runes).map((event) => event.eventId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it("tell a tool's run in full", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.start("call_1")
    story.run({
      _tag: "FinishCall",
      call_id: "call_1" as CallId,
      status: "error",
      duration_ms: 1,
      error: { code: "exit", message: "2" }
    })
    const [running, failed] = stateEvents(story.runes).filter((event) => event.type === "tool_lifecycle")
    expect(running).toMatchObject({ callId: "call_1", toolName: "bash", mutating: true, status: "Running", attempt: 1 })
    expect(running?.runId).toMatch(/^toolrun_[0-9a-f]{16}$/u)
    expect(failed).toMatchObject({
      runId: running?.runId,
      status: "Failed",
      error: "2",
      startedAtMs: running?.startedAtMs
    })
    expect(failed).toHaveProperty("finishedAtMs")
  })

  it("go from tools to the model when nothing changed, and to Ready when the batch ends the turn", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    story.finish("call_1")
    const before = story.state.head
    story.settle()
    story.request()
    story.respond([callItem("submit", readTool)])
    story.start("call_2")
    story.finish("call_2")
    story.run({ _tag: "SettleTools", agent_id: story.root, hooks: [], end_turn: true })
    expect(lines(story, before)).toEqual([
      "state_changed(ExecutingTools -> CallingLlm, tools_completed)",
      "state_changed(CallingLlm -> ProcessingResponse, stream_completed)",
      "state_changed(ProcessingResponse -> ExecutingTools, tools_requested)",
      "tool_lifecycle(Running)",
      "tool_lifecycle(Succeeded)",
      "state_changed(ExecutingTools -> Ready, tools_completed)"
    ])
  })

  it("tell an error before its state, the retry, and at last Ready with the error kept", () => {
    const story = new Story().ready({ limits: { max_llm_retries: 1 } })
    const before = story.state.head
    const error = { error_type: "streaming_failed", message: "cut", retryable: true, source: "harness" } as const
    story.post("go")
    story.request()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.request()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    expect(lines(story, before)).toEqual([
      "state_changed(Ready -> CallingLlm, user_input)",
      "session_error(streaming_failed, true, harness)",
      "state_changed(CallingLlm -> Error, error)",
      "state_changed(Error -> CallingLlm, retry_timeout)",
      "session_error(streaming_failed, true, harness)",
      "state_changed(CallingLlm -> Error, error)",
      "state_changed(Error -> Ready, retries_exhausted)"
    ])
  })

  it("tell the retry of a tool and of a hook", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    const before = story.state.head
    story.run({ _tag: "CrashCall", call_id: "call_1" as CallId, message: "died" })
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.start("call_1")
    story.finish("call_1")
    story.settle([{ ...hook, failure_policy: { type: "retry", max_attempts: 2, delay_ms: 1 } }])
    story.run({ _tag: "StartHook", hook_run_id: hookRun })
    story.run({
      _tag: "FinishHook",
      hook_run_id: hookRun,
      status: "failed",
      duration_ms: 1,
      error: { code: "x", message: "bad" }
    })
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.run({ _tag: "StartHook", hook_run_id: hookRun })
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    expect(lines(story, before)).toEqual([
      "session_error(tool_execution_failed, true, tool)",
      "state_changed(ExecutingTools -> Error, error)",
      "state_changed(Error -> ExecutingTools, retry_timeout)",
      "tool_lifecycle(Running)",
      "tool_lifecycle(Succeeded)",
      "state_changed(ExecutingTools -> PostToolsHook, tools_completed)",
      "hook_lifecycle(Running)",
      "hook_lifecycle(Failed)",
      "session_error(hook_execution_failed, true, hook)",
      "state_changed(PostToolsHook -> Error, error)",
      "state_changed(Error -> PostToolsHook, retry_timeout)",
      "hook_lifecycle(Running)",
      "hook_lifecycle(Canceled)",
      "state_changed(PostToolsHook -> Ready, interrupted)"
    ])
    const hooks = stateEvents(story.runes).filter((event) => event.type === "hook_lifecycle")
    expect(hooks[0]?.toolRunIds).toHaveLength(1)
    expect(hooks[1]).toMatchObject({ error: "bad", attempt: 1 })
    expect(hooks[2]).toMatchObject({ attempt: 2 })
  })

  it("name for a hook the runs of its own batch only", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle()
    story.request()
    story.respond([callItem("write", writeTool)])
    story.start("call_2")
    story.finish("call_2")
    story.settle([hook])
    story.run({ _tag: "StartHook", hook_run_id: hookRun })
    const events = stateEvents(story.runes)
    const runs = events.flatMap((event) =>
      event.type === "tool_lifecycle" && event.callId === "call_2" ? [event.runId] : []
    )
    expect(events.at(-1)).toMatchObject({ type: "hook_lifecycle", toolRunIds: [runs[0]] })
  })

  it("tell of an agent that failed to start, and of a system error", () => {
    const story = new Story().create()
    story.run({ _tag: "FailAgentInit", agent_id: story.root, error: { code: "harness_failed", message: "no" } })
    story.run({
      _tag: "RecordSystemError",
      payload: { code: "hook_config_invalid", message: "bad", retryable: false, source: "hook" }
    })
    expect(lines(story, 2)).toEqual([
      "session_error(harness_failed, false, harness)",
      "state_changed(Starting -> Error, error)",
      "session_error(hook_config_invalid, false, hook)"
    ])
  })

  it("stop an agent that is killed alone", () => {
    const story = new Story().ready()
    story.run({ _tag: "KillAgent", agent_id: story.root, reason: "x", force: false })
    story.run({ _tag: "Close", reason: "x" })
    expect(lines(story).slice(-2)).toEqual([
      "state_changed(Ready -> Stopping, stop_requested)",
      "state_changed(Stopping -> Stopped, harness_exited)"
    ])
  })

  it("are silent about what they do not know", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    const stranger = "agt_9999" as AgentId
    const projection = emptyStateProjection()
    const silent = story.runes
      .filter((rune) => rune.kind !== "agent.spawning")
      .flatMap((rune) => projectStateEvents(projection, { ...rune, agent_id: stranger }))
    expect(silent).toEqual([])
    const unknown = { ...story.runes[0]!, kind: "dream.started" } as never
    expect(projectStateEvents(projection, unknown)).toEqual([])
    const other = new Story().ready()
    other.tell("agent.failed", { agent_id: stranger, error: { code: "x", message: "y" } })
    other.tell("agent.terminated", {
      agent_id: stranger,
      reason: "x",
      stats: { turns: 0, tool_calls: 0, usage: { input_tokens: 0, output_tokens: 0 } }
    })
    other.tell("hook.started", { hook_run_id: hookRun, hook_name: "x", call_ids: [], attempt: 1 })
    other.tell("hook.completed", { hook_run_id: hookRun, status: "failed", duration_ms: 1 })
    other.tell("tool.result", { call_id: "c" as CallId, status: "success", duration_ms: 1 })
    other.tell("turn.completed", { final_output: "", usage: { input_tokens: 0, output_tokens: 0 } })
    expect(lines(other, 4)).toEqual([])
  })

  it("name no source where the rune names none", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.error", { error_type: "x", message: "y", retryable: false })
    expect(lines(story, 5)[0]).toBe("session_error(x, false, orchestrator)")
  })
})
