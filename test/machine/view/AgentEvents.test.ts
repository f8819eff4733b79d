/** Goal: native agents speak the same normalized events as outside ones, and the monitor agrees. */
import { describe, expect, it } from "vitest"
import { type AttentionStatus, attentionStep } from "#src/machine/table/Attention.ts"
import { type MonitorStatus, observe } from "#src/machine/table/Monitor.ts"
import { agentEvents, emptyAgentProjection, projectAgentEvents } from "#src/machine/view/AgentEvents.ts"
import { attentionSignals } from "#src/machine/view/AttentionSignals.ts"
import type { AgentId, CallId } from "#src/rune/Ids.ts"
import { exampleRune } from "../../support/runeExamples.ts"
import { callItem, readTool, Story, textItem } from "../../support/story.ts"

const types = (story: Story): ReadonlyArray<string> =>
  agentEvents(story.runes).map(({ event }) =>
    event.type === "state_change"
      ? `${event.state}${event.sub_state === undefined ? "" : `/${event.sub_state}`}`
      : event.type
  )

const told = () => {
  const story = new Story().ready()
  story.post("go")
  story.request()
  story.respond([textItem("I look."), callItem("a", readTool), callItem("b", readTool)])
  story.start("call_1")
  story.ask("call_2")
  story.run({ _tag: "ApproveCall", call_id: "call_2" as CallId, approver: "ada", channel: "cli", scope: "once" })
  story.start("call_2")
  story.finish("call_1")
  story.run({
    _tag: "FinishCall",
    call_id: "call_2" as CallId,
    status: "error",
    duration_ms: 3,
    error: { code: "x", message: "bad" }
  })
  story.settle()
  story.request()
  story.respond([textItem("done")])
  return story
}

describe("agent events", () => {
  it("of a turn with two tools", () => {
    expect(types(told())).toEqual([
      "session_started",
      "idle",
      "user_prompt",
      "turn_started",
      "active/thinking",
      "agent_message",
      "tool_started",
      "active/tool_use",
      "approval_requested",
      "active/waiting_for_permission",
      "active/tool_use",
      "tool_started",
      "active/tool_use",
      "tool_completed",
      "active/tool_use",
      "tool_completed",
      "active/thinking",
      "agent_message",
      "turn_completed",
      "idle"
    ])
  })

  it("carry their figures and their place", () => {
    const events = agentEvents(told().runes)
    expect(events[0]).toMatchObject({ event_id: "3.0", event: { type: "session_started", model: "scripted/demo" } })
    expect(events.find(({ event }) => event.type === "turn_completed")?.event).toEqual({
      type: "turn_completed",
      turn_id: "turn_1",
      input_tokens: 20,
      output_tokens: 10,
      cached_tokens: 0,
      cost_usd: 0.5
    })
    expect(events.findLast(({ event }) => event.type === "tool_completed")?.event).toEqual({
      type: "tool_completed",
      tool_name: "b",
      call_id: "call_2",
      duration_ms: 3,
      success: false,
      error: "bad"
    })
  })

  it("pass those of outside agents through, and end with them", () => {
    const story = new Story().ready()
    story.run({ _tag: "AttachHarness", agent_id: story.root, payload: { harness: "codex" } })
    story.run({ _tag: "RecordHarnessEvents", agent_id: story.root, events: [{ type: "agent_message", content: "hi" }] })
    story.tell("agent.state_changed", { state: "active", sub_state: "compacting" })
    story.run({ _tag: "DetachHarness", agent_id: story.root, payload: { reason: "gone", exit_code: 1 } })
    story.run({ _tag: "KillAgent", agent_id: story.root, reason: "over", force: false })
    expect(types(story).slice(2)).toEqual(["agent_message", "active/compacting", "session_ended", "session_ended"])
  })

  it("tell compaction, interruption, errors and a failed start", () => {
    const story = new Story().ready()
    story.run({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "s" })
    story.post("go")
    story.run({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "s" })
    story.run({ _tag: "InterruptTurn", reason: "x" })
    story.tell("agent.failed", { agent_id: story.root, error: { code: "x", message: "y" } })
    expect(types(story).slice(2)).toEqual([
      "active/compacting",
      "idle",
      "user_prompt",
      "turn_started",
      "active/thinking",
      "active/compacting",
      "active/thinking",
      "turn_completed",
      "idle",
      "session_ended"
    ])
  })

  it("give only the text of an input with attachments, and no message for silence", () => {
    const story = new Story().ready()
    const content = [
      { type: "text", text: "look" },
      { type: "image", media_type: "image/png", url: "u" }
    ] as const
    story.run({ _tag: "PostMessage", content, mode: "queue" })
    story.request()
    story.respond([])
    const events = agentEvents(story.runes).map(({ event }) => event)
    expect(events.find((event) => event.type === "user_prompt")).toEqual({
      type: "user_prompt",
      text: "look",
      prompt_length: 4
    })
    expect(events.some((event) => event.type === "agent_message")).toBe(false)
  })

  it("are silent about what they do not know", () => {
    const story = told()
    const projection = emptyAgentProjection()
    const kinds = ["tool.call", "tool.started", "tool.result"]
    const strangers = story.runes
      .filter((rune) => kinds.includes(rune.kind))
      .map((rune) => ({ ...rune, agent_id: "agt_9999" as AgentId }))
    expect(strangers.flatMap((rune) => projectAgentEvents(projection, rune))).toEqual([])
    expect(projectAgentEvents(projection, { ...story.runes[0]!, kind: "dream.started" } as never)).toEqual([])
    expect(projectAgentEvents(projection, exampleRune("tool.approval_requested"))[0]).toMatchObject({
      event: { tool_name: "" }
    })
    expect(projectAgentEvents(projection, exampleRune("agent.ready"))[0]).toMatchObject({ event: { model: "" } })
    const { usage: _, ...bare } = { usage: 1, reason: "x", partial_output: "" }
    const { turn_id: __, ...interrupted } = exampleRune("turn.interrupted")
    expect(projectAgentEvents(projection, { ...interrupted, payload: bare } as never)[0]?.event).toMatchObject({
      input_tokens: 0
    })
  })

  it("drive the monitor to where the turn is", () => {
    let status: MonitorStatus = "initialized"
    const seen: Array<MonitorStatus> = []
    for (const { event } of agentEvents(told().runes)) {
      status = observe(status, event)
      if (seen.at(-1) !== status) seen.push(status)
    }
    expect(seen).toEqual(["idle", "thinking", "tool_use", "waiting_for_permission", "tool_use", "thinking", "idle"])
  })
})

