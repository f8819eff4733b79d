/**
 * Goal: whatever a crash leaves behind is resolved by its class, once, and the
 * turn goes on by itself. One test per row of the crash table.
 */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import type { CallId, HookRunId } from "#src/rune/Ids.ts"
import type { EffectClass } from "#src/rune/kinds/shared.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"

const approve = {
  _tag: "ApproveCall",
  call_id: "call_1" as CallId,
  approver: "ada",
  channel: "cli",
  scope: "once"
} as const

describe("after a crash", () => {
  it("a request without an answer is made again, and its words are kept", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const { request_id } = story.turn.request!
    story.run({ _tag: "AppendText", agent_id: story.root, content: "half an ans" })
    expect(story.recover()).toEqual({ drafts: [], pending: 1, resolved: 0 })
    expect(story.effect("CallModel").cut_off).toEqual({ request_id, provider: "scripted", model: "demo" })
    story.request()
    expect(story.runes.at(-1)?.payload).toMatchObject({
      replaces: request_id,
      partial_output: "half an ans",
      attempt: 1
    })
    story.respond([textItem("a whole answer")])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("a started call of a client is neither lost nor started again", () => {
    const story = new Story().inBatch(callItem("look_up", { ...shellTool, provenance: "remote" }))
    story.start("call_1")
    expect(story.recover()).toEqual({ drafts: [], pending: 1, resolved: 0 })
    expect(story.effects).toEqual(["RunTool"])
    story.finish("call_1")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("a question is still open and can be answered", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.ask("call_1")
    expect(story.recover().drafts).toEqual([])
    expect(story.effects).toEqual(["AwaitApproval"])
    story.run(approve)
  })

  it("an approved call that never started starts", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.ask("call_1")
    story.run(approve)
    expect(story.recover().drafts).toEqual([])
    expect(story.effects).toEqual(["RunTool"])
  })

  it.each([
    ["pure", readTool],
    ["idempotent", writeTool]
  ])("a started %s call runs again", (_, tool) => {
    const story = new Story().inBatch(callItem("x", tool))
    story.start("call_1")
    expect(story.recover().drafts).toEqual([])
    expect(story.effects).toEqual(["RunTool"])
    story.start("call_1")
    expect(story.call("call_1").attempt).toBe(2)
    story.finish("call_1")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("a started effect gets one unknown result, is told to the model and shown to a person", () => {
    const story = new Story().inBatch(callItem("bash", shellTool), callItem("read", readTool))
    story.start("call_1")
    story.run({ _tag: "AppendProgress", call_id: "call_1" as CallId, stream: "stdout", chunk: "step 1\n" })
    const resolution = story.recover()
    expect(resolution.drafts.map((draft) => draft.kind)).toEqual(["tool.result", "system.recovered"])
    expect(resolution).toMatchObject({ resolved: 1 })
    expect(story.runes.at(-1)?.payload).toMatchObject({ resolved: 1, detail: ["call_1: outcome unknown"] })
    expect(story.call("call_1")).toMatchObject({ status: "unknown", result: { output: "step 1\n" } })
    expect(story.state.notices).toMatchObject([{ type: "unknown_outcome", call_id: "call_1" }])
    expect(story.recover().drafts).toEqual([])
    story.start("call_2")
    story.finish("call_2")
    story.settle()
    const told = assembleRequest(story.state, story.agent).find((message) => message.role === "tool")
    expect(told).toMatchObject({ call_id: "call_1", status: "unknown" })
    expect((told as { content: string }).content).toContain("may or may not have taken effect")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it.each([
    ["effect", ["hook.completed", "system.recovered"], []],
    ["pure", [], ["RunHook"]]
  ] as const)("a running hook of class %s follows the same rule", (effect_class: EffectClass, drafts, effects) => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    const hook = { failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class } as const
    story.settle([
      { hook_name: "a", ...hook },
      { hook_name: "b", ...hook }
    ])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as HookRunId })
    expect(story.recover().drafts.map((draft) => draft.kind)).toEqual(drafts)
    expect(story.effects).toEqual(["RunHook"])
    expect(story.effect("RunHook").hook_run_id).toBe(effects.length === 0 ? "hookrun_2" : "hookrun_1")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("a last hook that was lost still lets the turn go on", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1")
    story.settle([{ hook_name: "a", failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class: "effect" }])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as HookRunId })
    story.recover()
    expect(story.turn.status).toBe("streaming")
    expect(story.effects).toEqual(["CallModel"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("a retry that waited still waits for its time", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    const error = { error_type: "streaming_failed", message: "cut", retryable: true } as const
    story.run({ _tag: "FailModelCall", agent_id: story.root, error })
    expect(story.recover().pending).toBe(1)
    expect(story.effects).toEqual(["RetryAfter"])
  })

  it("nothing is found in a conversation at rest", () => {
    expect(new Story().ready().recover()).toEqual({ drafts: [], pending: 0, resolved: 0 })
  })
})
