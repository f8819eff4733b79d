/** Goal: what failed in a turn that is over can be done again, once, by a person, and the model is told the outcome. */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import type { CallId, HookRunId } from "#src/rune/Ids.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../support/story.ts"

const call = (n: number) => `call_${n}` as CallId
const hookRun = (n: number) => `hookrun_${n}` as HookRunId
const again = (n: number, more: object = {}) => ({ _tag: "RetryCall" as const, call_id: call(n), ...more })
const hookAgain = (n: number, more: object = {}) => ({ _tag: "RetryHook" as const, hook_run_id: hookRun(n), ...more })
const crash = (story: Story, n = 1) => story.run({ _tag: "CrashCall", call_id: call(n), message: "worker died" })

const fails = (story: Story, n: number, status: "error" | "timeout" = "error") =>
  story.run({
    _tag: "FinishCall",
    call_id: call(n),
    status,
    error: { code: "exit", message: "exit code 1" },
    duration_ms: 1
  })

const sound = (story: Story): void => {
  expect(checkInvariants(story.runes)).toEqual([])
}

/** A turn that a broken runner of an effect ended. */
const failedTurn = (): Story => {
  const story = new Story().inBatch(callItem("bash", shellTool, '{"command":"pay"}'))
  story.start("call_1")
  expect(crash(story)).toEqual(["tool.result", "turn.error"])
  return story
}

const lastMessage = (story: Story) => assembleRequest(story.state, story.agent).at(-1)

