/**
 * Goal: a turn goes from input to exactly one end, through model calls, batches,
 * hooks and retries. Verifies: INV-TURN-SEQUENTIAL, INV-TURN-TERMINAL.
 */
import { describe, expect, it } from "vitest"
import { mergeInputs } from "#src/machine/decide/message.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import type { Content } from "#src/rune/kinds/shared.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"

const streamError = { error_type: "streaming_failed", message: "cut", retryable: true, source: "harness" } as const
const failCall = (story: Story, extra: object = {}) =>
  story.run({ _tag: "FailModelCall", agent_id: story.root, error: streamError, ...extra })

describe("a turn without tools", () => {
  it("is three runes around the answer", () => {
    const story = new Story().ready()
    expect(story.post("hello")).toEqual(["turn.started"])
    expect(story.effects).toEqual(["CallModel"])
    expect(story.request()).toEqual(["turn.model_requested"])
    story.run({ _tag: "AppendReasoning", agent_id: story.root, content: "hm" })
    story.run({ _tag: "AppendText", agent_id: story.root, content: "Hi" })
    expect(story.turn.partial).toBe("Hi")
    expect(story.respond([textItem("Hi "), textItem("there")])).toEqual(["turn.assistant_final", "turn.completed"])
    expect(story.agent).toMatchObject({
      status: "idle",
      turn: null,
      last_turn: { turn_id: "turn_1", status: "completed" }
    })
    expect(story.runes.at(-1)?.payload).toMatchObject({
      final_output: "Hi there",
      usage: { input_tokens: 10, usd: 0.25 }
    })
    expect(story.effects).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("repeats a long answer only in part at its end", () => {
    const story = new Story().ready()
    story.post("long")
    story.request()
    story.respond([textItem("x".repeat(limits.finalOutputCharsMax + 1))])
    expect(story.runes.at(-1)?.payload).toMatchObject({ final_output_truncated: true })
  })

  it("numbers turns over the whole conversation", () => {
    const story = new Story().ready()
    for (const expected of ["turn_1", "turn_2"]) {
      story.post("again")
      expect(story.turn.turn_id).toBe(expected)
      story.request()
      story.respond([textItem("ok")])
    }
    expect(story.state).toMatchObject({ turns: 2, next_turn: 3, usage: { input_tokens: 20, usd: 0.5 } })
  })

  it("takes words only of the request that is being answered", () => {
    const story = new Story().ready()
    story.post("hello")
    expect(story.refused({ _tag: "AppendText", agent_id: story.root, content: "x" }).code).toBe("invalid_state")
    story.request()
    const stale = "req_0000000000000000" as never
    expect(story.refused({ _tag: "AppendText", agent_id: story.root, content: "x", request_id: stale }).code).toBe(
      "invalid_state"
    )
    expect(story.refused({ _tag: "ReceiveResponse", agent_id: story.root, items: [], request_id: stale }).code).toBe(
      "invalid_state"
    )
    const { request_id } = story.turn.request!
    story.run({ _tag: "AppendText", agent_id: story.root, content: "x", request_id })
    story.run({ _tag: "ReceiveResponse", agent_id: story.root, items: [], request_id, stop_reason: "end" })
    expect(story.agent.status).toBe("idle")
  })
})

describe("input", () => {
  it("waits in the queue while a turn runs, then gets a turn each", () => {
    const story = new Story().ready()
    story.post("one")
    expect(story.post("two")).toEqual(["turn.queued"])
    expect(story.post("three")).toEqual(["turn.queued"])
    story.request()
    story.respond([textItem("ok")])
    expect(story.effects).toEqual(["StartQueued"])
    expect(story.run({ _tag: "StartQueued", agent_id: story.root })).toEqual(["turn.started"])
    expect(story.agent.queue).toHaveLength(1)
    expect(story.agent.transcript.at(-1)).toMatchObject({ type: "user", content: "two" })
  })

  it("is refused when the queue is full", () => {
    const story = new Story().ready()
    story.post("one")
    for (let index = 0; index < limits.queuedMessagesMax; index++) story.post(`more ${index}`)
    expect(story.refused({ _tag: "PostMessage", content: "x", mode: "queue" }).code).toBe("limit_exceeded")
    const message = { _tag: "SendAgentMessage", to_agent_id: story.root, content: "x" } as const
    expect(story.refused(message).code).toBe("limit_exceeded")
  })

  it("waits while the conversation is paused or suspended, and starts after", () => {
    const story = new Story().ready()
    story.run({ _tag: "Pause", reason: "lunch" })
    expect(story.post("later")).toEqual(["turn.queued"])
    expect(story.effects).toEqual([])
    expect(story.refused({ _tag: "StartQueued", agent_id: story.root }).data).toEqual({ state: "paused" })
    story.run({ _tag: "Resume" })
    expect(story.effects).toEqual(["StartQueued"])
  })

  it("activates a conversation whose agent is ready before anyone spoke", () => {
    const story = new Story().create()
    expect(story.post("early")).toEqual(["turn.queued"])
    expect(story.effects).toEqual(["StartAgent"])
    expect(story.run({ _tag: "CompleteAgentInit", agent_id: story.root })).toEqual(["agent.ready", "session.activated"])
    expect(story.effects).toEqual(["StartQueued"])
  })

  it("activates by the first message when an agent other than the root is ready first", () => {
    const story = new Story().create()
    const worker = "agt_2222" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: worker, role: "worker", model: "m", parent_id: story.root } })
    story.run({ _tag: "CompleteAgentInit", agent_id: worker })
    expect(story.run({ _tag: "PostMessage", agent_id: worker, content: "hi", mode: "queue" })).toEqual([
      "session.activated",
      "turn.started"
    ])
    expect(story.state.session.root_agent_id).toBe(story.root)
  })

  it("is refused by a conversation or an agent that is over", () => {
    const story = new Story().ready()
    const worker = "agt_2222" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: worker, role: "worker", model: "m", parent_id: story.root } })
    story.run({ _tag: "FailAgentInit", agent_id: worker, error: { code: "x", message: "no" } })
    expect(story.refused({ _tag: "PostMessage", agent_id: worker, content: "x", mode: "queue" }).code).toBe(
      "invalid_state"
    )
    expect(
      story.refused({ _tag: "PostMessage", agent_id: "agt_9999" as AgentId, content: "x", mode: "queue" }).code
    ).toBe("not_found")
    story.run({ _tag: "Close", reason: "done" })
    expect(story.refused({ _tag: "PostMessage", content: "x", mode: "queue" }).data).toEqual({ state: "closing" })
  })

  it("merges text as text and anything else as parts", () => {
    const image = [{ type: "image", media_type: "image/png", url: "u" }] as const satisfies Content
    expect(mergeInputs(["a"])).toBe("a")
    expect(mergeInputs(["a", "b"])).toBe("a\n\nb")
    expect(mergeInputs(["a", image])).toEqual([{ type: "text", text: "a" }, ...image])
  })

  it("keeps who sent it", () => {
    const story = new Story().ready()
    story.run({ _tag: "PostMessage", content: "one", mode: "queue", principal: "ada" })
    story.run({ _tag: "PostMessage", content: "two", mode: "queue", principal: "ada" })
    expect(story.agent.queue[0]).toMatchObject({ principal: "ada" })
    expect(story.runes.at(-2)?.payload).toMatchObject({ principal: "ada" })
  })
})

