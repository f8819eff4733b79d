// Goal: all four implementations of the provider port keep the same promises. Method: one suite; the three adapters
// speak through their real SDKs to a local server, the scripted provider plays the same answers as a scenario.
import * as Result from "effect/Result"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ModelProvider } from "#src/provider/Provider.ts"
import { parseScenario } from "#src/provider/scripted/Scenario.ts"
import { makeScripted } from "#src/provider/scripted/Scripted.ts"
import { type Answer, plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"

type Fault = "cut" | "overloaded" | "stall"

interface Implementation {
  readonly name: string
  /** A provider that gives this answer, or begins it and then fails. */
  readonly answering: (answer: Answer, fault?: Fault) => ModelProvider
}

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const half = (bytes: string): number => Math.floor(Buffer.byteLength(bytes) / 2)

const adapters: ReadonlyArray<Implementation> = formats.map((format) => ({
  name: format.name,
  answering: (answer, fault) => {
    const body = format.stream(answer)
    server.respond(() => {
      if (fault === "overloaded") return { body: format.errorInStream(answer) }
      if (fault === "cut") return { body, cutAfter: half(body) }
      return fault === "stall" ? { body, cutAfter: half(body), ending: "stall" } : { body, pieceBytes: 7 }
    })
    return format.provider(server.url)
  }
}))

const actions = (answer: Answer): ReadonlyArray<object> => [
  ...(answer.reasoning === undefined ? [] : [{ reasoning: answer.reasoning }]),
  ...(answer.text === undefined ? [] : [{ text: answer.text, chunk_chars: 3 }]),
  ...(answer.calls ?? []).map((call) => ({ tool: call.name, call_id: call.id, raw_arguments: call.arguments })),
  {
    usage: {
      input_tokens: answer.inputTokens,
      cached_input_tokens: answer.cachedTokens,
      output_tokens: answer.outputTokens,
      reasoning_tokens: answer.reasoningTokens
    }
  }
]

const faultActions = { cut: { cut: true }, overloaded: { error: { kind: "overloaded" } }, stall: { stall: true } }

const scripted: Implementation = {
  name: "scripted",
  answering: (answer, fault) => {
    const played = fault === undefined ? actions(answer) : [...actions(answer).slice(0, 1), faultActions[fault]]
    const scenario = parseScenario("test", {
      name: "test",
      replies: [{ play: played, ...(answer.stop === "length" ? { stop: "max_output_tokens" } : {}) }]
    })
    return makeScripted({ load: async () => scenario })
  }
}

describe.each([...adapters, scripted])("the $name provider", ({ answering }) => {
  it("delivers text in deltas, once, and ends with done", async () => {
    const got = await collect(answering(plainAnswer))
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "end_turn" })
    expect(got.text).toBe(plainAnswer.text)
    expect(got.final?.content).toBe(plainAnswer.text)
    expect(got.final?.items).toEqual([{ type: "text", text: plainAnswer.text }])
    expect(got.events.at(-1)).toEqual({ type: "done", stop_reason: "end_turn" })
    expect(got.events.filter((event) => event.type === "done" || event.type === "error")).toHaveLength(1)
    expect(got.events.filter((event) => event.type === "assistant_delta").length).toBeGreaterThan(3)
  })

  it("delivers reasoning, tool calls in order and usage", async () => {
    const got = await collect(answering(toolAnswer))
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "tool_calls" })
    expect(got.reasoning).toBe(toolAnswer.reasoning)
    expect(
      got.calls.map(({ index, call_id, tool_name, arguments: written }) => [index, call_id, tool_name, written])
    ).toEqual(toolAnswer.calls?.map((call, index) => [index, call.id, call.name, call.arguments]))
    expect(got.calls.map((call) => call.parsed)).toEqual(
      toolAnswer.calls?.map((call) => ({ _tag: "Parsed", value: JSON.parse(call.arguments) }))
    )
    expect(got.usage).toEqual({
      input_tokens: 900,
      cached_input_tokens: 512,
      cache_write_tokens: 0,
      output_tokens: 210,
      reasoning_tokens: 64
    })
    expect(got.final?.items.map((item) => item.type)).toEqual(["opaque", "text", "tool_call", "tool_call"])
  })

  it("sends tool calls, usage, the final message and done in this order, after all deltas", async () => {
    const got = await collect(answering(toolAnswer))
    const order = got.events.map((event) => event.type)
    const kinds = [...new Set(order)].filter((type) => type !== "usage_so_far")
    expect(kinds).toEqual(["reasoning_delta", "assistant_delta", "tool_call", "usage", "assistant_final", "done"])
    expect(order.lastIndexOf("assistant_delta")).toBeLessThan(order.indexOf("tool_call"))
  })

  it("calls a stream that ends early truncated, and delivers no tool call of it", async () => {
    const got = await collect(answering(toolAnswer, "cut"))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "truncated", retryable: true } })
    expect(got.events.at(-1)).toMatchObject({ type: "error", error: { kind: "truncated" } })
    expect(got.calls).toEqual([])
    expect(got.final).toBeUndefined()
  })

  it("reports an error inside a running stream as that error", async () => {
    const got = await collect(answering(toolAnswer, "overloaded"))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "overloaded", retryable: true } })
    expect(got.calls).toEqual([])
  })

  it("stops at an abort in the middle of a stream without calling it a failure", async () => {
    const provider = answering(toolAnswer, "stall")
    const controller = new AbortController()
    const seen: Array<string> = []
    const outcome = await provider.stream(
      sampleRequest(),
      (event) => {
        seen.push(event.type)
        if (seen.length === 3) controller.abort()
      },
      { signal: controller.signal }
    )
    expect(outcome).toEqual({ _tag: "Interrupted" })
    expect(seen).not.toContain("error")
    expect(seen).not.toContain("done")
    await server.idle()
  })

  it("does nothing when it is aborted before it begins", async () => {
    const got = await collect(answering(plainAnswer), sampleRequest(), AbortSignal.abort())
    expect(got.outcome).toEqual({ _tag: "Interrupted" })
    expect(got.events).toEqual([])
  })

  it("waits for a receiver that asks for it", async () => {
    const provider = answering(plainAnswer)
    let inside = 0
    let deepest = 0
    const outcome = await provider.stream(
      sampleRequest(),
      async (event) => {
        if (event.type !== "assistant_delta") return
        inside++
        deepest = Math.max(deepest, inside)
        await new Promise((resolve) => setImmediate(resolve))
        inside--
      },
      { signal: new AbortController().signal }
    )
    expect(outcome._tag).toBe("Completed")
    expect(deepest).toBe(1)
  })

  it("rejects when the receiver throws, with what it threw", async () => {
    const failure = new Error("receiver is broken")
    const run = answering(plainAnswer).stream(
      sampleRequest(),
      () => {
        throw failure
      },
      { signal: new AbortController().signal }
    )
    await expect(run).rejects.toBe(failure)
    await server.idle()
  })

  it("says when the output limit ended the answer", async () => {
    const got = await collect(answering({ ...plainAnswer, stop: "length" }))
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "max_output_tokens" })
  })

  it("gives every call an id that is new in the conversation", async () => {
    const calls = [
      { id: "call_1", name: "a", arguments: "{}" },
      { id: "call_1", name: "b", arguments: "{}" },
      { id: "call_2", name: "c", arguments: "{}" }
    ]
    const messages = [
      ...sampleRequest().messages,
      {
        role: "assistant" as const,
        content: [{ type: "tool_call" as const, call_id: "call_2", tool_name: "c", arguments: "{}" }]
      },
      { role: "tool" as const, content: [{ type: "tool_result" as const, call_id: "call_2", output: "ok" }] }
    ]
    const got = await collect(answering({ ...toolAnswer, calls }), sampleRequest({ messages }))
    expect(got.calls.map((call) => call.call_id)).toEqual(["call_1", "call_1_2", "call_2_2"])
    expect(got.final?.items.flatMap((item) => (item.type === "tool_call" ? [item.call_id] : []))).toEqual([
      "call_1",
      "call_1_2",
      "call_2_2"
    ])
  })
})

describe("a scenario used as an answer", () => {
  it("is valid", () => {
    expect(Result.isSuccess(parseScenario("test", { name: "test", replies: [{ play: actions(toolAnswer) }] }))).toBe(
      true
    )
  })
})
