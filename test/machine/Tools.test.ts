/**
 * Goal: a call gets exactly one result, whatever the model wrote, whoever decides,
 * whatever breaks; hooks run one at a time. Verifies: G5, INV-TOOL-TERMINAL,
 * INV-TOOL-APPROVAL-BEFORE-EXEC, INV-HOOKS-NEVER-OVERLAP.
 */
import { describe, expect, it } from "vitest"
import { canonicalHash } from "#src/machine/Canonical.ts"
import type { ResponseItem, ToolFacts } from "#src/machine/Command.ts"
import { parseArguments } from "#src/machine/decide/response.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import type { AgentId, CallId, HookRunId } from "#src/rune/Ids.ts"
import type { HookFailurePolicy } from "#src/rune/kinds/shared.ts"
import type { RuneOf } from "#src/rune/Rune.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../support/story.ts"

const id = (text: string) => text as CallId
const approve = { _tag: "ApproveCall", approver: "ada", channel: "cli", scope: "once" } as const
const deny = { _tag: "DenyCall", approver: "ada", reason: "no" } as const

describe("a batch of calls", () => {
  it("runs, settles, and asks the model again", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    expect(story.respond([textItem("I look."), callItem("read", readTool, '{"path":"a"}', "toolu_1")])).toEqual([
      "turn.assistant_final",
      "turn.tool_calls_received",
      "tool.call"
    ])
    expect(story.effects).toEqual(["RouteTool"])
    expect(story.call("call_1")).toMatchObject({ arguments: { path: "a" }, status: "pending_call", attempt: 0 })
    story.start("call_1")
    expect(story.effects).toEqual(["RunTool"])
    expect(story.effect("RunTool").timeout_ms).toBe(300_000)
    story.finish("call_1", "contents")
    expect(story.effect("SettleTools")).toMatchObject({ call_ids: ["call_1"], mutating: false })
    expect(story.settle()).toEqual(["turn.tools_finished"])
    expect(story.effects).toEqual(["CallModel"])
    expect(story.state.calls).toEqual([])
    story.request()
    story.respond([textItem("done")])
    expect(story.agent).toMatchObject({ tool_calls: 1, turns: 1 })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("runs side by side what only reads, and one after another what changes something", () => {
    const story = new Story().inBatch(
      callItem("read", readTool),
      callItem("read", readTool),
      callItem("write", writeTool),
      callItem("read", readTool)
    )
    for (const call of ["call_1", "call_2", "call_3", "call_4"]) story.start(call)
    const running = () =>
      pendingWork(story.state).flatMap((effect) => (effect._tag === "RunTool" ? [effect.call_id] : []))
    expect(running()).toEqual(["call_1", "call_2"])
    story.finish("call_2")
    expect(running()).toEqual(["call_1"])
    story.finish("call_1")
    expect(running()).toEqual(["call_3"])
    story.finish("call_3")
    expect(running()).toEqual(["call_4"])
  })

  it("cannot be settled while a call is open", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    expect(story.refused({ _tag: "SettleTools", agent_id: story.root, hooks: [] }).code).toBe("invalid_state")
    expect(story.refused({ _tag: "SettleTools", agent_id: "agt_9999" as AgentId, hooks: [] }).code).toBe("not_found")
  })

  it("may end the turn by itself", () => {
    const story = new Story().inBatch(callItem("submit", readTool))
    story.start("call_1")
    story.finish("call_1")
    const settle = { _tag: "SettleTools", agent_id: story.root, hooks: [], end_turn: true } as const
    expect(story.run(settle)).toEqual(["turn.tools_finished", "turn.completed"])
    expect(story.agent.status).toBe("idle")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("keeps the timeout and the origin of its tools", () => {
    const tool = { ...readTool, timeout_ms: 77, provenance: "mcp" }
    const story = new Story().inBatch(callItem("x", tool))
    story.start("call_1")
    expect(story.effect("RunTool").timeout_ms).toBe(77)
    expect(story.call("call_1").provenance).toBe("mcp")
  })
})

describe("what a model may write", () => {
  const results = (story: Story) =>
    story.runes.flatMap((rune) => (rune.kind === "tool.result" ? [rune.payload.error?.code] : []))

  it.each([
    ["an unknown tool", [callItem("nope", undefined)], ["unknown_tool"]],
    ["text that is not JSON", [callItem("read", readTool, '{"a":')], ["invalid_arguments"]],
    ["a list", [callItem("read", readTool, "[1]")], ["invalid_arguments"]],
    ["null", [callItem("read", readTool, "null")], ["invalid_arguments"]],
    ["a bare string", [callItem("read", readTool, '"x"')], ["invalid_arguments"]],
    ["too much", [callItem("read", readTool, `"${"x".repeat(limits.argumentsCharsMax)}"`)], ["arguments_too_large"]],
    [
      "a tower",
      [callItem("read", readTool, `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)],
      ["invalid_arguments"]
    ],
    [
      "the same id twice",
      [callItem("read", readTool, "{}", "a"), callItem("read", readTool, "{}", "a")],
      ["duplicate_call_id"]
    ]
  ])("%s gets a typed error and the batch goes on", (_, items, codes) => {
    const story = new Story().inBatch(...items)
    expect(results(story)).toEqual(codes)
    for (const call of story.state.calls) {
      if (call.status !== "pending_call") continue
      story.start(call.call_id)
      story.finish(call.call_id)
    }
    story.settle()
    expect(story.effects).toEqual(["CallModel"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("more calls than are run: the rest get an error each", () => {
    const items = Array.from({ length: limits.callsPerResponseMax + 2 }, () => callItem("read", readTool))
    expect(results(new Story().inBatch(...items))).toEqual(["too_many_calls", "too_many_calls"])
  })

  it("is not read again when whoever read it knows it is no use", () => {
    const unusable = { code: "arguments_too_large", message: "9 MB were sent" } as const
    const story = new Story().inBatch({ ...callItem("read", readTool, "{}"), unusable } as ResponseItem)
    expect(results(story)).toEqual(["arguments_too_large"])
  })

  it("keeps unreadable arguments for a person, cut to a limit", () => {
    const story = new Story().inBatch(callItem("read", readTool, `{${"x".repeat(10_000)}`))
    const call = story.runes.find((rune) => rune.kind === "tool.call")
    expect(call?.payload).toMatchObject({ arguments: {} })
    const { arguments_text: kept } = (call as RuneOf<"tool.call">).payload
    expect(kept).toHaveLength(limits.argumentsKeptCharsMax)
  })

  it("nothing at all means no arguments; __proto__ is a key like any other", () => {
    expect(parseArguments("  ")).toEqual({ _tag: "Good", value: {} })
    const story = new Story().inBatch(callItem("read", readTool, '{"__proto__":{"polluted":1},"constructor":2}'))
    const args = story.call("call_1").arguments as Record<string, unknown>
    expect(JSON.stringify(args)).toBe('{"__proto__":{"polluted":1},"constructor":2}')
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined()
    expect(canonicalHash(args)).not.toBe(canonicalHash({}))
  })

  it("thoughts and provider data stay in order and untouched", () => {
    const native = { provider: "p", model: "m", data: { signature: "abc" } }
    const story = new Story().inBatch(
      { type: "reasoning", text: "hm", native },
      { type: "reasoning", native },
      { type: "text", text: "a", native },
      { ...callItem("read", readTool), native } as never
    )
    expect(story.agent.transcript.at(-1)).toMatchObject({
      content: "a",
      items: [
        { type: "reasoning", text: "hm", native },
        { type: "reasoning", native },
        { type: "text", chars: 1, native },
        { type: "tool_call", call_id: "call_1", native }
      ]
    })
  })
})

describe("results", () => {
  it.each([
    ["success", "completed"],
    ["error", "error"],
    ["sandbox_violation", "error"],
    ["timeout", "timeout"],
    ["cancelled", "cancelled"],
    ["unknown", "unknown"]
  ] as const)("%s leaves the call %s", (status, landed) => {
    const story = new Story().inBatch(callItem("x", shellTool))
    story.start("call_1")
    story.run({
      _tag: "FinishCall",
      call_id: id("call_1"),
      status,
      duration_ms: 4,
      exit_code: 1,
      output_blob: { sha256: "0".repeat(64), bytes: 70_000 },
      error: { code: "x", message: "y" }
    })
    expect(story.call("call_1").status).toBe(landed)
    expect(story.refused({ _tag: "FinishCall", call_id: id("call_1"), status, duration_ms: 4 }).code).toBe(
      "invalid_state"
    )
    expect(story.state.notices).toHaveLength(status === "unknown" ? 1 : 0)
  })

  it("a tool that fails does not fail the turn", () => {
    const story = new Story().inBatch(callItem("x", shellTool))
    story.start("call_1")
    story.run({
      _tag: "FinishCall",
      call_id: id("call_1"),
      status: "error",
      duration_ms: 1,
      error: { code: "exit", message: "2" }
    })
    expect(story.settle()).toEqual(["turn.tools_finished"])
    expect(story.turn.status).toBe("streaming")
  })

  it("a call that cannot run gets its error before it starts", () => {
    const story = new Story().inBatch(callItem("x", readTool))
    story.run({
      _tag: "FinishCall",
      call_id: id("call_1"),
      status: "error",
      duration_ms: 0,
      error: { code: "invalid_arguments", message: "path is missing" }
    })
    expect(story.effects).toEqual(["SettleTools"])
  })

  it("progress of an approved call that has not started is refused", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.run({ _tag: "RequireApproval", call_id: id("call_1"), policy_reason: "r", shown_as: { title: "t" } })
    story.run({ ...approve, call_id: id("call_1") })
    expect(story.call("call_1")).toMatchObject({ status: "executing", attempt: 0 })
    const early = { _tag: "AppendProgress", call_id: id("call_1"), stream: "stdout", chunk: "x" } as const
    expect(story.refused(early)).toMatchObject({ code: "invalid_state", message: "call_1 has not started" })
  })

  it("progress is kept, newest last, up to a limit", () => {
    const story = new Story().inBatch(callItem("x", shellTool))
    story.start("call_1")
    for (let line = 0; line < 3; line++) {
      story.run({
        _tag: "AppendProgress",
        call_id: id("call_1"),
        stream: "stdout",
        chunk: `${line}`.repeat(limits.progressTailCharsMax / 2)
      })
    }
    expect(story.call("call_1").progress_tail).toHaveLength(limits.progressTailCharsMax)
    expect(story.call("call_1").progress_tail.at(-1)).toBe("2")
  })

  it("start an effect once, whoever asks, and what may be repeated as often as it is asked", () => {
    const again = (facts: ToolFacts): Story => {
      const story = new Story().inBatch(callItem("x", facts))
      story.start("call_1")
      return story
    }
    const effect = again(shellTool)
    const head = effect.state.head
    expect(effect.refused({ _tag: "StartCall", call_id: id("call_1"), sandbox: { level: "x" } })).toMatchObject({
      code: "invalid_state",
      data: { state: "executing" }
    })
    expect(effect.state.head).toBe(head)
    expect(effect.call("call_1").attempt).toBe(1)
    expect(effect.finish("call_1")).toContain("tool.result")
    for (const facts of [readTool, writeTool]) {
      const story = again(facts)
      story.start("call_1")
      expect(story.call("call_1").attempt).toBe(2)
    }
  })

  it("start an effect that a person allowed, once", () => {
    const story = new Story().inBatch(callItem("x", shellTool))
    story.ask("call_1")
    story.run({ ...approve, call_id: id("call_1") })
    story.start("call_1")
    expect(story.refused({ _tag: "StartCall", call_id: id("call_1"), sandbox: { level: "x" } }).code).toBe(
      "invalid_state"
    )
  })

  it("of calls that nobody made are refused", () => {
    const story = new Story().ready()
    const call_id = id("call_9")
    expect(story.refused({ _tag: "StartCall", call_id, sandbox: { level: "x" } }).code).toBe("not_found")
    expect(story.refused({ _tag: "FinishCall", call_id, status: "success", duration_ms: 0 }).code).toBe("not_found")
    expect(story.refused({ _tag: "AppendProgress", call_id, stream: "stdout", chunk: "" }).code).toBe("not_found")
    expect(story.refused({ _tag: "CrashCall", call_id, message: "x" }).code).toBe("not_found")
    expect(story.refused({ _tag: "RetryCall", call_id }).code).toBe("not_found")
    expect(story.refused({ _tag: "RequireApproval", call_id, policy_reason: "", shown_as: { title: "" } }).code).toBe(
      "not_found"
    )
    expect(story.refused({ ...approve, call_id }).code).toBe("not_found")
    expect(story.refused({ ...deny, call_id }).code).toBe("not_found")
    expect(story.refused({ _tag: "ExpireApproval", call_id }).code).toBe("not_found")
  })
})

describe("approval", () => {
  const asked = (expiresMs?: number) => {
    const story = new Story().inBatch(callItem("bash", shellTool, '{"command":"rm x"}'))
    story.ask("call_1", expiresMs)
    return story
  }

  it("waits, is given, and the call starts", () => {
    const story = asked()
    expect(story.effect("AwaitApproval")).toMatchObject({ call_id: "call_1", expires_ms: null })
    const { arguments_hash } = story.call("call_1")
    expect(story.run({ ...approve, call_id: id("call_1"), arguments_hash })).toEqual(["tool.approved"])
    expect(story.call("call_1")).toMatchObject({ status: "executing", attempt: 0 })
    expect(story.effects).toEqual(["RunTool"])
    story.start("call_1")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("can change what will run; the model's own words stay", () => {
    const story = asked()
    story.run({ ...approve, call_id: id("call_1"), arguments: { command: "ls" } })
    expect(story.call("call_1")).toMatchObject({
      arguments: { command: "ls" },
      arguments_hash: canonicalHash({ command: "ls" })
    })
    expect(story.agent.transcript.at(-1)).toMatchObject({ calls: [{ arguments: { command: "rm x" } }] })
  })

  it("refuses arguments that no tool could take", () => {
    const tower = JSON.parse(`{"a":${"[".repeat(9_000)}${"]".repeat(9_000)}}`) as unknown
    const story = asked()
    for (const edited of [tower, [], null, "ls"]) {
      expect(story.refused({ ...approve, call_id: id("call_1"), arguments: edited }).code).toBe("bad_request")
    }
    const open = {
      _tag: "OpenCall",
      agent_id: story.root,
      call_id: id("toolu_9"),
      tool_name: "x",
      tool: readTool
    } as const
    expect(story.refused({ ...open, arguments: tower }).code).toBe("bad_request")
  })

  it("is bound to what was shown", () => {
    expect(asked().refused({ ...approve, call_id: id("call_1"), arguments_hash: "0".repeat(64) }).code).toBe(
      "bad_request"
    )
  })

  it("comes too late once the question has expired", () => {
    const story = asked(5)
    expect(story.refused({ ...approve, call_id: id("call_1") }).data).toEqual({ state: "expired" })
    expect(story.run({ _tag: "ExpireApproval", call_id: id("call_1") })).toEqual(["tool.result"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ status: "timeout", error: { code: "approval_timeout" } })
    expect(story.refused({ ...approve, call_id: id("call_1") })).toMatchObject({
      code: "already_decided",
      data: { decision: { decision: "expired" } }
    })
  })

  it("in time is taken", () => {
    const story = asked(2_000_000_000_000)
    expect(story.effect("AwaitApproval").expires_ms).toBe(2_000_000_000_000)
    story.run({ ...approve, call_id: id("call_1") })
  })

  it("is decided once: the second hears of the first", () => {
    const story = asked()
    story.run({ ...approve, call_id: id("call_1") })
    expect(story.refused({ ...deny, call_id: id("call_1") })).toMatchObject({
      code: "already_decided",
      data: { decision: { decision: "approved", approver: "ada", channel: "cli" } }
    })
    story.start("call_1")
    story.finish("call_1")
    story.settle()
    expect(story.refused({ ...approve, call_id: id("call_1") }).code).toBe("already_decided")
  })

  it("denied gives one denied result and the turn goes on", () => {
    const story = asked()
    expect(story.run({ ...deny, call_id: id("call_1"), channel: "web" })).toEqual(["tool.denied", "tool.result"])
    expect(story.effects).toEqual(["SettleTools"])
    expect(story.refused({ ...approve, call_id: id("call_1") })).toMatchObject({
      data: { decision: { decision: "denied", channel: "web" } }
    })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("denied with an interrupt ends the turn, each call once", () => {
    const story = new Story().inBatch(callItem("bash", shellTool), callItem("read", readTool))
    story.ask("call_1")
    expect(story.run({ ...deny, call_id: id("call_1"), interrupt: true })).toEqual([
      "tool.denied",
      "tool.result",
      "tool.result",
      "turn.interrupted"
    ])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("may be denied by policy before anyone is asked", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    expect(story.run({ ...deny, approver: "policy", call_id: id("call_1") })).toEqual(["tool.denied", "tool.result"])
  })

  it("is refused where nothing was asked", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    expect(story.refused({ ...approve, call_id: id("call_1") }).data).toEqual({ state: "pending_call" })
  })

  const offered = (choices: ReadonlyArray<"once" | "session" | "rule">) => {
    const story = new Story().inBatch(callItem("bash", shellTool, '{"command":"rm x"}'))
    const learns = { session: { for: "session" }, rule: { for: "good" } }
    const question = { policy_reason: "r", shown_as: { title: "t" }, choices, learns }
    story.run({ _tag: "RequireApproval", call_id: id("call_1"), ...question })
    return story
  }

  it("for longer is a permission until it is revoked, and only what is one can be revoked", () => {
    const story = offered(["once", "session"])
    const { arguments_hash } = story.call("call_1")
    story.run({ ...approve, call_id: id("call_1"), scope: "session", arguments_hash })
    const [{ event_id: given } = { event_id: 0 }] = story.state.grants
    const revoke = { _tag: "UpdateConfig", changes: {}, revoked_grants: [given], principal: "ada" } as const
    expect(story.refused({ ...revoke, revoked_grants: [given, given + 1] }).code).toBe("not_found")
    expect(story.state.grants).toHaveLength(1)
    expect(story.run(revoke)).toEqual(["config.updated"])
    expect(story.state.grants).toEqual([])
    expect(story.refused(revoke).code).toBe("not_found")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("for longer than was offered is refused", () => {
    expect(asked().refused({ ...approve, call_id: id("call_1"), scope: "session" })).toMatchObject({
      code: "bad_request",
      data: { choices: ["once"] }
    })
    const story = offered(["once", "session"])
    expect(story.refused({ ...approve, call_id: id("call_1"), scope: "rule" }).code).toBe("bad_request")
    expect(story.call("call_1").status).toBe("awaiting_approval")
  })

  it("for longer is bound to what the question said it would be, unless the arguments were changed", () => {
    const story = offered(["once", "session", "rule"])
    story.run({ ...approve, call_id: id("call_1"), scope: "session" })
    expect(story.state.grants).toMatchObject([{ scope: "session", rule: { for: "session" } }])
    const edited = offered(["once", "session", "rule"])
    edited.run({ ...approve, call_id: id("call_1"), scope: "rule", arguments: { command: "ls" } })
    expect(edited.state.grants[0]).not.toHaveProperty("rule")
    const once = offered(["once", "session", "rule"])
    once.run({ ...approve, call_id: id("call_1"), scope: "once", rule: { for: "nothing" } })
    expect(once.runes.at(-1)?.payload).not.toHaveProperty("rule")
  })

  it("for longer than once is remembered as a grant", () => {
    const story = offered(["once", "session", "rule"])
    story.run({ ...approve, call_id: id("call_1"), scope: "rule", rule: { program: "ls" }, expires_ms: 9 })
    expect(story.state.grants).toMatchObject([
      { tool_name: "bash", scope: "rule", rule: { program: "ls" }, expires_ms: 9 }
    ])
    const other = offered(["once", "session"])
    other.run({ ...approve, call_id: id("call_1"), scope: "session" })
    expect(other.state.grants).toMatchObject([{ scope: "session", expires_ms: null }])
  })

  it("names the choices that were offered", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.run({
      _tag: "RequireApproval",
      call_id: id("call_1"),
      policy_reason: "r",
      shown_as: { title: "t" },
      choices: ["once", "session"]
    })
    expect(story.call("call_1").approval?.choices).toEqual(["once", "session"])
  })

  it("of an interrupted turn cannot be given any more", () => {
    const story = asked()
    story.run({ _tag: "InterruptTurn", reason: "x" })
    expect(story.refused({ ...approve, call_id: id("call_1") })).toMatchObject({
      code: "already_decided",
      data: { decision: { decision: "cancelled" } }
    })
  })
})

describe("a runner that crashes", () => {
  const crash = (story: Story, call = "call_1") =>
    story.run({ _tag: "CrashCall", call_id: id(call), message: "runner died" })

  it("is tried once more after 500 ms, then the turn ends and the error is kept", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    story.start("call_1")
    expect(crash(story)).toEqual(["turn.retry_scheduled"])
    expect(story.runes.at(-1)?.payload).toMatchObject({
      delay_ms: 500,
      attempt: 2,
      target: { type: "tool", call_id: "call_1" }
    })
    expect(story.effects).toEqual(["RetryAfter"])
    expect(story.refused({ _tag: "StartCall", call_id: id("call_1"), sandbox: { level: "x" } }).data).toEqual({
      state: "retry_waiting"
    })
    expect(story.run({ _tag: "RetryDue", agent_id: story.root })).toEqual(["turn.retry_started"])
    expect(story.effects).toEqual(["RunTool"])
    story.start("call_1")
    expect(story.call("call_1").attempt).toBe(2)
    expect(crash(story)).toEqual(["tool.result", "turn.error"])
    expect(story.agent).toMatchObject({ status: "idle", last_error: { code: "tool_execution_failed" } })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("of something that must not run twice is not tried again", () => {
    const story = new Story().inBatch(callItem("bash", shellTool), callItem("read", readTool))
    story.start("call_1")
    expect(crash(story)).toEqual(["tool.result", "tool.result", "turn.error"])
    expect(story.runes.at(-3)?.payload).toMatchObject({ call_id: "call_1", status: "unknown" })
    expect(story.runes.at(-2)?.payload).toMatchObject({ call_id: "call_2", status: "cancelled" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("before it started anything is an error of the call", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    expect(crash(story)).toEqual(["tool.result", "turn.error"])
    expect(story.runes.at(-2)?.payload).toMatchObject({ status: "error" })
  })

  it("lets the other calls of the batch go on meanwhile", () => {
    const story = new Story().inBatch(
      callItem("read", readTool),
      callItem("read", readTool),
      callItem("read", readTool)
    )
    for (const call of ["call_1", "call_2", "call_3"]) story.start(call)
    crash(story)
    expect(story.effects).toEqual(["RetryAfter", "RunTool", "RunTool"])
    story.finish("call_2")
    expect(crash(story, "call_3")).toEqual(["tool.result"])
    expect(story.turn.status).toBe("retry_waiting")
    expect(story.run({ _tag: "RetryCall", call_id: id("call_1") })).toEqual(["turn.retry_started"])
    story.start("call_1")
    story.finish("call_1")
    story.settle()
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("waits for no retry unless one was scheduled", () => {
    const story = new Story().inBatch(callItem("read", readTool))
    expect(story.refused({ _tag: "RetryCall", call_id: id("call_1") }).code).toBe("invalid_state")
  })

  it("outside a turn only ends its call", () => {
    const story = new Story().ready()
    story.run({
      _tag: "OpenCall",
      agent_id: story.root,
      call_id: id("toolu_1"),
      tool_name: "Bash",
      arguments: {},
      tool: shellTool
    })
    expect(crash(story, "toolu_1")).toEqual(["tool.result"])
    expect(story.state.calls).toEqual([])
  })
})

describe("calls of outside agents", () => {
  const open = {
    _tag: "OpenCall",
    call_id: id("toolu_1"),
    tool_name: "Bash",
    arguments: { command: "ls" },
    tool: shellTool
  } as const

  it("ask in the same inbox, without a turn", () => {
    const story = new Story().ready()
    story.run({ ...open, agent_id: story.root })
    expect(story.refused({ ...open, agent_id: story.root }).code).toBe("invalid_state")
    story.ask("toolu_1", 9)
    expect(story.effect("AwaitApproval")).toMatchObject({ call_id: "toolu_1", expires_ms: 9 })
    expect(story.run({ ...deny, call_id: id("toolu_1"), interrupt: true })).toEqual(["tool.denied", "tool.result"])
    expect(story.state.calls).toEqual([])
    expect(story.state.next_call).toBe(2)
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("end with their agent", () => {
    const story = new Story().ready()
    story.run({ ...open, agent_id: story.root })
    expect(story.run({ _tag: "Close", reason: "done" })).toEqual(["session.closing", "tool.result", "agent.terminated"])
    expect(story.refused({ ...open, agent_id: story.root }).code).toBe("invalid_state")
    expect(story.refused({ ...open, agent_id: "agt_9999" as AgentId }).code).toBe("not_found")
  })
})

describe("hooks", () => {
  const run = (number: number) => `hookrun_${number}` as HookRunId
  const withHooks = (...policies: ReadonlyArray<HookFailurePolicy>) => {
    const story = new Story().inBatch(callItem("write", writeTool), callItem("read", readTool))
    story.start("call_1")
    story.finish("call_1")
    story.start("call_2")
    story.finish("call_2")
    story.settle(
      policies.map((failure_policy, index) => ({
        hook_name: `h${index}`,
        failure_policy,
        timeout_ms: 9,
        effect_class: "effect"
      }))
    )
    return story
  }
  const start = (story: Story, number: number) => story.run({ _tag: "StartHook", hook_run_id: run(number) })
  const finish = (story: Story, number: number, status: "succeeded" | "failed" | "canceled", extra: object = {}) =>
    story.run({ _tag: "FinishHook", hook_run_id: run(number), status, duration_ms: 2, ...extra })

  it("run one after another, then the model is asked", () => {
    const story = withHooks({ type: "fail_session" }, { type: "fail_session" })
    expect(story.turn.status).toBe("hooks_running")
    expect(story.effect("RunHook")).toMatchObject({ hook_run_id: "hookrun_1", timeout_ms: 9 })
    expect(story.refused({ _tag: "StartHook", hook_run_id: run(2) }).code).toBe("invalid_state")
    start(story, 1)
    expect(story.runes.at(-1)?.payload).toMatchObject({ call_ids: ["call_1", "call_2"], attempt: 1 })
    expect(story.effects).toEqual(["RunHook"])
    expect(finish(story, 1, "succeeded", { exit_code: 0, output: "ok" })).toEqual(["hook.completed"])
    start(story, 2)
    expect(finish(story, 2, "succeeded")).toEqual(["hook.completed", "turn.hooks_finished"])
    expect(story.turn).toMatchObject({ status: "streaming", hooks: [], call_ids: [] })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("of several agents run one at a time, those of the batch that was over first before others", () => {
    const worker = "agt_worker" as AgentId
    const policy = { type: "retry", max_attempts: 2, delay_ms: 5 } as const
    const story = withHooks(policy, { type: "fail_session" })
    story.run({ _tag: "SpawnAgent", spec: { agent_id: worker, role: "worker", model: "m" } })
    story.run({ _tag: "CompleteAgentInit", agent_id: worker })
    story.run({ _tag: "PostMessage", content: "go", mode: "queue", agent_id: worker })
    story.request(worker)
    story.respond([callItem("write", writeTool)], worker)
    story.start("call_3")
    story.finish("call_3")
    const own = {
      hook_name: "w",
      failure_policy: { type: "fail_session" },
      timeout_ms: 9,
      effect_class: "effect"
    } as const
    story.run({ _tag: "SettleTools", agent_id: worker, hooks: [own] })
    const pending = () => pendingWork(story.state).flatMap((one) => (one._tag === "RunHook" ? one.hook_run_id : []))
    expect(pending()).toEqual(["hookrun_1"])
    expect(story.refused({ _tag: "StartHook", hook_run_id: run(3) }).code).toBe("invalid_state")
    start(story, 1)
    expect(pending()).toEqual(["hookrun_1"])
    // While one waits to be tried again, others go on, and it waits for them in its turn.
    finish(story, 1, "failed")
    expect(pending()).toEqual(["hookrun_3"])
    start(story, 3)
    story.run({ _tag: "RetryDue", agent_id: story.root })
    expect(pending()).toEqual(["hookrun_3"])
    expect(story.refused({ _tag: "StartHook", hook_run_id: run(1) }).code).toBe("invalid_state")
    finish(story, 3, "succeeded")
    expect(pending()).toEqual(["hookrun_1"])
    start(story, 1)
    finish(story, 1, "succeeded")
    expect(pending()).toEqual(["hookrun_2"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("are skipped for a batch that changed nothing", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.run({ ...deny, call_id: id("call_1") })
    expect(story.effect("SettleTools").mutating).toBe(false)
    expect(
      story.settle([
        { hook_name: "h", failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class: "effect" }
      ])
    ).toEqual(["turn.tools_finished"])
    expect(story.turn.status).toBe("streaming")
  })

  it("that fail end the turn by default", () => {
    const story = withHooks({ type: "fail_session" })
    start(story, 1)
    expect(finish(story, 1, "failed", { exit_code: 3 })).toEqual(["hook.completed", "turn.error"])
    expect(story.agent.last_error).toMatchObject({ code: "hook_execution_failed", message: "hook h0 exited with 3" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("that fail may only warn", () => {
    const story = withHooks({ type: "warn_continue" }, { type: "fail_session" })
    start(story, 1)
    expect(finish(story, 1, "failed", { error: { code: "x", message: "y" } })).toEqual(["hook.completed"])
    expect(story.effect("RunHook").hook_run_id).toBe("hookrun_2")
    start(story, 2)
    finish(story, 2, "canceled")
    expect(story.turn.status).toBe("streaming")
    expect(story.runes.at(-1)?.payload).toMatchObject({ summaries: [{ status: "failed" }, { status: "canceled" }] })
  })

  it("that fail may be tried again as often as they say", () => {
    const story = withHooks({ type: "retry", max_attempts: 2, delay_ms: 40 })
    start(story, 1)
    expect(finish(story, 1, "failed")).toEqual(["hook.completed", "turn.retry_scheduled"])
    expect(story.runes.at(-1)?.payload).toMatchObject({ delay_ms: 40, target: { type: "hook" } })
    expect(story.refused({ _tag: "StartHook", hook_run_id: run(1) }).code).toBe("invalid_state")
    expect(story.run({ _tag: "RetryHook", hook_run_id: run(1) })).toEqual(["turn.retry_started"])
    expect(story.effects).toEqual(["RunHook"])
    expect(story.refused({ _tag: "RetryHook", hook_run_id: run(1) }).code).toBe("invalid_state")
    start(story, 1)
    expect(story.turn.hooks[0]?.attempt).toBe(2)
    expect(finish(story, 1, "failed")).toEqual(["hook.completed", "turn.error"])
    expect(story.agent.last_error?.message).toBe("hook h0 exited with no code")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("that nobody planned are refused", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "StartHook", hook_run_id: run(1) }).code).toBe("not_found")
    expect(story.refused({ _tag: "FinishHook", hook_run_id: run(1), status: "failed", duration_ms: 0 }).code).toBe(
      "not_found"
    )
    expect(story.refused({ _tag: "RetryHook", hook_run_id: run(1) }).code).toBe("not_found")
  })
})
