/**
 * Goal: the view state_events says what the session design says, in the order it
 * lists: completions before the change they lead to, an error before its state.
 */
import { describe, expect, it } from "vitest"
import type { ResponseItem } from "#src/machine/Command.ts"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { emptyConversation } from "#src/machine/State.ts"
import type { StateEvent } from "#src/machine/view/StateEvent.ts"
import {
  emptyStateProjection,
  projectStateEvents,
  stateEvents,
  stateProjectionOf
} from "#src/machine/view/StateEvents.ts"
import type { AgentId, CallId, HookRunId } from "#src/rune/Ids.ts"
import type { HookFailurePolicy } from "#src/rune/kinds/shared.ts"
import { reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"
import { type Draw, takeStep } from "../../support/walk.ts"

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
    case "session_changed":
      return `session_changed(${event.from} -> ${event.to})`
    case "waiting":
      return `waiting(${event.on})`
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
      "tool_lifecycle(Queued)",
      "tool_lifecycle(Running)",
      "tool_lifecycle(Succeeded)",
      "state_changed(ExecutingTools -> PostToolsHook, tools_completed)",
      "hook_lifecycle(Queued)",
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
      "session_changed(created -> active)",
      "state_changed(Ready -> CallingLlm, user_input)",
      "state_changed(CallingLlm -> ProcessingResponse, stream_completed)",
      "state_changed(ProcessingResponse -> ExecutingTools, tools_requested)",
      "tool_lifecycle(Queued)",
      "tool_lifecycle(Running)",
      "session_changed(active -> closing)",
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
    const [queued, running, failed] = stateEvents(story.runes).filter((event) => event.type === "tool_lifecycle")
    expect(queued).toMatchObject({ callId: "call_1", status: "Queued", attempt: 0, runId: running?.runId })
    expect(running).toMatchObject({ callId: "call_1", toolName: "bash", mutating: true, status: "Running", attempt: 1 })
    expect(running?.runId).toMatch(/^toolrun_[0-9a-f]{16}$/u)
    expect(failed).toMatchObject({
      runId: running?.runId,
      status: "Failed",
      error: "2",
      errorCode: "exit",
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
      "tool_lifecycle(Queued)",
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
      "waiting(provider)",
      "waiting(nothing)",
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
      "hook_lifecycle(Queued)",
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
    expect(hooks[0]).toMatchObject({ status: "Queued", attempt: 0 })
    expect(hooks[1]?.toolRunIds).toHaveLength(1)
    expect(hooks[2]).toMatchObject({ error: "bad", errorCode: "x", attempt: 1 })
    expect(hooks[3]).toMatchObject({ attempt: 2 })
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
    expect(lines(story).slice(-3)).toEqual([
      "state_changed(Ready -> Stopping, stop_requested)",
      "state_changed(Stopping -> Stopped, harness_exited)",
      "session_changed(active -> closing)"
    ])
  })

  const failing = { error_type: "overloaded", message: "m", retryable: true, source: "harness" } as const
  const begun = (item: ResponseItem): Story => new Story().inBatch(item)
  const crashed = (): Story => {
    const story = begun(callItem("read", readTool))
    story.start("call_1")
    story.run({ _tag: "CrashCall", call_id: "call_1" as CallId, message: "died" })
    return story
  }
  const hooked = (policy: HookFailurePolicy): Story => {
    const story = begun(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle([{ ...hook, failure_policy: policy }])
    story.run({ _tag: "StartHook", hook_run_id: hookRun })
    return story
  }
  const asked = (): Story => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    return story
  }

  it.each<readonly [string, string, () => Story]>([
    ["Starting", "an agent that is not up yet", () => new Story().create()],
    ["Ready", "an agent at rest", () => new Story().ready()],
    ["CallingLlm", "a model that speaks", asked],
    [
      "ProcessingResponse",
      "an answer that is being read",
      () => {
        const story = asked()
        story.tell("turn.assistant_final", { content: "", items: [{ type: "tool_call", call_id: "call_1" as CallId }] })
        return story
      }
    ],
    ["ExecutingTools", "a tool that runs", () => begun(callItem("read", readTool))],
    ["PostToolsHook", "a hook that runs", () => hooked({ type: "warn_continue" })],
    [
      "Error",
      "a model call that waits for its retry",
      () => {
        const story = asked()
        story.run({ _tag: "FailModelCall", agent_id: story.root, error: failing })
        return story
      }
    ],
    ["Error", "a tool that waits for its retry", crashed],
    [
      "Error",
      "a hook that waits for its retry",
      () => {
        const story = hooked({ type: "retry", max_attempts: 2, delay_ms: 9 })
        story.run({ _tag: "FinishHook", hook_run_id: hookRun, status: "failed", duration_ms: 1 })
        return story
      }
    ]
  ])("go from %s to Stopping when %s is stopped, and nowhere but to Stopped after that", (from, _what, begin) => {
    const story = begin()
    const before = story.state.head
    story.run({ _tag: "Close", reason: "enough" })
    story.run({ _tag: "FinishClosing" })
    expect(lines(story, before).filter((one) => one.startsWith("state_changed"))).toEqual([
      `state_changed(${from} -> Stopping, stop_requested)`,
      "state_changed(Stopping -> Stopped, harness_exited)"
    ])
    expect(story.effects).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
    for (const command of [
      { _tag: "RetryDue", agent_id: story.root },
      { _tag: "RetryTurn" },
      { _tag: "PostMessage", content: "more", mode: "queue" }
    ] as const)
      expect(["invalid_state", "not_found"]).toContain(story.refused(command).code)
  })

  it("tell a hook's run in full", () => {
    const story = hooked({ type: "warn_continue" })
    story.run({
      _tag: "FinishHook",
      hook_run_id: hookRun,
      status: "failed",
      duration_ms: 1,
      error: { code: "x", message: "bad" }
    })
    const [queued, running, failed] = stateEvents(story.runes).filter((event) => event.type === "hook_lifecycle")
    const [run] = stateEvents(story.runes).flatMap((event) => (event.type === "tool_lifecycle" ? [event.runId] : []))
    const at = { sessionId: story.conversationId, agentId: story.root, runId: "hookrun_1", hookName: "lint" }
    expect(queued).toMatchObject({ ...at, status: "Queued", attempt: 0, toolRunIds: [] })
    expect(running).toMatchObject({ ...at, status: "Running", attempt: 1, toolRunIds: [run] })
    expect(running).not.toHaveProperty("finishedAtMs")
    expect(failed).toMatchObject({
      ...at,
      status: "Failed",
      attempt: 1,
      toolRunIds: [run],
      startedAtMs: running?.startedAtMs,
      finishedAtMs: story.runes.find(({ kind }) => kind === "hook.completed")?.ts_ms,
      error: "bad",
      errorCode: "x"
    })
  })

  it("tell an error in full", () => {
    const story = asked()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error: { ...failing, message: "busy" } })
    expect(stateEvents(story.runes).find((event) => event.type === "session_error")).toEqual({
      eventId: `${story.state.head}.0`,
      timestampMs: story.runes.at(-1)?.ts_ms,
      sessionId: story.conversationId,
      agentId: story.root,
      type: "session_error",
      code: "harness_failed",
      detail: "overloaded",
      message: "busy",
      retryable: true,
      source: "harness"
    })
  })

  it("keep one stream through a turn, whatever it asks for, and have another for the next", () => {
    const story = begun(callItem("read", readTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle()
    story.request()
    story.run({ _tag: "FailModelCall", agent_id: story.root, error: failing })
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.request()
    story.respond([textItem("done")])
    story.post("again")
    const streams = stateEvents(story.runes).flatMap((event) =>
      event.type === "state_changed" && event.streamId !== undefined ? [event.streamId] : []
    )
    expect(streams).toHaveLength(8)
    expect(new Set(streams.slice(0, -1))).toEqual(new Set(["turn_1"]))
    expect(streams.at(-1)).toBe("turn_2")
  })

  it("name a reason that is on the list for every change, in random lives", () => {
    const designed = "user_input stream_completed tools_requested tools_completed hooks_completed stop_requested"
    const own = "harness_exited spawn_requested harness_ready error retry_timeout retries_exhausted interrupted"
    const reasons = new Set([...designed.split(" "), ...own.split(" ")])
    const seed = seedFor("reasons of state changes")
    let changes = 0
    for (let walk = 0; walk < 25; walk += 1) {
      const random = randomFrom(seed + walk)
      const draw: Draw = (below) => Math.floor(random() * below)
      const story = new Story().create()
      for (let step = 0; step < 120; step += 1) takeStep(story, draw)
      for (const event of stateEvents(story.runes)) {
        if (event.type !== "state_changed") continue
        expect(reasons, `walk ${seed + walk}, event ${event.eventId}`).toContain(event.reason)
        expect(event.from, `walk ${seed + walk}, event ${event.eventId}`).not.toBe(event.to)
        changes += 1
      }
    }
    expect(changes).toBeGreaterThan(25)
    reportCount("changes of state in random lives, each with its reason", changes)
  })

  it("carry the agent, also of a change that is about all of them", () => {
    const story = new Story().ready()
    const other = "agt_other" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: other, role: "worker", model: "m" } })
    story.run({ _tag: "CompleteAgentInit", agent_id: other })
    story.run({ _tag: "Close", reason: "done" })
    const changes = stateEvents(story.runes).filter((event) => event.type === "state_changed")
    expect(changes.every(({ agentId }) => agentId !== undefined)).toBe(true)
    const stopping = changes.filter(({ to }) => to === "Stopping").map(({ agentId }) => agentId)
    expect(stopping).toEqual([story.root, other])
  })

  it("show a pause, a suspension, and for whom or what is waited", () => {
    const story = new Story().ready()
    story.run({ _tag: "Pause", reason: "lunch" })
    story.run({ _tag: "Resume" })
    story.run({ _tag: "Suspend", reason: "budget_exhausted" })
    story.run({ _tag: "Unsuspend" })
    expect(lines(story).filter((one) => one.startsWith("session_changed"))).toEqual([
      "session_changed(created -> active)",
      "session_changed(active -> paused)",
      "session_changed(paused -> active)",
      "session_changed(active -> suspended)",
      "session_changed(suspended -> active)"
    ])
    expect(stateEvents(story.runes).find((event) => event.type === "session_changed" && event.to === "paused")).toEqual(
      expect.objectContaining({ reason: "lunch" })
    )
    const before = story.state.head
    story.inBatch(callItem("bash", shellTool), callItem("ask_user", readTool))
    story.ask("call_1")
    story.ask("call_1".replace("1", "2"))
    story.run({ _tag: "DenyCall", call_id: "call_1" as CallId, approver: "ada", reason: "no", channel: "cli" })
    story.run({ _tag: "ApproveCall", call_id: "call_2" as CallId, approver: "ada", channel: "cli", scope: "once" })
    story.start("call_2")
    story.finish("call_2")
    const waits = stateEvents(story.runes).flatMap((event) =>
      event.type === "waiting" && Number.parseInt(event.eventId, 10) > before ? [`${event.on} ${event.callId}`] : []
    )
    expect(waits).toEqual([
      "approval call_1",
      "approval call_2",
      "nothing call_1",
      "nothing call_2",
      "answer call_2",
      "nothing call_2"
    ])
  })

  it("name errors as the design does, with what they were exactly beside it", () => {
    const fail = (error_type: string, source: "harness" | "orchestrator", hasBegun = false) => {
      const story = new Story().ready({ limits: { max_llm_retries: 0, llm_retry_ms: 0 } })
      story.post("go")
      story.request()
      if (hasBegun) story.run({ _tag: "AppendText", agent_id: story.root, content: "I" })
      story.run({
        _tag: "FailModelCall",
        agent_id: story.root,
        error: { error_type, message: "m", retryable: false, source }
      })
      return stateEvents(story.runes).find((event) => event.type === "session_error")
    }
    expect(fail("overloaded", "harness")).toMatchObject({ code: "harness_failed", detail: "overloaded" })
    expect(fail("connection_lost", "harness", true)).toMatchObject({
      code: "streaming_failed",
      detail: "connection_lost"
    })
    expect(fail("turn_stuck", "orchestrator")).toMatchObject({ code: "turn_stuck" })
    expect(fail("turn_stuck", "orchestrator")).not.toHaveProperty("detail")
  })

  it("wait for a person where only one can help, until the turn is over", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const error = { error_type: "auth", message: "wrong key", retryable: true, source: "harness" } as const
    story.run({ _tag: "FailModelCall", agent_id: story.root, error, waits_for: "person" })
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    const waits = lines(story).filter((one) => one.startsWith("waiting"))
    expect(waits).toEqual(["waiting(person)", "waiting(nothing)"])
  })

  it("go on from a state as they would have from the beginning, wherever that was", () => {
    const seed = seedFor("state events from a state")
    let compared = 0
    for (let walk = 0; walk < 25; walk += 1) {
      const random = randomFrom(seed + walk)
      const draw: Draw = (below) => Math.floor(random() * below)
      const story = new Story().create()
      for (let step = 0; step < 120; step += 1) takeStep(story, draw)
      const whole = stateEvents(story.runes)
      const state = emptyConversation(story.conversationId)
      for (const [at, rune] of story.runes.entries()) {
        evolve(state, rune)
        if (at % 7 !== 0) continue
        const projection = stateProjectionOf(state)
        const rest = story.runes.slice(at + 1).flatMap((one) => projectStateEvents(projection, one))
        const expected = whole.filter((event) => Number.parseInt(event.eventId, 10) > rune.event_id)
        const changes = (events: ReadonlyArray<StateEvent>) => events.filter(({ type }) => type === "state_changed")
        expect(changes(rest), `walk ${seed + walk}, after event ${rune.event_id} ${rune.kind}`).toEqual(
          changes(expected)
        )
        compared += expected.length
      }
    }
    reportCount("state events, the same from a state as from the beginning", compared)
  })

  it("are silent about what they do not know", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    const stranger = "agt_9999" as AgentId
    const projection = emptyStateProjection()
    const silent = story.runes
      .filter((rune) => rune.kind !== "agent.spawning" && rune.kind !== "session.activated")
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