describe("steering", () => {
  it("takes over at once while the model speaks, and keeps what it had said", () => {
    const story = new Story().ready()
    story.post("write a poem")
    story.request()
    story.run({ _tag: "AppendText", agent_id: story.root, content: "Roses are" })
    expect(story.post("in prose please", "steer")).toEqual(["turn.queued", "turn.interrupted"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ reason: "steer", partial_output: "Roses are" })
    expect(story.effects).toEqual(["StartQueued"])
    story.run({ _tag: "StartQueued", agent_id: story.root })
    expect(story.agent.transcript.map((item) => item.type)).toEqual(["user", "assistant", "user"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("waits for running tools, cancels what has not started, and takes over at the boundary", () => {
    const story = new Story().inBatch(
      callItem("read", readTool),
      callItem("write", writeTool),
      callItem("bash", shellTool)
    )
    story.start("call_1")
    story.ask("call_2")
    expect(story.post("stop, do this", "steer")).toEqual(["turn.queued", "tool.result", "tool.result"])
    expect(story.call("call_2").status).toBe("cancelled")
    expect(story.call("call_3").status).toBe("cancelled")
    expect(story.effects).toEqual(["RunTool"])
    story.finish("call_1")
    expect(story.settle()).toEqual(["turn.tools_finished", "turn.interrupted"])
    story.run({ _tag: "StartQueued", agent_id: story.root })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("waits for running hooks", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle([
      { hook_name: "lint", failure_policy: { type: "warn_continue" }, timeout_ms: 9, effect_class: "pure" }
    ])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as never })
    expect(story.post("stop", "steer")).toEqual(["turn.queued"])
    expect(
      story.run({ _tag: "FinishHook", hook_run_id: "hookrun_1" as never, status: "succeeded", duration_ms: 1 })
    ).toEqual(["hook.completed", "turn.hooks_finished", "turn.interrupted"])
  })

  it("wins over the end that the batch would have been", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    story.post("wait", "steer")
    story.finish("call_1")
    const settle = { _tag: "SettleTools", agent_id: story.root, hooks: [], end_turn: true } as const
    expect(story.run(settle)).toEqual(["turn.tools_finished", "turn.interrupted"])
  })

  it("starts all steering messages together, before those that queue", () => {
    const story = new Story().ready()
    story.run({ _tag: "Pause", reason: "x" })
    story.post("queued")
    story.post("first", "steer")
    story.post("second", "steer")
    story.run({ _tag: "Resume" })
    story.run({ _tag: "StartQueued", agent_id: story.root })
    expect(story.agent.transcript.at(-1)).toMatchObject({ content: "first\n\nsecond" })
    expect(story.agent.queue.map((one) => one.input)).toEqual(["queued"])
  })

  it("is an ordinary message for an agent that does nothing", () => {
    const story = new Story().ready()
    expect(story.post("hello", "steer")).toEqual(["turn.started"])
  })
})

describe("interrupting", () => {
  it("ends the turn with what it had said, and is no failure", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.run({ _tag: "AppendText", agent_id: story.root, content: "half" })
    const usage = { input_tokens: 7, output_tokens: 3, cached_tokens: 2, reasoning_tokens: 1, usd: 1 }
    expect(story.run({ _tag: "InterruptTurn", reason: "enough", principal: "ada", usage })).toEqual([
      "turn.interrupted"
    ])
    expect(story.agent).toMatchObject({ last_error: null, last_turn: { status: "interrupted" } })
    expect(story.state.usage).toEqual({
      input_tokens: 7,
      output_tokens: 3,
      cached_tokens: 2,
      reasoning_tokens: 1,
      usd: 1,
      unpriced: false,
      estimated: false
    })
    expect(story.runes.at(-1)?.payload).toMatchObject({ principal: "ada" })
  })

  it("leaves no empty words behind", () => {
    const story = new Story().ready()
    story.post("go")
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    expect(story.agent.transcript.map((item) => item.type)).toEqual(["user"])
  })

  it("gives every open call its one result", () => {
    const story = new Story().inBatch(callItem("a", readTool), callItem("b", shellTool), callItem("c", readTool))
    story.start("call_1")
    story.run({ _tag: "AppendProgress", call_id: "call_1" as never, stream: "stdout", chunk: "so far" })
    story.ask("call_2")
    expect(story.run({ _tag: "InterruptTurn", reason: "enough" })).toEqual([
      "tool.result",
      "tool.result",
      "tool.result",
      "turn.interrupted"
    ])
    expect(story.runes.at(-4)?.payload).toMatchObject({ status: "cancelled", output: "so far" })
    expect(story.state.calls).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
    expect(
      story.refused({ _tag: "FinishCall", call_id: "call_1" as never, status: "success", duration_ms: 1 }).code
    ).toBe("not_found")
  })

  it("runs hooks in their order: the second does not start before the first is over", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    const hook = { failure_policy: { type: "warn_continue" }, timeout_ms: 9, effect_class: "effect" } as const
    story.settle([
      { hook_name: "lint", ...hook },
      { hook_name: "commit", ...hook }
    ])
    const second = { _tag: "StartHook", hook_run_id: "hookrun_2" as never } as const
    expect(story.refused(second).code).toBe("invalid_state")
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as never })
    expect(story.refused(second).code).toBe("invalid_state")
    story.run({ _tag: "FinishHook", hook_run_id: "hookrun_1" as never, status: "failed", duration_ms: 1 })
    expect(story.run(second)).toEqual(["hook.started"])
  })

  it("stops the hook that runs", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    const hook = { failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class: "effect" } as const
    story.settle([
      { hook_name: "lint", ...hook },
      { hook_name: "commit", ...hook }
    ])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as never })
    expect(story.run({ _tag: "InterruptTurn", reason: "enough" })).toEqual(["hook.completed", "turn.interrupted"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("is refused when nothing runs", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "InterruptTurn", reason: "x" }).data).toEqual({ state: "idle" })
    expect(new Story().refused({ _tag: "InterruptTurn", reason: "x" }).code).toBe("not_found")
    expect(story.refused({ _tag: "InterruptTurn", agent_id: "agt_9999" as AgentId, reason: "x" }).code).toBe(
      "not_found"
    )
  })
})