describe("attention signals", () => {
  const folded = (story: Story): ReadonlyArray<AttentionStatus> => {
    let status: AttentionStatus = "starting"
    const seen: Array<AttentionStatus> = [status]
    for (const rune of story.runes) {
      for (const signal of attentionSignals(rune)) {
        status = attentionStep(status, signal)
        if (seen.at(-1) !== status) seen.push(status)
      }
    }
    return seen
  }

  it("of a native turn with a question", () => {
    expect(folded(told())).toEqual(["starting", "running", "idle", "running", "awaiting_approval", "running", "idle"])
  })

  it("of a turn that ends badly, and of the end of all", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.error", { error_type: "x", message: "y", retryable: false })
    story.run({ _tag: "Close", reason: "x" })
    story.run({ _tag: "FinishClosing" })
    expect(folded(story).slice(2)).toEqual(["idle", "running", "error", "closed"])
  })

  it.each([
    [{ type: "session_started" }, ["session_start"]],
    [{ type: "user_prompt" }, ["prompt_submit"]],
    [{ type: "turn_started" }, ["prompt_submit"]],
    [{ type: "tool_started", tool_name: "ExitPlanMode" }, ["tool_start_approval"]],
    [{ type: "tool_started", tool_name: "ask_user" }, ["tool_start_question"]],
    [{ type: "tool_started", tool_name: "toString" }, ["tool_start_other"]],
    [{ type: "tool_completed", tool_name: "x", duration_ms: 1, success: true }, ["tool_call"]],
    [{ type: "approval_requested", tool_name: "x" }, ["tool_start_approval"]],
    [{ type: "turn_completed", input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 }, ["stop"]],
    [{ type: "session_ended" }, ["mark_stopped"]],
    [{ type: "agent_message", content: "x" }, []],
    [{ type: "state_change", state: "idle" }, ["stop"]],
    [{ type: "state_change", state: "exited" }, ["mark_stopped"]],
    [{ type: "state_change", state: "initialized" }, []],
    [{ type: "state_change", state: "active", sub_state: "thinking" }, []],
    [{ type: "state_change", state: "active", sub_state: "waiting_for_permission" }, ["tool_start_approval"]]
  ] as const)("%j means %j", (event, signals) => {
    const rune = { ...exampleRune("harness.event"), payload: { event } }
    expect(attentionSignals(rune as never)).toEqual(signals)
  })

  it("of a recovery and of a loss", () => {
    expect(attentionSignals(exampleRune("harness.recovered"))).toEqual(["health_check_recovery"])
    expect(attentionSignals(exampleRune("harness.detached"))).toEqual(["mark_stopped"])
    expect(attentionSignals(exampleRune("system.thinned"))).toEqual([])
  })
})
