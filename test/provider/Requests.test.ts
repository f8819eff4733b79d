// Goal: whatever a history looks like, the request built from it is one the API accepts: no orphaned tool call, no
// result without its call, unique ids, nothing empty. Method: random canonical histories (calls without results,
// results without calls, doubled ids, odd characters, empty parts), each checked against the rules of each format.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { messagesBody } from "#src/provider/anthropic/MessagesRequest.ts"
import {
  type AssistantPart,
  assistant,
  type Message,
  type ModelRequest,
  toolResults,
  user
} from "#src/provider/Canonical.ts"
import { missingResult, wellFormedHistory } from "#src/provider/History.ts"
import { chatBody } from "#src/provider/openai/ChatRequest.ts"
import { responsesBody } from "#src/provider/openai/ResponsesRequest.ts"
import { count, reportCount } from "../support/counts.ts"
import { seedFor } from "../support/seed.ts"

const runs = count("histories per format", { fast: 1000, soak: 50_000 })

const ids = fc.constantFrom("call_1", "call_2", "call_3", "functions.bash:0", "id with space", "x".repeat(80), "")
const words = fc.constantFrom("", " ", "hello", "größe 👩‍👩‍👧", "\ud800", "lone \udc00 low", "a\u0000b")
const written = fc.constantFrom(
  "",
  "{}",
  '{"a":1}',
  "{",
  "[1]",
  "null",
  '{"__proto__":{}}',
  '{"s":"\\ud800"}',
  "not json",
  "[".repeat(500)
)

const thinking: AssistantPart = {
  type: "opaque",
  format: "anthropic.content_block",
  origin: "test/test-model",
  json: '{"type":"thinking","thinking":"hm","signature":"sig"}'
}
const reasoning: AssistantPart = {
  type: "opaque",
  format: "openai.response_item",
  origin: "test/test-model",
  json: '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}'
}
const foreign: AssistantPart = { type: "opaque", format: "scripted.reasoning", origin: "else/where", json: "{}" }

const assistantPart: fc.Arbitrary<AssistantPart> = fc.oneof(
  words.map((text) => ({ type: "text" as const, text })),
  fc.record({
    type: fc.constant("tool_call" as const),
    call_id: ids,
    tool_name: fc.constantFrom("bash", "no such tool!", ""),
    arguments: written
  }),
  fc.constantFrom(thinking, reasoning, foreign)
)

const message: fc.Arbitrary<Message> = fc.oneof(
  words.map(user),
  fc.array(assistantPart, { maxLength: 5 }).map(assistant),
  fc
    .array(
      fc.record({ type: fc.constant("tool_result" as const), call_id: ids, output: words, is_error: fc.boolean() }),
      { maxLength: 4 }
    )
    .map(toolResults)
)

const histories = fc.array(message, { maxLength: 12 })

const requestOf = (messages: ReadonlyArray<Message>): ModelRequest => ({
  requestId: "req",
  model: "test-model",
  messages
})

const info = { known: true, contextTokens: 1000, maxOutputTokens: 1000, thinking: "adaptive" } as const

type Row = Record<string, unknown>

const rows = (value: unknown): ReadonlyArray<Row> => value as ReadonlyArray<Row>

/** Every call is answered exactly once, directly after the message that made it, in its order. */
const expectAnswered = (calls: ReadonlyArray<unknown>, answers: ReadonlyArray<unknown>) =>
  expect(answers).toEqual(calls)

const expectSendable = (body: unknown) => {
  const json = JSON.stringify(body)
  expect(json.isWellFormed()).toBe(true)
  expect(/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(json.replaceAll('"signature":"sig"', ""))).toBe(false)
}

const checkMessages = (body: Row) => {
  const list = rows(body["messages"])
  expect(list[0]?.["role"]).toBe("user")
  const seen = new Set<unknown>()
  for (const [at, turn] of list.entries()) {
    const blocks = rows(turn["content"])
    expect(blocks.length).toBeGreaterThan(0)
    if (at > 0) expect(turn["role"]).not.toBe(list[at - 1]?.["role"])
    for (const block of blocks) if (block["type"] === "text") expect(String(block["text"]).trim()).not.toBe("")
    if (turn["role"] !== "assistant") {
      const results = blocks.filter((block) => block["type"] === "tool_result")
      expect(blocks.slice(0, results.length)).toEqual(results)
      const before = at === 0 ? [] : rows(list[at - 1]?.["content"])
      expectAnswered(
        before.filter((block) => block["type"] === "tool_use").map((block) => block["id"]),
        results.map((block) => block["tool_use_id"])
      )
      continue
    }
    expect(["thinking", "redacted_thinking"]).not.toContain(blocks.at(-1)?.["type"])
    for (const block of blocks.filter((candidate) => candidate["type"] === "tool_use")) {
      expect(String(block["id"])).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(String(block["name"])).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(typeof block["input"]).toBe("object")
      expect(Array.isArray(block["input"])).toBe(false)
      expect(seen.has(block["id"])).toBe(false)
      seen.add(block["id"])
    }
  }
  expect(list.at(-1)?.["role"]).toBe("user")
}

