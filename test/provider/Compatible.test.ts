// Goal: servers that speak Chat Completions almost right still work, and the other adapters' fine print holds. Method:
// streams as Ollama, vLLM, llama.cpp, OpenRouter and older gateways send them, written by hand, through the real SDK.

import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeMessages } from "#src/provider/anthropic/Messages.ts"
import { assistant, user } from "#src/provider/Canonical.ts"
import { makeModelCatalog } from "#src/provider/ModelCatalog.ts"
import { makeChatCompletions } from "#src/provider/openai/ChatCompletions.ts"
import { escaped, fragments, plainAnswer, sse, toolAnswer } from "../support/provider-server/Answer.ts"
import { chatChunk, chatDone, chatStream } from "../support/provider-server/ChatCompletions.ts"
import { type Collected, collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { messagesStream, messagesStreamOf } from "../support/provider-server/Messages.ts"
import { responseEvents, responsesStream } from "../support/provider-server/Responses.ts"
import { type ProviderServer, serverKey, startProviderServer } from "../support/provider-server/Server.ts"

let server: ProviderServer
let openServer: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
  openServer = await startProviderServer({ key: null })
})
afterAll(async () => {
  await server.close()
  await openServer.close()
})

const through = (name: string, body: string): Promise<Collected> => {
  server.respond(() => ({ body }))
  const format = formats.find((candidate) => candidate.name === name)
  if (format === undefined) throw new Error(`no format ${name}`)
  return collect(format.provider(server.url))
}

const call = (fields: object) => chatChunk(toolAnswer, { tool_calls: [fields] })
const stop = chatChunk(toolAnswer, {}, "stop")