describe("a call of a turn that is over", () => {
  it("runs again in a turn of its own, then the model is told its result", () => {
    const story = new Story().inBatch(callItem("read", readTool, '{"path":"a"}'))
    story.start("call_1")
    crash(story)
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.start("call_1")
    expect(crash(story)).toEqual(["tool.result", "turn.error"])
    expect(story.run(again(1, { principal: "ada" }))).toEqual(["turn.started", "turn.tool_calls_received", "tool.call"])
    expect(story.runes.at(-3)?.payload).toEqual({
      turn_id: "turn_2",
      agent_id: story.root,
      input: "",
      retry_of: "turn_1",
      target: { type: "tool", call_id: "call_1" },
      principal: "ada"
    })
    expect(story.call("call_2")).toMatchObject({ tool_name: "read", arguments: { path: "a" }, attempt: 0 })
    expect(story.effects).toEqual(["RouteTool"])
    story.start("call_2")
    story.finish("call_2", "the contents")
    story.settle()
    expect(story.effects).toEqual(["CallModel"])
    expect(lastMessage(story)).toEqual({
      role: "user",
      note: true,
      content: '[A person had the call read {"path":"a"} run again. Its result:]\nthe contents'
    })
    story.request()
    story.respond([textItem("good")])
    expect(story.agent.last_error).toBeNull()
    sound(story)
  })

  it("that may have taken effect runs again only for somebody who says so", () => {
    const story = failedTurn()
    const refusal = story.refused(again(1))
    expect(refusal).toMatchObject({ code: "invalid_state", data: { needs: "repeat_effect" } })
    expect(refusal.message).toBe(
      "bash may have taken effect already: to run it again, set repeat_effect (echs retry --repeat-effect)"
    )
    expect(story.refused(again(1, { repeat_effect: false })).code).toBe("invalid_state")
    expect(story.agent.turn).toBeNull()
    expect(story.run(again(1, { repeat_effect: true }))).toContain("tool.call")
    story.start("call_2")
    story.finish("call_2")
    expect(story.agent.effects.map((one) => [one.call_id, one.status])).toEqual([
      ["call_1", "unknown"],
      ["call_2", "success"]
    ])
    sound(story)
  })

  it("of an effect that never started needs no such word", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.run({ _tag: "DenyCall", call_id: call(1), approver: "ada", reason: "no", interrupt: true })
    expect(story.run(again(1))).toContain("tool.call")
    // The policy is asked as for any other call.
    expect(story.call("call_2").status).toBe("pending_call")
  })

  it("runs again once: the next is a run of its own", () => {
    const story = failedTurn()
    story.run(again(1, { repeat_effect: true }))
    story.start("call_2")
    crash(story, 2)
    expect(story.refused(again(1, { repeat_effect: true }))).toMatchObject({ code: "not_found" })
    expect(story.agent.failed_calls.map((one) => one.call_id)).toEqual(["call_2"])
    expect(story.run(again(2, { repeat_effect: true }))).toContain("tool.call")
    sound(story)
  })

  it("runs again after a turn that went well, and the model is asked about it", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    fails(story, 1)
    story.settle()
    story.request()
    story.respond([textItem("I could not read it")])
    expect(story.agent.last_turn?.status).toBe("completed")
    story.run(again(1))
    story.start("call_2")
    story.finish("call_2")
    story.settle()
    expect(story.effects).toEqual(["CallModel"])
    expect(lastMessage(story)).toMatchObject({ role: "user", note: true })
    sound(story)
  })

  it("runs what an approver made of it", () => {
    const story = new Story().inBatch(callItem("bash", shellTool, '{"command":"rm -rf /"}'))
    story.ask("call_1")
    const edited = { command: "ls" }
    const answer = { approver: "ada", channel: "cli", scope: "once" as const, arguments: edited }
    story.run({ _tag: "ApproveCall", call_id: call(1), ...answer })
    story.start("call_1")
    fails(story, 1, "timeout")
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    story.run(again(1, { repeat_effect: true }))
    expect(story.call("call_2").arguments).toEqual(edited)
  })

  it("is not run again while the agent is in a turn, nor when it went well, nor when it was unreadable", () => {
    const story = new Story().inBatch(
      callItem("read", readTool),
      callItem("read", readTool),
      callItem("a", readTool, "{")
    )
    story.start("call_1")
    story.start("call_2")
    fails(story, 1)
    expect(story.refused(again(1))).toMatchObject({ code: "invalid_state", data: { state: "tool_executing" } })
    story.finish("call_2")
    story.settle()
    story.request()
    story.respond([textItem("done")])
    expect(story.refused(again(2)).code).toBe("not_found")
    expect(story.refused(again(3)).code).toBe("not_found")
    expect(story.agent.failed_calls.map((one) => one.call_id)).toEqual(["call_1"])
  })

  it("is not run again in a conversation that is paused or closed", () => {
    const story = failedTurn()
    story.run({ _tag: "Pause", reason: "lunch" })
    expect(story.refused(again(1, { repeat_effect: true })).code).toBe("invalid_state")
    story.run({ _tag: "Resume" })
    story.run({ _tag: "Close", reason: "over" })
    expect(story.refused(again(1, { repeat_effect: true })).code).toBe("invalid_state")
  })

  it("is remembered up to a limit, oldest forgotten first", () => {
    const story = new Story().inBatch(...Array.from({ length: 20 }, () => callItem("read", readTool)))
    for (let n = 1; n <= 20; n++) {
      story.start(`call_${n}`)
      fails(story, n)
    }
    expect(story.agent.failed_calls).toHaveLength(16)
    expect(story.agent.failed_calls[0]?.call_id).toBe("call_5")
  })

  it("that a crash cuts off again is unknown, and the turn goes on", () => {
    const story = failedTurn()
    story.run(again(1, { repeat_effect: true }))
    expect(story.recover().drafts).toEqual([])
    story.start("call_2")
    expect(story.recover().resolved).toBe(1)
    expect(story.effects).toEqual(["SettleTools"])
    expect(story.agent.failed_calls.map((one) => one.call_id)).toEqual(["call_2"])
    sound(story)
  })
})

type Policy = Parameters<Story["settle"]>[0] extends ReadonlyArray<infer One> | undefined
  ? One extends { readonly failure_policy: infer P }
    ? P
    : never
  : never

const withHooks = (...hooks: ReadonlyArray<readonly [Policy, "pure" | "effect"]>): Story => {
  const story = new Story().inBatch(callItem("write", writeTool))
  story.start("call_1")
  story.finish("call_1")
  story.settle(
    hooks.map(([failure_policy, effect_class], index) => ({
      hook_name: `h${index}`,
      failure_policy,
      timeout_ms: 9,
      effect_class
    }))
  )
  return story
}
const start = (story: Story, n: number) => story.run({ _tag: "StartHook", hook_run_id: hookRun(n) })
const end = (story: Story, n: number, status: "succeeded" | "failed" | "canceled") =>
  story.run({ _tag: "FinishHook", hook_run_id: hookRun(n), status, duration_ms: 1 })