const checkResponses = (body: Row) => {
  const list = rows(body["input"])
  const calls: Array<unknown> = []
  let open: Array<unknown> = []
  for (const [at, item] of list.entries()) {
    if (item["type"] === "function_call") {
      calls.push(item["call_id"])
      open.push(item["call_id"])
      expect(typeof JSON.parse(String(item["arguments"]))).toBe("object")
    } else if (item["type"] === "function_call_output") {
      expect(item["call_id"]).toBe(open.shift())
    } else {
      // Whatever comes between a call and its result belongs to the same answer.
      if (item["role"] === "user") expect(open).toEqual([])
      if (item["type"] === "reasoning") expect(list[at + 1]).toBeDefined()
    }
  }
  expect(open).toEqual([])
  expect(new Set(calls).size).toBe(calls.length)
  open = []
}

const checkChat = (body: Row) => {
  const list = rows(body["messages"])
  const seen = new Set<unknown>()
  let open: Array<unknown> = []
  for (const item of list) {
    if (item["role"] === "tool") {
      expect(item["tool_call_id"]).toBe(open.shift())
      expect(item["content"]).not.toBe("")
      continue
    }
    expect(open).toEqual([])
    if (item["role"] !== "assistant") continue
    open = rows(item["tool_calls"] ?? []).map((call) => call["id"])
    for (const id of open) {
      expect(seen.has(id)).toBe(false)
      seen.add(id)
    }
    expect(item["content"] !== null || open.length > 0).toBe(true)
  }
  expect(open).toEqual([])
}

const forAll = (name: string, check: (messages: ReadonlyArray<Message>) => void) => {
  fc.assert(fc.property(histories, check), { numRuns: runs, seed: seedFor(name) })
  reportCount("random histories turned into requests", runs)
}

describe("requests from random histories", { timeout: 900_000 }, () => {
  it("are accepted by the rules of Messages", () => {
    forAll("Messages requests", (messages) => {
      const body = messagesBody(requestOf(messages), { provider: "test", info, eagerToolInput: true })
      checkMessages(body as unknown as Row)
      expectSendable(body)
    })
  })

  it("are accepted by the rules of Responses", () => {
    forAll("Responses requests", (messages) => {
      const body = responsesBody(requestOf(messages), { provider: "test", info, reasoningSummary: true })
      checkResponses(body as unknown as Row)
      expectSendable(body)
    })
  })

  it("are accepted by the rules of Chat Completions", () => {
    forAll("Chat requests", (messages) => {
      const options = {
        provider: "test",
        maxTokensField: "max_tokens",
        includeUsage: true,
        replayReasoning: true
      } as const
      const body = chatBody(requestOf(messages), options)
      checkChat(body as unknown as Row)
      expectSendable(body)
    })
  })

  it("come from a normal form that is its own normal form", () => {
    forAll("normal form", (messages) => {
      const once = wellFormedHistory(messages)
      expect(wellFormedHistory(once)).toEqual(once)
    })
  })
})

describe("a history that was interrupted", () => {
  const call = (call_id: string): AssistantPart => ({ type: "tool_call", call_id, tool_name: "bash", arguments: "{}" })

  it("gets a result for the call that has none", () => {
    expect(
      wellFormedHistory([
        user("go"),
        assistant([call("a"), call("b")]),
        toolResults([{ type: "tool_result", call_id: "b", output: "done" }])
      ])
    ).toEqual([
      user("go"),
      assistant([call("a"), call("b")]),
      toolResults([
        { type: "tool_result", call_id: "a", output: missingResult, is_error: true },
        { type: "tool_result", call_id: "b", output: "done" }
      ])
    ])
  })

  it("keeps a result that was recorded after a steering message, before that message", () => {
    expect(
      wellFormedHistory([
        user("go"),
        assistant([call("a")]),
        user("faster"),
        toolResults([{ type: "tool_result", call_id: "a", output: "done" }])
      ])
    ).toEqual([
      user("go"),
      assistant([call("a")]),
      toolResults([{ type: "tool_result", call_id: "a", output: "done" }]),
      user("faster")
    ])
  })

  it("drops a result whose call is gone", () => {
    expect(
      wellFormedHistory([
        user("go"),
        toolResults([{ type: "tool_result", call_id: "x", output: "lost" }]),
        assistant([{ type: "text", text: "ok" }])
      ])
    ).toEqual([user("go"), assistant([{ type: "text", text: "ok" }])])
  })
})