describe("a model call that fails", () => {
  it("is tried again after 250 ms, then 1 s, then the turn ends in an error", () => {
    const story = new Story().ready()
    story.post("go")
    for (const [attempt, delayMs] of [
      [2, 250],
      [3, 1000]
    ]) {
      story.request()
      expect(failCall(story)).toEqual(["turn.retry_scheduled"])
      expect(story.runes.at(-1)?.payload).toMatchObject({ attempt, delay_ms: delayMs, target: { type: "llm" } })
      expect(story.effect("RetryAfter").due_ms).toBe(story.runes.at(-1)!.ts_ms + delayMs!)
      expect(story.run({ _tag: "RetryDue", agent_id: story.root })).toEqual(["turn.retry_started"])
      expect(story.effect("CallModel").attempt).toBe(attempt)
    }
    story.request()
    expect(failCall(story)).toEqual(["turn.error"])
    expect(story.agent).toMatchObject({ status: "idle", last_error: { code: "streaming_failed", retryable: true } })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("carries the words of the abandoned request into the next one", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const first = story.turn.request!.request_id
    story.run({ _tag: "AppendText", agent_id: story.root, content: "half" })
    failCall(story, { delay_ms: 5, usage: { input_tokens: 1, output_tokens: 2 } })
    expect(story.state.usage.output_tokens).toBe(2)
    expect(story.turn).toMatchObject({ partial: "half", request: null, abandoned_request_id: first })
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.request()
    expect(story.runes.at(-1)?.payload).toMatchObject({ replaces: first, partial_output: "half", attempt: 2 })
    expect(story.turn.partial).toBe("")
    story.respond([textItem("whole")])
    story.post("and now")
    expect(story.turn.llm_failures).toBe(0)
  })

  it("is not tried again when that cannot help", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.run({ _tag: "AppendText", agent_id: story.root, content: "half" })
    const error = { error_type: "harness_failed", message: "bad key", retryable: false } as const
    expect(story.run({ _tag: "FailModelCall", agent_id: story.root, error })).toEqual(["turn.error"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ retryable: false, partial_output: "half" })
    expect(story.agent.last_error).not.toHaveProperty("source")
  })

  it("may fail before the request went out", () => {
    const story = new Story().ready()
    story.post("go")
    const error = { error_type: "harness_failed", message: "limiter", retryable: true } as const
    expect(story.run({ _tag: "FailModelCall", agent_id: story.root, error })).toEqual(["turn.retry_scheduled"])
    expect(story.turn.abandoned_request_id).toBeNull()
    expect(story.refused({ _tag: "FailModelCall", agent_id: story.root, error }).data).toEqual({
      state: "retry_waiting"
    })
  })

  it("obeys the conversation's own limit", () => {
    const story = new Story().ready({ limits: { max_llm_retries: 0 } })
    story.post("go")
    story.request()
    expect(failCall(story)).toEqual(["turn.error"])
  })

  it("can be retried by a person: at once while it waits, anew after it ended", () => {
    const story = new Story().ready({ limits: { max_llm_retries: 1 } })
    story.post("go")
    expect(story.refused({ _tag: "RetryTurn" }).data).toEqual({ state: "streaming" })
    story.request()
    failCall(story)
    expect(story.run({ _tag: "RetryTurn" })).toEqual(["turn.retry_started"])
    story.request()
    failCall(story)
    expect(story.agent.last_turn?.status).toBe("error")
    expect(story.run({ _tag: "RetryTurn" })).toEqual(["turn.started"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ turn_id: "turn_2", retry_of: "turn_1" })
    expect(story.agent.transcript).toHaveLength(1)
    story.request()
    story.respond([textItem("fine")])
    expect(story.agent.last_error).toBeNull()
    expect(story.refused({ _tag: "RetryTurn" }).data).toEqual({ state: "completed" })
    expect(new Story().ready().refused({ _tag: "RetryTurn" }).data).toEqual({ state: "idle" })
    expect(story.refused({ _tag: "RetryDue", agent_id: story.root }).code).toBe("invalid_state")
    expect(story.refused({ _tag: "RetryTurn", agent_id: "agt_9999" as AgentId }).code).toBe("not_found")
  })

  it("steers out of a retry that waits", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    failCall(story)
    expect(story.post("never mind", "steer")).toEqual(["turn.queued", "turn.interrupted"])
  })
})

