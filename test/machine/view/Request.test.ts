/** Goal: what a model is sent is always well-formed: every call has its output, in call order. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { ResponseItem } from "#src/machine/Command.ts"
import { assembleRequest, compactionPoints, type RequestMessage, toolContent } from "#src/machine/view/Request.ts"
import type { AgentId, CallId, HookRunId } from "#src/rune/Ids.ts"
import { seedFor } from "../../support/seed.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"
import { expectWellFormed } from "../../support/wellFormed.ts"

const messages = (story: Story): ReadonlyArray<RequestMessage> => assembleRequest(story.state, story.agent)

describe("a request", () => {
  it("holds instructions, input, answer and outputs in call order", () => {
    const story = new Story().ready({ instructions: "Be brief." })
    story.post("read both")
    story.request()
    story.respond([textItem("Reading."), callItem("a", readTool, '{"p":1}', "toolu_a"), callItem("b", readTool)])
    story.start("call_1")
    story.start("call_2")
    story.finish("call_2", "B")
    story.finish("call_1", "A")
    story.settle()
    expect(messages(story)).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "read both" },
      {
        role: "assistant",
        parts: [
          { type: "text", text: "Reading." },
          { type: "tool_call", call_id: "call_1", wire_call_id: "toolu_a", tool_name: "a", arguments: { p: 1 } },
          { type: "tool_call", call_id: "call_2", wire_call_id: "call_2", tool_name: "b", arguments: {} }
        ]
      },
      { role: "tool", call_id: "call_1", wire_call_id: "toolu_a", tool_name: "a", status: "success", content: "A" },
      { role: "tool", call_id: "call_2", wire_call_id: "call_2", tool_name: "b", status: "success", content: "B" }
    ])
  })

  it("prefers the agent's own instructions", () => {
    const story = new Story().ready({ instructions: "general" })
    const worker = "agt_2222" as AgentId
    story.run({
      _tag: "SpawnAgent",
      spec: { agent_id: worker, role: "w", model: "m", instructions: "special", parent_id: story.root }
    })
    const agent = story.state.agents.find((one) => one.agent_id === worker)!
    expect(assembleRequest(story.state, agent)).toEqual([{ role: "system", content: "special" }])
    expect(messages(new Story().ready())).toEqual([])
  })

  it("gives each kind of end its words", () => {
    const record = (result: object | undefined) =>
      toolContent({
        call_id: "c" as CallId,
        tool_name: "t",
        arguments: {},
        ...(result === undefined ? {} : { result: result as never })
      })
    expect(record({ status: "success" }).content).toBe("")
    expect(record({ status: "error", error: { code: "x", message: "y" }, output: "z" }).content).toBe(
      "The call failed.\nx: y\nz"
    )
    expect(record({ status: "denied" }).content).toBe("The call was not allowed.")
    expect(record(undefined)).toMatchObject({ status: "unknown" })
  })

  it("sends every id once, whatever the model made up", () => {
    const story = new Story().inBatch(
      callItem("a", readTool, "{}", "same"),
      callItem("a", readTool, "{}", "same"),
      callItem("a", readTool, "{}", "bad id!")
    )
    const calls = messages(story).flatMap((message) => (message.role === "tool" ? [message.wire_call_id] : []))
    expect(calls).toEqual(["same", "call_2", "call_3"])
  })

  it("carries thoughts with their native data, but never thoughts alone", () => {
    const native = { provider: "p", model: "m", data: { signature: "s" } }
    const story = new Story().ready()
    story.post("think")
    story.request()
    story.respond([
      { type: "reasoning", text: "hm", native },
      { type: "text", text: "", native }
    ])
    expect(messages(story).map((message) => message.role)).toEqual(["user"])
    story.post("again")
    story.request()
    story.respond([
      { type: "reasoning", native },
      { type: "text", text: "so", native },
      { ...callItem("a", readTool), native } as ResponseItem
    ])
    expect(messages(story)[2]).toMatchObject({
      parts: [
        { type: "reasoning", native },
        { type: "text", text: "so", native },
        { type: "tool_call", native }
      ]
    })
  })

  it("holds nothing of what hooks printed", () => {
    const story = new Story().inBatch(callItem("write", writeTool))
    story.start("call_1")
    story.finish("call_1", "written")
    story.settle([
      { hook_name: "lint", failure_policy: { type: "warn_continue" }, timeout_ms: 9, effect_class: "pure" }
    ])
    const hook = { hook_run_id: "hookrun_1" as HookRunId }
    story.run({ _tag: "StartHook", ...hook })
    const output = "line 7 is too long"
    story.run({ _tag: "FinishHook", ...hook, status: "failed", exit_code: 1, output, duration_ms: 1 })
    expect(story.runes.find(({ kind }) => kind === "hook.completed")?.payload).toMatchObject({ output })
    expect(story.effects).toEqual(["CallModel"])
    const sent = JSON.stringify(messages(story))
    expect(sent).toContain("written")
    for (const word of [output, "lint"]) expect(sent).not.toContain(word)
  })

  it("keeps partial words and cancelled calls of an interrupted turn", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.start("call_1")
    story.run({ _tag: "InterruptTurn", reason: "stop" })
    story.post("go on")
    story.request()
    story.run({ _tag: "AppendText", agent_id: story.root, content: "half" })
    story.run({ _tag: "InterruptTurn", reason: "stop" })
    story.post("and now")
    expect(messages(story).map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
      "assistant",
      "user"
    ])
    expectWellFormed(messages(story))
  })

  it("names the agent a message came from", () => {
    const story = new Story().ready()
    story.run({ _tag: "SendAgentMessage", to_agent_id: story.root, from_agent_id: story.root, content: "note" })
    story.run({ _tag: "StartQueued", agent_id: story.root })
    expect(messages(story)).toEqual([{ role: "user", content: "note", from_agent_id: story.root }])
  })

  it("drops calls that an answer names and nobody recorded", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.tell("turn.assistant_final", {
      content: "x",
      items: [
        { type: "text", chars: 1 },
        { type: "tool_call", call_id: "call_9" as CallId }
      ]
    })
    expect(messages(story).at(-1)).toEqual({ role: "assistant", parts: [{ type: "text", text: "x" }] })
  })

  it("begins with the summary after a compaction, cut where nothing is torn", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    expect(compactionPoints(story.agent)).toEqual([])
    story.start("call_1")
    story.finish("call_1")
    story.settle()
    const [point] = compactionPoints(story.agent)
    story.run({ _tag: "Compact", agent_id: story.root, upto: point!, summary: "a was read" })
    const head = "Summary of the conversation so far, and of what was done about the message above:"
    expect(messages(story)).toEqual([
      { role: "user", content: "go" },
      { role: "user", content: `${head}\n\na was read` }
    ])
    story.request()
    story.respond([textItem("done")])
    story.run({ _tag: "Compact", agent_id: story.root, upto: story.state.head, summary: "all was read" })
    expect(messages(story)).toEqual([{ role: "user", content: "Summary of the conversation so far:\n\nall was read" }])
  })

  it("is well-formed after any cut at a compaction point", () => {
    const arbitraryTurns = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(arbitraryTurns, fc.nat(), (turns, pick) => {
        const story = new Story().ready()
        for (const calls of turns) {
          story.post("go")
          story.request()
          story.respond([textItem("t"), ...Array.from({ length: calls }, () => callItem("a", readTool))])
          if (calls === 0) continue
          story.run({ _tag: "InterruptTurn", reason: "x" })
        }
        const points = compactionPoints(story.agent)
        story.run({ _tag: "Compact", agent_id: story.root, upto: points[pick % points.length]!, summary: "s" })
        expectWellFormed(messages(story))
      }),
      { seed: seedFor("compaction"), numRuns: 100 }
    )
  })
})
