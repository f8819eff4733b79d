/** Goal: states and runes that few paths lead to are shown, judged and carried on like any other. */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { callTimeoutMs } from "#src/machine/MachineLimits.ts"
import { emptyConversation, type MutableConversation } from "#src/machine/State.ts"
import { attentionView, evolveAttention } from "#src/machine/view/AttentionView.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import { emptyStateProjection, projectStateEvents, stateProjectionOf } from "#src/machine/view/StateEvents.ts"
import { attentionItems } from "#src/machine/view/Supervision.ts"
import type { CallId, HookRunId, TurnId } from "#src/rune/Ids.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { exampleRune, payloadExamples as payloads } from "../support/runeExamples.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../support/story.ts"

const mutable = (story: Story): MutableConversation => story.state as MutableConversation
const call = (n: number) => `call_${n}` as CallId
const noMoney = { type: "usage_reported", input_tokens: 1, output_tokens: 0, cached_tokens: 0, cost_usd: null } as const

describe("a call", () => {
  it("whose tool says nothing of its time has what the conversation allows", () => {
    expect(callTimeoutMs({ limits: { tool_timeout_ms: 100 } }, null)).toBe(100)
    expect(callTimeoutMs({ limits: { tool_timeout_ms: 100 } }, 50)).toBe(50)
  })

  it("of a client keeps whose tool it is, and all it was when it is run again but that", () => {
    const facts = { ...readTool, timeout_ms: 70, provenance: "remote", origin: "a client of ada" }
    const story = new Story().inBatch(callItem("look", facts))
    expect(story.call("call_1")).toMatchObject({ origin: "a client of ada", provenance: "remote", timeout_ms: 70 })
    story.start("call_1")
    story.run({ _tag: "FinishCall", call_id: call(1), status: "error", duration_ms: 1 })
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    story.run({ _tag: "RetryCall", call_id: call(1) })
    expect(story.call("call_2")).toMatchObject({ provenance: "remote", timeout_ms: 70 })
    expect(story.call("call_2").origin).toBeUndefined()
  })

  it("that is run again brings its images along", () => {
    const story = new Story().inBatch(callItem("look", readTool))
    story.start("call_1")
    story.run({ _tag: "FinishCall", call_id: call(1), status: "error", duration_ms: 1 })
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    story.run({ _tag: "RetryCall", call_id: call(1) })
    story.start("call_2")
    const image = { type: "image", media_type: "image/png", blob: { sha256: "a".repeat(64), bytes: 9 } } as const
    const done = { _tag: "FinishCall", call_id: call(2), status: "success", duration_ms: 1 } as const
    story.run({ ...done, attachments: [image] } as never)
    expect(assembleRequest(story.state, story.agent).at(-1)).toMatchObject({
      role: "user",
      content: [{ type: "text" }, image]
    })
  })
})

describe("a hook", () => {
  it("that runs for the first time waits for no retry", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    const facts = { failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class: "pure" } as const
    story.settle([{ hook_name: "h", ...facts }])
    const hook_run_id = "hookrun_1" as HookRunId
    story.run({ _tag: "StartHook", hook_run_id })
    expect(story.refused({ _tag: "RetryHook", hook_run_id })).toMatchObject({
      code: "invalid_state",
      message: "hookrun_1 is not waiting for a retry"
    })
  })
})

describe("an outside agent", () => {
  const attached = (story = new Story().ready()): Story => {
    story.run({ _tag: "AttachHarness", agent_id: story.root, payload: { harness: "claude", pid: 7 } })
    return story
  }

  it("is the root of a conversation that has none", () => {
    const created = new Story().create()
    mutable(created).session.root_agent_id = null
    const story = attached(created)
    const activated = story.runes.find(({ kind }) => kind === "session.activated")
    expect(activated?.payload).toEqual({ root_agent_id: story.root })
  })

  it("that was born outside takes input where it runs, attached or not", () => {
    const story = attached()
    story.agent.harness !== null && Object.assign(story.agent.harness, { born_outside: true })
    const post = { _tag: "PostMessage", agent_id: story.root, content: "x", mode: "queue" } as const
    expect(story.refused(post).data).toEqual({ state: "attached" })
    Object.assign(story.agent.harness!, { attached: false })
    expect(story.refused(post).data).toEqual({ state: "not attached" })
  })

  it("whose use has no price is held to no budget of money, and to one of nothing at once", () => {
    const story = attached()
    story.run({ _tag: "UpdateConfig", changes: { budget: { usd: 0 } } })
    story.run({ _tag: "RecordHarnessEvents", agent_id: story.root, events: [noMoney] })
    expect(story.state.session.status).toBe("suspended")
  })

  it("with a call that waits for an approval is not told of a second time", () => {
    const story = attached()
    const question = { agent_id: story.root, call_id: "toolu_1" as CallId, tool_name: "Bash", arguments: {} }
    story.run({ _tag: "OpenCall", ...question, tool: shellTool })
    story.ask("toolu_1")
    Object.assign(story.agent.harness!, { attention: "awaiting_approval" })
    expect(attentionItems(story.state).map(({ type }) => type)).toEqual(["approval"])
  })
})

