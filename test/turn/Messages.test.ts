// Goal: what a provider is sent is what the conversation holds, and what it answers is taken as it is, or refused by
// name. Method: conversations told in runes, translated there and back.
import * as Stream from "effect/Stream"
import { describe, expect, it } from "vitest"
import { parseArguments } from "#src/provider/Arguments.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { assemble, responseItems } from "#src/turn/Messages.ts"
import { asideRequest, turnRequest } from "#src/turn/ModelRequests.ts"
import { tool } from "../support/runtime/tools.ts"
import { callItem, readTool, Story, textItem } from "../support/story.ts"
import { functionTools } from "../support/tool/FunctionTools.ts"

const origin = { provider: "messages", model: "m1" }
const noFacts = () => undefined

describe("a request", () => {
  it("holds the words of both sides, calls with their results right after them, and the instructions apart", () => {
    const story = new Story().ready({ instructions: "Be brief." })
    story.post("first")
    story.request()
    story.respond([
      textItem("I look. "),
      callItem("a", readTool, '{"x":1}', "id1"),
      callItem("b", readTool, "{}", "id2")
    ])
    story.start("call_1")
    story.start("call_2")
    story.finish("call_2", "two")
    story.run({
      _tag: "FinishCall",
      call_id: "call_1" as never,
      status: "error",
      error: { code: "tool_execution_failed", message: "no such file" },
      duration_ms: 1
    })
    story.settle()
    expect(assemble(story.state, story.agent)).toEqual({
      instructions: "Be brief.",
      messages: [
        { role: "user", content: [{ type: "text", text: "first" }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look. " },
            { type: "tool_call", call_id: "id1", tool_name: "a", arguments: '{"x":1}' },
            { type: "tool_call", call_id: "id2", tool_name: "b", arguments: "{}" }
          ]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool_result",
              call_id: "id1",
              output: "The call failed.\ntool_execution_failed: no such file",
              is_error: true
            },
            { type: "tool_result", call_id: "id2", output: "two" }
          ]
        }
      ]
    })
  })

  it("gives data that only its provider understands back as it came", () => {
    const story = new Story().ready()
    story.post("q")
    story.request()
    const seal = { format: "anthropic.content_block", json: '{"type":"thinking","signature":"Eq+/="}' }
    const parts = [
      { type: "opaque", origin: "messages/m1", ...seal },
      { type: "text", text: "progress", phase: "commentary" },
      { type: "text", text: "answer" }
    ] as const
    story.run({
      _tag: "ReceiveResponse",
      agent_id: story.root,
      items: responseItems(parts, origin, new Map(), noFacts)
    })
    expect(assemble(story.state, story.agent).messages[1]).toEqual({ role: "assistant", content: parts })
  })

  it("says which agent a message is from", () => {
    const story = new Story().ready()
    const from = "agt_00000000000000c1" as AgentId
    story.run({ _tag: "SendAgentMessage", to_agent_id: story.root, from_agent_id: from, content: "done" })
    story.run({ _tag: "StartQueued", agent_id: story.root })
    expect(assemble(story.state, story.agent).messages).toEqual([
      { role: "user", content: [{ type: "text", text: `Message from agent ${from}:\n\ndone` }] }
    ])
  })

  it("has the text of what is attached, and names what has none", () => {
    const story = new Story().ready()
    const content = [
      { type: "text", text: "see" },
      { type: "file", name: "a.txt", text: "inside" },
      { type: "file", name: "b.bin", blob: { sha256: "0".repeat(64), bytes: 3 } },
      { type: "image", media_type: "image/png", data: "AAAA" }
    ] as never
    story.run({ _tag: "PostMessage", content, mode: "queue" })
    expect(assemble(story.state, story.agent).messages[0]?.content).toEqual([
      { type: "text", text: "see" },
      { type: "text", text: "a.txt:\ninside" },
      { type: "text", text: `[file b.bin, 3 bytes, blob:${"0".repeat(64)}: no model can be shown it]` },
      { type: "text", text: "[image image/png: it was not kept]" }
    ])
  })

  it("offers tools only where there are some, and says who asks", () => {
    const story = new Story().ready()
    story.post("q")
    const resolved = {
      provider: { name: "p", stream: () => Stream.never },
      model: "m",
      fullName: "p/m"
    }
    const context = { requestId: "req_1" as never, resolved, turnId: "turn_1", attempt: 2 }
    const without = turnRequest(story.state, story.agent, { ...context, tools: [] })
    expect(without).not.toHaveProperty("tools")
    expect(without.metadata).toEqual({
      conversationId: story.conversationId,
      agentId: story.root,
      role: "orchestrator",
      turnId: "turn_1",
      attempt: 2
    })
    const one = functionTools([tool("look", async () => "")]).describe(story.state, story.root)
    expect(turnRequest(story.state, story.agent, { ...context, tools: one }).tools?.map(({ name }) => name)).toEqual([
      "look"
    ])
  })

  it("beside a turn ends with the question that is asked", () => {
    const story = new Story().ready({ instructions: "Be brief." })
    story.post("q")
    const aside = { requestId: "req_1" as never, model: "m", role: "compaction", prompt: "Sum up." }
    const request = asideRequest(story.state, story.agent, aside)
    expect(request.messages.at(-1)).toEqual({ role: "user", content: [{ type: "text", text: "Sum up." }] })
    expect(request.instructions).toBe("Be brief.")
  })
})

describe("an answer", () => {
  const call = (text: string) => ({ type: "tool_call", call_id: "c", tool_name: "a", arguments: text }) as const

  const takenAs = (text: string) =>
    responseItems([call(text)], origin, new Map([["c", parseArguments(text)]]), () => readTool)[0]

  it("passes arguments on in the only form that may be used", () => {
    expect(takenAs('{"a":"\\ud800"}')).toMatchObject({ arguments_text: '{"a":"\ufffd"}' })
    expect(takenAs("  ")).toMatchObject({ arguments_text: "{}" })
  })

  it("passes on why arguments may not be used", () => {
    expect(takenAs('{"__proto__":{"x":1}}')).toMatchObject({ unusable: { code: "invalid_arguments" } })
    expect(takenAs("[1]")).toMatchObject({ unusable: { code: "invalid_arguments" } })
    expect(takenAs(`{"a":"${"x".repeat(1_100_000)}"}`)).toMatchObject({ unusable: { code: "arguments_too_large" } })
  })

  it("has its calls without facts where there is no such tool", () => {
    expect(responseItems([call("{}")], origin, new Map(), noFacts)[0]).toEqual({
      type: "tool_call",
      provider_call_id: "c",
      tool_name: "a",
      arguments_text: "{}"
    })
  })

  it("that may not be used becomes a typed result in the machine", () => {
    const story = new Story().ready()
    story.post("q")
    story.request()
    const items = responseItems(
      [call('{"__proto__":1}')],
      origin,
      new Map([["c", parseArguments('{"__proto__":1}')]]),
      () => readTool
    )
    story.run({ _tag: "ReceiveResponse", agent_id: story.root, items })
    expect(story.call("call_1")).toMatchObject({ status: "error", result: { error: { code: "invalid_arguments" } } })
  })
})