describe("an agent that breaks", () => {
  it("ends its turn in an error, losing only what may have happened", () => {
    const story = new Story().inBatch(callItem("a", readTool), callItem("b", shellTool), callItem("c", shellTool))
    story.start("call_1")
    story.start("call_2")
    const error = { error_type: "agent_crashed", message: "boom", retryable: true, source: "orchestrator" } as const
    story.run({ _tag: "FailTurn", agent_id: story.root, error, usage: { input_tokens: 100, output_tokens: 1 } })
    const results = story.runes.filter((rune) => rune.kind === "tool.result")
    expect(results.map((rune) => rune.payload.status)).toEqual(["cancelled", "unknown", "cancelled"])
    expect(story.agent.status).toBe("idle")
    expect(story.state.usage.input_tokens).toBe(110)
    expect(checkInvariants(story.runes)).toEqual([])
    expect(story.refused({ _tag: "FailTurn", agent_id: story.root, error }).code).toBe("invalid_state")
  })
})

describe("limits of a turn", () => {
  it("ends one that asks the model without end", () => {
    const story = new Story().ready()
    story.post("loop")
    for (let call = 1; call <= limits.modelCallsPerTurnMax; call++) {
      story.request()
      story.respond([callItem("nope", undefined)])
      if (call < limits.modelCallsPerTurnMax) story.settle()
    }
    expect(story.settle()).toEqual(["turn.tools_finished", "turn.error"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ error_type: "turn_limit_exceeded", retryable: false })
  })

  it("refuses the request itself when the limit is reached", () => {
    const story = new Story().ready()
    story.post("go")
    ;(story.turn as { model_calls: number }).model_calls = limits.modelCallsPerTurnMax
    const request = {
      _tag: "RequestModel",
      agent_id: story.root,
      request_id: "req_0000000000000001" as never,
      provider: "p",
      model: "m"
    } as const
    expect(story.refused(request).code).toBe("limit_exceeded")
  })
})

