// Goal: what a provider must get back unchanged (signed thinking, encrypted reasoning, phases) goes into the next
// request byte for byte, and to nobody else. Method: one call against the local server, its items appended to the
// history, a second call; the recorded bodies are compared.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { assistant, type Message, toolResults, user } from "#src/provider/Canonical.ts"
import type { ModelProvider } from "#src/provider/Provider.ts"
import { plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { type Collected, collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { messagesStreamOf } from "../support/provider-server/Messages.ts"
import { responsesStreamOf } from "../support/provider-server/Responses.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const providerOf = (name: string): ModelProvider => {
  const format = formats.find((candidate) => candidate.name === name)
  if (format === undefined) throw new Error(`no format ${name}`)
  return format.provider(server.url)
}

const nextHistory = (got: Collected): ReadonlyArray<Message> => [
  user("Please read the file."),
  assistant(got.final?.items ?? []),
  toolResults(
    got.calls.map((call) => ({ type: "tool_result", call_id: call.call_id, output: `result of ${call.tool_name}` }))
  )
]

/** Body of the second of two calls, the first of which gave `stream`. */
const secondBody = async (provider: ModelProvider, stream: string, model = "test-model"): Promise<unknown> => {
  server.respond(() => ({ body: stream }))
  const first = await collect(provider)
  expect(first.outcome._tag).toBe("Completed")
  await collect(provider, sampleRequest({ model, messages: nextHistory(first) }))
  return server.requests.at(-1)?.body
}

const awkward = 'Ünï\u2028cödé "quotes" \\ back\\\\slash \u0000 </script> 𝕏'
const signature = `${"EuYBCkQYAiJA".repeat(40)}+/==`

describe("Anthropic thinking", () => {
  const stream = messagesStreamOf(
    toolAnswer,
    [
      {
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          { type: "thinking_delta", thinking: awkward.slice(0, 7) },
          { type: "thinking_delta", thinking: awkward.slice(7) },
          { type: "signature_delta", signature }
        ]
      },
      { start: { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4a" }, deltas: [] },
      { start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "Reading." }] },
      {
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [{ type: "signature_delta", signature: "c2Vjb25k" }]
      },
      {
        start: { type: "tool_use", id: "toolu_01", name: "read_file", input: {}, caller: { type: "direct" } },
        deltas: [{ type: "input_json_delta", partial_json: '{"path":"a"}' }]
      }
    ],
    { stop_reason: "tool_use" }
  )

  it("returns with its signature, in place, unchanged", async () => {
    expect(await secondBody(providerOf("messages"), stream)).toMatchObject({
      messages: [
        { role: "user" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: awkward, signature },
            { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4a" },
            { type: "text", text: "Reading." },
            { type: "thinking", thinking: "", signature: "c2Vjb25k" },
            { type: "tool_use", id: "toolu_01", name: "read_file", input: { path: "a" } }
          ]
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_01", content: "result of read_file" }] }
      ]
    })
  })

  it("survives being stored as JSON in between", async () => {
    server.respond(() => ({ body: stream }))
    const provider = providerOf("messages")
    const first = await collect(provider)
    const stored: ReadonlyArray<Message> = JSON.parse(JSON.stringify(nextHistory(first)))
    await collect(provider, sampleRequest({ messages: nextHistory(first) }))
    const direct = server.requests.at(-1)?.bodyText
    await collect(provider, sampleRequest({ messages: stored }))
    expect(server.requests.at(-1)?.bodyText).toBe(direct)
  })

  it("stays away from another model", async () => {
    const body = JSON.stringify(await secondBody(providerOf("messages"), stream, "other-model"))
    expect(body).not.toContain(signature)
    expect(body).not.toContain("redacted_thinking")
    expect(body).toContain("Reading.")
    expect(body).toContain("toolu_01")
  })

  it("stays away from another provider", async () => {
    server.respond((request) => ({
      body: request.format === "messages" ? stream : (formats[0]?.stream(plainAnswer) ?? "")
    }))
    const first = await collect(providerOf("messages"))
    await collect(providerOf("responses"), sampleRequest({ messages: nextHistory(first) }))
    const body = server.requests.at(-1)?.bodyText ?? ""
    expect(body).not.toContain(signature)
    expect(body).toContain('"call_id":"toolu_01"')
  })
})

describe("OpenAI reasoning", () => {
  const reasoning = {
    id: "rs_1",
    type: "reasoning",
    summary: [{ type: "summary_text", text: awkward }],
    encrypted_content: `gAAAA${signature}`
  }
  const call = {
    id: "fc_1",
    type: "function_call",
    status: "completed",
    call_id: "call_1",
    name: "bash",
    arguments: '{"command":"ls"}'
  }
  const message = {
    id: "msg_1",
    type: "message",
    status: "completed",
    role: "assistant",
    phase: "commentary",
    content: [{ type: "output_text", text: "Looking.", annotations: [], logprobs: [] }]
  }

  it("returns encrypted, in place, unchanged, with the phase of the text", async () => {
    const body = await secondBody(providerOf("responses"), responsesStreamOf(toolAnswer, [reasoning, message, call]))
    expect(body).toMatchObject({
      store: false,
      include: ["reasoning.encrypted_content"],
      input: [
        { role: "user" },
        reasoning,
        { role: "assistant", content: "Looking.", phase: "commentary" },
        { type: "function_call", call_id: "call_1", name: "bash", arguments: '{"command":"ls"}' },
        { type: "function_call_output", call_id: "call_1", output: "result of bash" }
      ]
    })
    expect(JSON.stringify(body)).toContain(JSON.stringify(reasoning))
  })

  it("is left out where nothing follows it and where it has no encrypted content", async () => {
    const bare = { ...reasoning, id: "rs_2", encrypted_content: null }
    const body = JSON.stringify(
      await secondBody(providerOf("responses"), responsesStreamOf(toolAnswer, [bare, message, call, reasoning]))
    )
    expect(body).not.toContain("rs_1")
    expect(body).not.toContain("rs_2")
  })

  it("stays away from another model", async () => {
    const stream = responsesStreamOf(toolAnswer, [reasoning, message, call])
    expect(JSON.stringify(await secondBody(providerOf("responses"), stream, "other"))).not.toContain("rs_1")
  })
})

describe("Chat Completions reasoning", () => {
  it("returns under the name the server used", async () => {
    const stream = formats.find((format) => format.name === "chat")?.stream(toolAnswer) ?? ""
    expect(await secondBody(providerOf("chat"), stream)).toMatchObject({
      messages: [
        { role: "user" },
        { role: "assistant", reasoning_content: toolAnswer.reasoning },
        { role: "tool" },
        { role: "tool" }
      ]
    })
  })
})