describe("a hook of a turn that is over", () => {
  it("runs again with those it kept from running, then the model is asked", () => {
    const story = withHooks(
      [{ type: "warn_continue" }, "pure"],
      [{ type: "fail_session" }, "pure"],
      [{ type: "fail_session" }, "pure"]
    )
    start(story, 1)
    end(story, 1, "succeeded")
    start(story, 2)
    expect(end(story, 2, "failed")).toEqual(["hook.completed", "turn.error"])
    expect(story.run(hookAgain(2))).toEqual(["turn.started", "turn.tools_finished"])
    expect(story.turn).toMatchObject({
      status: "hooks_running",
      call_ids: ["call_1"],
      hooks: [
        { hook_run_id: "hookrun_4", hook_name: "h1" },
        { hook_run_id: "hookrun_5", hook_name: "h2" }
      ]
    })
    start(story, 4)
    expect(story.runes.at(-1)?.payload).toMatchObject({ call_ids: ["call_1"], attempt: 1 })
    end(story, 4, "succeeded")
    start(story, 5)
    expect(end(story, 5, "succeeded")).toEqual(["hook.completed", "turn.hooks_finished"])
    expect(story.effects).toEqual(["CallModel"])
    expect(story.refused(hookAgain(2)).code).toBe("not_found")
    sound(story)
  })

  it("that may have taken effect runs again only for somebody who says so", () => {
    const story = withHooks([{ type: "fail_session" }, "effect"])
    start(story, 1)
    end(story, 1, "failed")
    expect(story.refused(hookAgain(1))).toMatchObject({ code: "invalid_state", data: { needs: "repeat_effect" } })
    expect(story.run(hookAgain(1, { repeat_effect: true }))).toContain("turn.started")
  })

  it("that only warned runs again without another model call: the model has answered", () => {
    const story = withHooks([{ type: "warn_continue" }, "pure"])
    start(story, 1)
    end(story, 1, "failed")
    story.request()
    story.respond([textItem("done")])
    story.run(hookAgain(1))
    start(story, 2)
    expect(end(story, 2, "succeeded")).toEqual(["hook.completed", "turn.hooks_finished", "turn.completed"])
    expect(story.runes.at(-2)?.payload).toMatchObject({ ends_turn: true })
    expect(story.agent).toMatchObject({ status: "idle", failed_hooks: [] })
    sound(story)
  })

  it("after which something else was said and not answered leads to the model", () => {
    const story = withHooks([{ type: "fail_session" }, "pure"])
    start(story, 1)
    end(story, 1, "failed")
    story.post("and this?")
    story.request()
    const error = { error_type: "refused", message: "no", retryable: false, source: "harness" } as const
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    story.run(hookAgain(1))
    start(story, 2)
    expect(end(story, 2, "succeeded")).toEqual(["hook.completed", "turn.hooks_finished"])
    expect(story.effects).toEqual(["CallModel"])
    sound(story)
  })

  it("that went well when it was tried again by itself is not offered", () => {
    const story = withHooks([{ type: "retry", max_attempts: 2, delay_ms: 1 }, "pure"])
    start(story, 1)
    end(story, 1, "failed")
    expect(story.refused({ ...hookAgain(9) }).code).toBe("not_found")
    story.run({ _tag: "RetryDue", agent_id: story.root })
    start(story, 1)
    expect(story.refused(hookAgain(1))).toMatchObject({ code: "invalid_state" })
    end(story, 1, "succeeded")
    expect(story.agent.failed_hooks).toEqual([])
  })

  it("that fails again ends its turn, and can be asked for once more", () => {
    const story = withHooks([{ type: "fail_session" }, "pure"])
    start(story, 1)
    end(story, 1, "failed")
    story.run(hookAgain(1))
    start(story, 2)
    expect(end(story, 2, "failed")).toEqual(["hook.completed", "turn.error"])
    expect(story.agent.failed_hooks.map((one) => one.hook_run_id)).toEqual(["hookrun_2"])
    story.run(hookAgain(2))
    expect(story.refused(hookAgain(2)).code).toBe("not_found")
    sound(story)
  })

  it("ends at new input that took over", () => {
    const story = withHooks([{ type: "warn_continue" }, "pure"])
    start(story, 1)
    end(story, 1, "failed")
    story.request()
    story.respond([textItem("done")])
    story.run(hookAgain(1))
    start(story, 2)
    story.post("something else", "steer")
    expect(end(story, 2, "succeeded")).toEqual(["hook.completed", "turn.hooks_finished", "turn.interrupted"])
    sound(story)
  })
})