describe("Chat Completions servers", () => {
  it("may leave the usage out", async () => {
    const got = await through("chat", chatChunk(plainAnswer, { content: "hi" }) + stop + chatDone)
    expect(got.outcome._tag).toBe("Completed")
    expect(got.usage).toBeUndefined()
  })

  it("may leave [DONE] out, once the finish reason came", async () => {
    const got = await through("chat", chatChunk(plainAnswer, { content: "hi" }) + stop)
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "end_turn" })
  })

  it("may leave call ids out: ids made from the request are unique", async () => {
    const got = await through(
      "chat",
      call({ index: 0, function: { name: "a", arguments: "{}" } }) +
        call({ index: 1, function: { name: "b", arguments: "{}" } }) +
        stop +
        chatDone
    )
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "tool_calls" })
    expect(got.calls.map((one) => [one.call_id, one.tool_name])).toEqual([
      ["call_req_1_0", "a"],
      ["call_req_1_1", "b"]
    ])
  })

  const joins: ReadonlyArray<readonly [string, ReadonlyArray<object>]> = [
    [
      "an index, and an id that is null",
      [
        { index: 0, id: null },
        { index: 0, id: null }
      ]
    ],
    [
      "an index, and an id that is empty",
      [
        { index: 0, id: "" },
        { index: 0, id: "" }
      ]
    ],
    ["no index, and an id that is null", [{ id: null }, { id: null }]],
    ["no index, and an id that is empty", [{ id: "" }, { id: "" }]],
    [
      "an index that is null",
      [
        { index: null, id: null },
        { index: null, id: null }
      ]
    ],
    ["an id in the first fragment alone", [{ id: "x" }, { id: null }]],
    ["an id that comes late", [{ id: "" }, { id: "x" }]]
  ]

  it.each(joins)("may send fragments with %s: they are one call", async (_, [first, later]) => {
    const got = await through(
      "chat",
      call({ ...first, function: { name: "a", arguments: "" } }) +
        call({ ...later, function: { arguments: '{"n":' } }) +
        call({ ...later, function: { name: null, arguments: "1}" } }) +
        stop
    )
    expect(got.calls.map((one) => [one.tool_name, one.arguments, one.call_id !== ""])).toEqual([["a", '{"n":1}', true]])
  })

  it.each([null, "", undefined])("may send several calls without index, each with the id %j", async (id) => {
    const got = await through(
      "chat",
      call({ id, function: { name: "a", arguments: "" } }) +
        call({ id, function: { arguments: '{"n":1}' } }) +
        call({ id, function: { name: "b", arguments: "" } }) +
        call({ id, function: { arguments: '{"n":2}' } }) +
        call({ id, function: { name: "b", arguments: '{"n":3}' } }) +
        stop
    )
    expect(got.calls.map((one) => [one.tool_name, one.arguments])).toEqual([
      ["a", '{"n":1}'],
      ["b", '{"n":2}'],
      ["b", '{"n":3}']
    ])
    expect(new Set(got.calls.map((one) => one.call_id)).size).toBe(3)
  })

  it("may leave the index out", async () => {
    const got = await through(
      "chat",
      call({ id: "x", function: { name: "a", arguments: '{"n":' } }) +
        call({ function: { arguments: "1}" } }) +
        call({ id: "y", function: { name: "b", arguments: "{}" } }) +
        stop
    )
    expect(got.calls.map((one) => [one.call_id, one.arguments])).toEqual([
      ["x", '{"n":1}'],
      ["y", "{}"]
    ])
  })

  it("may give parallel calls the same index", async () => {
    const got = await through(
      "chat",
      call({ index: 0, id: "x", function: { name: "a", arguments: '{"n":1}' } }) +
        call({ index: 0, id: "y", function: { name: "b", arguments: '{"n":2}' } }) +
        stop
    )
    expect(got.calls.map((one) => [one.call_id, one.tool_name, one.arguments])).toEqual([
      ["x", "a", '{"n":1}'],
      ["y", "b", '{"n":2}']
    ])
  })

  it("may interleave the pieces of two calls", async () => {
    const got = await through(
      "chat",
      call({ index: 0, id: "x", function: { name: "a", arguments: "" } }) +
        call({ index: 1, id: "y", function: { name: "b", arguments: "" } }) +
        call({ index: 1, function: { arguments: '{"b"' } }) +
        call({ index: 0, function: { arguments: '{"a"' } }) +
        call({ index: 1, function: { arguments: ":2}" } }) +
        call({ index: 0, function: { arguments: ":1}" } }) +
        stop
    )
    expect(got.calls.map((one) => one.arguments)).toEqual(['{"a":1}', '{"b":2}'])
  })

  it("may send arguments as an object", async () => {
    const got = await through("chat", call({ index: 0, id: "x", function: { name: "a", arguments: { n: 1 } } }) + stop)
    expect(got.calls[0]?.parsed).toEqual({ _tag: "Parsed", value: { n: 1 } })
  })

  it("may name reasoning in either way and add comments and empty chunks", async () => {
    const details = { reasoning: "think", reasoning_details: [{ type: "reasoning.encrypted", data: "xyz" }] }
    const got = await through(
      "chat",
      `: OPENROUTER PROCESSING\n\n${sse(undefined, { choices: [] })}${chatChunk(toolAnswer, details)}${chatChunk(toolAnswer, { content: "hi" })}${stop}`
    )
    expect(got.reasoning).toBe("think")
    expect(got.final?.items[0]).toMatchObject({
      type: "opaque",
      json: '{"reasoning":"think","reasoning_details":[{"type":"reasoning.encrypted","data":"xyz"}]}'
    })
  })

  it("may close with a chunk whose delta is null", async () => {
    const closing = sse(undefined, { choices: [{ index: 0, delta: null, finish_reason: "stop" }] })
    expect((await through("chat", chatChunk(plainAnswer, { content: "hi" }) + closing)).text).toBe("hi")
  })

  it("may split a character over two deltas", async () => {
    const halves = ["a\ud83d", "\ude00b"]
    const body = [
      ...halves.map((half) => chatChunk(plainAnswer, { reasoning_content: half })),
      ...halves.map((half) => chatChunk(plainAnswer, { content: half }))
    ].join("")
    const got = await through("chat", body + stop)
    expect([got.text, got.reasoning]).toEqual(["a😀b", "a😀b"])
    const deltas = got.events.flatMap((event) => ("content" in event ? [event.content] : []))
    expect(deltas.every((content) => content.isWellFormed())).toBe(true)
  })

  it("may escape every character, end lines with CRLF and begin with a byte order mark", async () => {
    const plain = await through("chat", chatStream(toolAnswer))
    expect(await through("chat", escaped(chatStream(toolAnswer)))).toEqual(plain)
    expect(await through("chat", chatStream(toolAnswer).replaceAll("\n", "\r\n"))).toEqual(plain)
  })

  it("need no key on this machine, and then get none", async () => {
    openServer.respond(() => ({ body: chatStream(plainAnswer) }))
    const provider = makeChatCompletions({
      name: "ollama",
      baseUrl: `${openServer.url}/v1`,
      modelInfo: makeModelCatalog().lookup
    })
    expect((await collect(provider)).outcome._tag).toBe("Completed")
    expect(openServer.requests[0]?.headers["authorization"]).toBeUndefined()
  })
})