describe("an answer stored without what follows from it", () => {
  const processing = (items: Parameters<Story["respond"]>[0]) => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const planned = items.map((item) =>
      item.type === "text" ? { type: "text", chars: item.text.length } : { type: "tool_call", call_id: "call_1" }
    )
    story.tell("turn.assistant_final", { content: "so", items: planned as never })
    return story
  }

  it("is gone on from by itself when it asks for nothing", () => {
    const story = processing([textItem("so")])
    expect(story.effects).toEqual(["FinaliseResponse"])
    expect(story.run({ _tag: "FinaliseResponse", agent_id: story.root })).toEqual(["turn.completed"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ final_output: "so" })
  })

  it("ends in an error when the calls it asks for are not there", () => {
    const story = processing([callItem("a", readTool)])
    expect(story.run({ _tag: "FinaliseResponse", agent_id: story.root })).toEqual(["turn.error"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ error_type: "response_incomplete" })
  })

  it("is refused in any other state", () => {
    const story = new Story().ready()
    story.post("go")
    expect(story.refused({ _tag: "FinaliseResponse", agent_id: story.root }).code).toBe("invalid_state")
  })
})

describe("compaction", () => {
  it("replaces the oldest of the transcript by its summary", () => {
    const story = new Story().ready()
    for (const text of ["one", "two"]) {
      story.post(text)
      story.request()
      story.respond([textItem(`${text} done`)])
    }
    const upto = story.agent.transcript[1]!.event_id
    expect(
      story.run({ _tag: "Compact", agent_id: story.root, upto, summary: "one was done", tokens_before: 9 })
    ).toEqual(["turn.compacted"])
    expect(story.agent.transcript.map((item) => item.type)).toEqual(["summary", "user", "assistant"])
  })

  it("works inside a turn between two requests, never under one", () => {
    const story = new Story().ready()
    story.post("go")
    story.run({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "nothing" })
    expect(story.runes.at(-1)?.turn_id).toBe("turn_1")
    story.request()
    expect(story.refused({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "x" }).code).toBe("invalid_state")
  })

  it("refuses to summarize what has not happened", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "Compact", agent_id: story.root, upto: 999, summary: "x" }).code).toBe("bad_request")
    expect(story.refused({ _tag: "Compact", agent_id: "agt_9999" as AgentId, upto: 1, summary: "x" }).code).toBe(
      "not_found"
    )
  })
})
