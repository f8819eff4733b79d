// Goal: the streams of all four implementations of the provider port keep the same promises. Method: one suite; the three
// adapters speak through their real SDKs to a local server, the scripted provider plays the same answers as a scenario.
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ModelProvider, ProviderEvent } from "#src/provider/Provider.ts"
import { limits } from "#src/provider/ProviderLimits.ts"
import { parseScenario } from "#src/provider/scripted/Scenario.ts"
import { makeScripted } from "#src/provider/scripted/Scripted.ts"
import { type Answer, plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { collect, outcomeOf, sampleRequest, summarize } from "../support/provider-server/Collect.ts"
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
    return makeScripted({ load: () => Effect.fromResult(scenario) })
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
    expect(got.events.filter((event) => event.type === "done")).toHaveLength(1)
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
    expect(got.events.length).toBeGreaterThan(0)
    expect(got.events.filter((event) => event.type === "done")).toEqual([])
    expect(got.calls).toEqual([])
    expect(got.final).toBeUndefined()
  })

  it("reports an error inside a running stream as that error", async () => {
    const got = await collect(answering(toolAnswer, "overloaded"))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "overloaded", retryable: true } })
    expect(got.calls).toEqual([])
  })

  it("stops when its consumer is interrupted in the middle, without calling that a failure", async () => {
    const seen: Array<ProviderEvent> = []
    const begun = Promise.withResolvers<void>()
    const heard = Stream.runForEach(answering(toolAnswer, "stall").stream(sampleRequest()), (event) =>
      Effect.sync(() => {
        seen.push(event)
        if (seen.length === 3) begun.resolve()
      })
    )
    const fiber = Effect.runFork(heard)
    await begun.promise
    const before = seen.length
    await Effect.runPromise(Fiber.interrupt(fiber))
    const exit = await Effect.runPromise(Fiber.await(fiber))
    expect(outcomeOf(exit, seen)).toEqual({ _tag: "Interrupted" })
    expect(seen.length).toBe(before)
    expect(seen.map((event) => event.type)).not.toContain("done")
    await server.idle()
  })

  it("does nothing before somebody listens", async () => {
    const provider = answering(plainAnswer)
    server.requests.length = 0
    const stream = provider.stream(sampleRequest())
    await new Promise((resolve) => setImmediate(resolve))
    expect(server.requests).toEqual([])
    expect((await Effect.runPromise(Stream.runCollect(stream))).at(-1)?.type).toBe("done")
  })

  it("answers each consumer anew", async () => {
    const stream = answering(plainAnswer).stream(sampleRequest())
    const first = await Effect.runPromise(Stream.runCollect(stream))
    const second = await Effect.runPromise(Stream.runCollect(stream))
    expect(second).toEqual(first)
  })

  it("delivers chunks in order, one at a time, to a consumer that takes its time", async () => {
    const text = "word ".repeat(limits.eventsBufferedMax)
    let inside = 0
    let deepest = 0
    const heard: Array<ProviderEvent> = []
    const slow = Stream.runForEachArray(answering({ ...plainAnswer, text }).stream(sampleRequest()), (events) =>
      Effect.promise(async () => {
        inside++
        deepest = Math.max(deepest, inside)
        heard.push(...events)
        expect(events.length).toBeLessThanOrEqual(2 * limits.eventsBufferedMax)
        await new Promise((resolve) => setImmediate(resolve))
        inside--
      })
    )
    await Effect.runPromise(slow)
    expect(deepest).toBe(1)
    expect(summarize({ _tag: "Completed", stopReason: "end_turn" }, heard).text).toBe(text)
    expect(heard.at(-1)?.type).toBe("done")
  })

  it("aborts the request when its consumer dies", async () => {
    const failure = new Error("consumer is broken")
    const run = Stream.runForEach(answering(plainAnswer).stream(sampleRequest()), () => Effect.die(failure))
    await expect(Effect.runPromise(run)).rejects.toBe(failure)
    await server.idle()
  })

  it("aborts the request when its consumer has heard enough", async () => {
    const enough = Stream.take(answering(toolAnswer, "stall").stream(sampleRequest()), 2)
    expect(await Effect.runPromise(Stream.runCollect(enough))).toHaveLength(2)
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
