/** Goal: what is written about an outside agent: events as they are, changes of state once, usage against the budget, an end for all it asked. */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { attentionItems } from "#src/machine/view/Supervision.ts"
import type { AgentEvent } from "#src/rune/AgentEvent.ts"
import type { CallId } from "#src/rune/Ids.ts"
import { Story, shellTool } from "../../support/story.ts"

const attached = (): Story => {
  const story = new Story().ready()
  story.run({ _tag: "AttachHarness", agent_id: story.root, payload: { harness: "claude", pid: 7 } })
  return story
}

const hear = (story: Story, ...events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const before = story.runes.length
  story.run({ _tag: "RecordHarnessEvents", agent_id: story.root, events })
  return story.runes.slice(before).map((rune) => rune.kind)
}

const tokens = (input: number): AgentEvent => ({
  type: "usage_reported",
  input_tokens: input,
  output_tokens: 0,
  cached_tokens: 0,
  cost_usd: 0.5
})

describe("an outside agent", () => {
  it("is recorded event by event, with a state change where the monitor shows another state", () => {
    const story = attached()
    expect(hear(story, { type: "session_started" })).toEqual(["harness.event", "agent.state_changed"])
    expect(hear(story, { type: "user_prompt", text: "hi" })).toEqual(["harness.event", "agent.state_changed"])
    expect(hear(story, { type: "agent_message", content: "hello" })).toEqual(["harness.event"])
    expect(hear(story, { type: "state_change", state: "active", sub_state: "thinking" })).toEqual([])
    expect(hear(story, { type: "state_change", state: "idle" })).toEqual(["agent.state_changed"])
    expect(story.agent.harness).toMatchObject({ monitor: "idle", attention: "idle" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("that fails needs a person, though its monitor is idle", () => {
    const story = attached()
    hear(story, { type: "user_prompt" })
    const failed = {
      type: "turn_completed",
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      cost_usd: null
    } as const
    hear(story, { type: "state_change", state: "idle" }, { ...failed, error: "overloaded" })
    expect(story.agent.harness).toMatchObject({ monitor: "idle", attention: "error" })
    expect(attentionItems(story.state)).toMatchObject([
      { type: "notice", title: "claude ended its turn with an error" }
    ])
  })

  it("counts what it used once, and suspends the conversation when the budget is used up", () => {
    const story = attached()
    story.run({ _tag: "UpdateConfig", changes: { budget: { tokens: 100 } } })
    expect(hear(story, tokens(60))).toEqual(["harness.event"])
    expect(story.state.usage).toMatchObject({ input_tokens: 60, usd: 0.5 })
    expect(hear(story, tokens(40))).toEqual(["harness.event", "agent.budget_exhausted", "session.suspended"])
    expect(story.state.session.status).toBe("suspended")
    expect(hear(story, tokens(5))).toEqual(["harness.event"])
    expect(story.agent.usage.input_tokens).toBe(105)
  })

  it("is held to money as well, and what it cannot price counts as tokens alone", () => {
    const story = attached()
    story.run({ _tag: "UpdateConfig", changes: { budget: { usd: 0.6 } } })
    expect(hear(story, { ...tokens(10), cost_usd: null } as AgentEvent)).toEqual(["harness.event"])
    expect(hear(story, tokens(10))).toEqual(["harness.event"])
    expect(hear(story, tokens(10))).toContain("session.suspended")
    expect(story.agent.usage).toMatchObject({ input_tokens: 30, usd: 1, unpriced: true })
  })

  it("leaves no open question behind when it goes", () => {
    const story = attached()
    const call_id = "toolu_1" as CallId
    story.run({ _tag: "OpenCall", agent_id: story.root, call_id, tool_name: "Bash", arguments: {}, tool: shellTool })
    story.run({ _tag: "RequireApproval", call_id, policy_reason: "claude asks", shown_as: { title: "Bash" } })
    expect(attentionItems(story.state)).toMatchObject([{ type: "approval", call_id }])
    story.run({ _tag: "DetachHarness", agent_id: story.root, payload: { reason: "killed", signal: "SIGKILL" } })
    expect(story.state.calls.filter((call) => call.result === null)).toEqual([])
    expect(story.agent.harness).toMatchObject({ attached: false, monitor: "exited", attention: "closed" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("takes no message that a model of ours would answer", () => {
    const story = new Story()
    const root = { agent_id: story.root, role: "outside", model: "outside/claude", harness: "claude" }
    story.run({ _tag: "CreateConversation", conversation_id: story.state.conversation_id, config: {}, root })
    story.run({ _tag: "CompleteAgentInit", agent_id: story.root })
    const message = { _tag: "PostMessage", content: "hi", mode: "queue" } as const
    expect(story.refused(message).message).toContain("harness.send")
    expect(story.refused({ _tag: "SendAgentMessage", to_agent_id: story.root, content: "hi" }).code).toBe(
      "invalid_state"
    )
  })
})