describe("the Messages request", () => {
  const options = { provider: "test", info, eagerToolInput: true }
  const tool = { name: "bash", description: "Runs a command.", parameters: { type: "object", properties: {} } }

  it("marks the stable ends for the cache, four at most", () => {
    const messages = [
      user("one"),
      assistant([{ type: "text", text: "two" }]),
      user("three"),
      assistant([{ type: "text", text: "four" }]),
      user("five")
    ]
    const body = messagesBody({ ...requestOf(messages), instructions: "Be brief.", tools: [tool] }, options)
    const marks = JSON.stringify(body).match(/cache_control/g) ?? []
    expect(marks).toHaveLength(3)
    expect(body.system).toEqual([{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }])
    expect(body.messages.at(-1)?.content).toEqual([
      { type: "text", text: "five", cache_control: { type: "ephemeral" } }
    ])
  })

  it("asks for fine-grained tool input unless told not to", () => {
    expect(messagesBody({ ...requestOf([user("x")]), tools: [tool] }, options).tools).toMatchObject([
      { eager_input_streaming: true }
    ])
    const plain = messagesBody({ ...requestOf([user("x")]), tools: [tool] }, { ...options, eagerToolInput: false })
    expect(JSON.stringify(plain)).not.toContain("eager_input_streaming")
  })

  it("thinks by effort, by budget or not at all, as the model can", () => {
    const ask = (effort: "low" | "none" | "minimal", thinkingOf: "adaptive" | "budget" | "none") =>
      messagesBody(
        { ...requestOf([user("x")]), reasoning: { effort }, maxOutputTokens: 9000 },
        { ...options, info: { ...info, thinking: thinkingOf } }
      )
    expect(ask("low", "adaptive")).toMatchObject({
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "low" }
    })
    expect(ask("minimal", "adaptive")).toMatchObject({ output_config: { effort: "low" } })
    expect(ask("none", "adaptive")).toMatchObject({ thinking: { type: "disabled" } })
    expect(ask("low", "budget")).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2048 } })
    expect(ask("low", "none").thinking).toBeUndefined()
  })

  it("leaves a thinking budget out in a tool loop that was begun without thinking", () => {
    const call: AssistantPart = { type: "tool_call", call_id: "a", tool_name: "bash", arguments: "{}" }
    const asked = (first: ReadonlyArray<AssistantPart>) =>
      messagesBody(
        { ...requestOf([user("x"), assistant([...first, call])]), reasoning: { effort: "low" }, maxOutputTokens: 9000 },
        { ...options, info: { ...info, thinking: "budget" } }
      ).thinking
    expect(asked([])).toBeUndefined()
    expect(asked([thinking])).toMatchObject({ type: "enabled" })
  })

  it("asks the model to go on when its own words are the last", () => {
    const body = messagesBody(requestOf([user("x"), assistant([{ type: "text", text: "half an ans" }])]), options)
    expect(body.messages.at(-1)).toMatchObject({ role: "user", content: [{ text: "Continue." }] })
  })

  it("sends a paused turn back as it is", () => {
    const search: AssistantPart = {
      ...thinking,
      json: '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}'
    } as AssistantPart
    const body = messagesBody(requestOf([user("x"), assistant([search])]), options)
    expect(body.messages.at(-1)).toMatchObject({ role: "assistant", content: [{ type: "server_tool_use" }] })
  })
})

describe("the other requests", () => {
  it("leave reasoning out for models that have none", () => {
    const body = responsesBody(requestOf([user("x")]), {
      provider: "test",
      info: { ...info, thinking: "none" },
      reasoningSummary: true
    })
    expect(body.include).toBeUndefined()
    expect(body.reasoning).toBeUndefined()
    expect(body.store).toBe(false)
  })

  it("name the output limit as the server wants it", () => {
    const options = { provider: "test", includeUsage: false, replayReasoning: true }
    const request = { ...requestOf([user("x")]), maxOutputTokens: 77 }
    expect(chatBody(request, { ...options, maxTokensField: "max_tokens" })).toMatchObject({ max_tokens: 77 })
    const official = chatBody(request, { ...options, maxTokensField: "max_completion_tokens" })
    expect(official).toMatchObject({ max_completion_tokens: 77 })
    expect(official.stream_options).toBeUndefined()
  })
})