describe("Messages servers", () => {
  it("get the key in either header", async () => {
    server.respond(() => ({ body: messagesStream(plainAnswer) }))
    const config = {
      name: "messages",
      baseUrl: server.url,
      apiKey: Redacted.make(serverKey),
      modelInfo: makeModelCatalog().lookup
    }
    expect((await collect(makeMessages(config))).outcome._tag).toBe("Completed")
    expect(server.requests[0]?.headers["authorization"]).toBe(`Bearer ${serverKey}`)
    expect((await collect(makeMessages({ ...config, keyHeader: "x-api-key" }))).outcome._tag).toBe("Completed")
    expect(server.requests[1]?.headers["x-api-key"]).toBe(serverKey)
    expect(server.requests[1]?.headers["authorization"]).toBeUndefined()
  })

  it.each([
    ["end_turn", "end_turn"],
    ["max_tokens", "max_output_tokens"],
    ["stop_sequence", "stop_sequence"],
    ["pause_turn", "pause_turn"],
    ["model_context_window_exceeded", "context_window"],
    ["something_new", "end_turn"]
  ] as const)("that stop with %s have %s as the reason", async (wire, reason) => {
    const body = messagesStreamOf(plainAnswer, [{ start: { type: "text", text: "hi" }, deltas: [] }], {
      stop_reason: wire
    })
    expect((await through("messages", body)).outcome).toEqual({ _tag: "Completed", stopReason: reason })
  })

  it("that never give a stop reason have not finished", async () => {
    const body = messagesStream(plainAnswer).replace('"stop_reason":"end_turn"', '"stop_reason":null')
    expect((await through("messages", body)).outcome).toMatchObject({ _tag: "Failed", error: { kind: "truncated" } })
  })

  it("are billed for what they began even if they break off", async () => {
    const body = messagesStream(toolAnswer)
    server.respond(() => ({ body, cutAfter: 900 }))
    const got = await collect(formats[2]?.provider(server.url) ?? (undefined as never))
    expect(got.outcome._tag).toBe("Failed")
    expect(got.usage).toMatchObject({ input_tokens: 900, cached_input_tokens: 512 })
  })
})

describe("Responses servers", () => {
  it("may stream text and list no output", async () => {
    const body = responseEvents([
      ...fragments("hello there").map((delta) => ({ type: "response.output_text.delta", delta })),
      { type: "response.completed", response: { id: "r", output: [] } }
    ])
    const got = await through("responses", body)
    expect(got.outcome._tag).toBe("Completed")
    expect(got.final).toMatchObject({ content: "hello there", items: [{ type: "text", text: "hello there" }] })
  })

  it("may list output and stream nothing", async () => {
    const item = {
      id: "m",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "whole", annotations: [] }]
    }
    const got = await through(
      "responses",
      responseEvents([{ type: "response.completed", response: { id: "r", output: [item] } }])
    )
    expect(got.final?.content).toBe("whole")
  })

  it("get the conversation as the cache key", async () => {
    server.respond(() => ({ body: responsesStream(plainAnswer) }))
    await collect(
      formats[0]?.provider(server.url) ?? (undefined as never),
      sampleRequest({ metadata: { conversationId: "conv_1" } })
    )
    expect(server.requests[0]?.body).toMatchObject({ prompt_cache_key: "conv_1", store: false, stream: true })
  })
})

describe("connections", () => {
  it("are used again after an answer is complete", async () => {
    for (const format of formats) {
      server.respond(() => ({ body: format.stream(plainAnswer) }))
      const provider = format.provider(server.url)
      const messages = [user("hi"), assistant([{ type: "text", text: "x" }]), user("go")]
      for (let round = 0; round < 3; round++)
        expect((await collect(provider, sampleRequest({ messages }))).outcome._tag).toBe("Completed")
      await server.idle()
    }
  })

  it("are closed by the drain limit if the server keeps them open", async () => {
    for (const format of formats.filter((candidate) => candidate.name !== "chat")) {
      server.respond(() => ({ body: format.stream(plainAnswer), ending: "stall" }))
      expect((await collect(format.provider(server.url))).outcome._tag).toBe("Completed")
      await server.idle()
    }
  })
})