describe("a log that others wrote", () => {
  it("may name no agent where one belongs", () => {
    const { agent_id: _, ...loose } = exampleRune("turn.compacted", 3)
    expect(
      checkInvariants([...new Story().ready().runes, loose as Rune])
        .map(({ detail }) => detail)
        .join()
    ).not.toContain("undefined")
    const projection = emptyStateProjection()
    for (const kind of ["turn.assistant_delta", "turn.tools_finished"] as const)
      expect(projectStateEvents(projection, exampleRune(kind, 1))).toEqual([])
  })

  it("may have a hook run again that nobody knows", () => {
    const story = new Story().ready()
    const target = { type: "hook", hook_run_id: "hookrun_9" as HookRunId } as const
    const turn_id = "turn_7" as TurnId
    story.post("go")
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    story.tell("turn.started", { turn_id, agent_id: story.root, input: "", retry_of: turn_id, target }, { turn_id })
    expect(story.turn).toMatchObject({ status: "hooks_running", call_ids: [] })
  })

  it("may say twice how its conversation is", () => {
    const story = new Story().ready()
    story.run({ _tag: "Pause", reason: "lunch" })
    const projection = stateProjectionOf(story.state)
    expect(projectStateEvents(projection, story.runes.at(-1)!)).toEqual([])
  })

  it("may leave out where a failure comes from, or give it a name of its own", () => {
    const story = new Story().ready()
    story.post("go")
    const projection = stateProjectionOf(story.state)
    const told = (kind: "turn.retry_scheduled" | "turn.error", payload: object) => {
      const rune = { ...exampleRune(kind, 9), agent_id: story.root, payload: { ...payloads[kind], ...payload } } as Rune
      const found = projectStateEvents(projection, rune).find(({ type }) => type === "session_error")
      return found?.type === "session_error" ? [found.code, found.detail, found.source] : undefined
    }
    const target = { type: "tool", call_id: call(1) }
    const retry = { error_type: "worker_died", target, source: undefined }
    expect(told("turn.retry_scheduled", retry)).toEqual(["tool_execution_failed", "worker_died", "tool"])
    expect(told("turn.error", { error_type: "odd", source: "hook" })).toEqual(["hook_execution_failed", "odd", "hook"])
    expect(told("turn.error", { error_type: "hook_config_invalid", source: "hook" })?.[0]).toBe("hook_config_invalid")
  })
})

describe("a state that was found", () => {
  it("shows an agent that failed, and one that is being stopped", () => {
    const story = new Story().ready()
    mutable(story).session.status = "closing"
    expect(stateProjectionOf(story.state).agents[0]?.kind).toBe("Stopping")
    mutable(story).agents[0]!.status = "failed"
    expect(stateProjectionOf(story.state).agents[0]?.kind).toBe("Error")
  })

  it("tells since when a provider is waited for, also where no failure was noted", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const error = { error_type: "auth", message: "wrong key", retryable: false, source: "harness" } as const
    story.run({ _tag: "FailModelCall", agent_id: story.root, error, waits_for: "person", provider: "openai" })
    mutable(story).agents[0]!.turn!.failing_since_ms = null
    const scheduledMs = story.turn.retry!.scheduled_ms
    expect(attentionItems(story.state)).toMatchObject([{ type: "provider", since_ms: scheduledMs }])
    // The same from the view that the catalog keeps.
    const view = attentionView(story.state)
    expect(view.agents).toMatchObject([{ turn: { waits_for_person: true } }])
    expect(evolveAttention(view, exampleRune("config.updated", 99)).attention).toBe(view.attention)
  })

  it("goes on from a view with a call of nobody and a plan that needs a yes", () => {
    const state = emptyConversation(new Story().conversationId) as MutableConversation
    const story = new Story().ready()
    story.run({ _tag: "SubmitGoal", payload: payloads["plan.goal_received"] })
    Object.assign(mutable(story).plan!, { needs_approval: "it changes files", proposed: 3 })
    const { agent_id: _, turn_id: __, ...loose } = exampleRune("tool.call", 5)
    const odd = attentionView({ ...story.state, calls: [] })
    expect(odd.plan).toMatchObject({ needs_approval: true, proposed: true })
    const withCall = evolveAttention(odd, loose as Rune)
    expect(withCall.calls[0]).not.toHaveProperty("agent")
    expect(evolveAttention(withCall, exampleRune("session.paused", 6)).plan).toEqual(odd.plan)
    expect(state.head).toBe(0)
  })

  it("leaves plain words as they are when the provider refused a picture among them", () => {
    const story = new Story().ready()
    story.post("plain words")
    mutable(story).agents[0]!.refused_upto = story.state.head
    expect(assembleRequest(story.state, story.agent).at(-1)).toMatchObject({ role: "user", content: "plain words" })
    story.request()
    story.respond([textItem("fine")])
  })
})
