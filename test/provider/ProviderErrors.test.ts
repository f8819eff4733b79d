// Goal: every way a provider can refuse, fail or stall becomes one kind of the error table, with its pause and its
// retryability. Method: real HTTP answers through the real SDKs, plus the pure readers directly.
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { classify } from "#src/provider/Classify.ts"
import { type ErrorKind, errorKinds, errorTable } from "#src/provider/ProviderErrors.ts"
import { parseRetryAfterMs } from "#src/provider/RetryAfter.ts"
import { plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { chatChunk, chatDone } from "../support/provider-server/ChatCompletions.ts"
import { collect } from "../support/provider-server/Collect.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import { messagesError, messagesStreamOf } from "../support/provider-server/Messages.ts"
import { responseEvents, responsesFailed } from "../support/provider-server/Responses.ts"
import {
  type Exchange,
  type ProviderServer,
  serverKey,
  startProviderServer
} from "../support/provider-server/Server.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const json = { "content-type": "application/json" }

const failureOf = async (format: Format, exchange: Exchange) => {
  server.respond(() => exchange)
  const got = await collect(format.provider(server.url))
  if (got.outcome._tag !== "Failed") throw new Error(`expected a failure, got ${got.outcome._tag}`)
  expect(got.events).toEqual([])
  return got.outcome.error
}

const formatNamed = (name: string): Format => {
  const found = formats.find((format) => format.name === name)
  if (found === undefined) throw new Error(`no format ${name}`)
  return found
}

describe.each(formats)("$name refusals", (format) => {
  it.each([
    [429, "rate_limit", "rate_limited", true],
    [529, "overloaded", "overloaded", true],
    [503, "overloaded", "overloaded", true],
    [500, "server", "server_error", true],
    [502, "server", "server_error", true],
    [504, "server", "timeout", true],
    [403, "server", "authentication", false],
    [404, "server", "invalid_request", false],
    [413, "server", "context_exceeded", false],
    [422, "server", "invalid_request", false]
  ] as const)("with status %i (%s) are %s", async (status, body, kind, retryable) => {
    const error = await failureOf(format, { status, headers: json, body: format.errorBody("Sorry.", body) })
    expect(error).toMatchObject({ kind, retryable, status, message: "Sorry.", provider: format.name })
    expect(server.requests).toHaveLength(1)
  })

  it("that mean the context is full are told apart from other bad requests", async () => {
    const message = "prompt is too long: 210000 tokens > 200000 maximum"
    const full = await failureOf(format, { status: 400, headers: json, body: format.errorBody(message, "too_long") })
    expect(full).toMatchObject({ kind: "context_exceeded", retryable: false })
    const bad = await failureOf(format, { status: 400, headers: json, body: '{"error":{"message":"bad tool schema"}}' })
    expect(bad).toMatchObject({ kind: "invalid_request", retryable: false, message: "bad tool schema" })
  })

  it("carry the pause the provider asks for", async () => {
    const at = (headers: { readonly [name: string]: string }) =>
      failureOf(format, {
        status: 429,
        headers: { ...json, ...headers },
        body: format.errorBody("Slow down.", "rate_limit")
      })
    expect((await at({ "retry-after": "7" })).retryAfterMs).toBe(7000)
    expect((await at({ "retry-after-ms": "1500" })).retryAfterMs).toBe(1500)
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()
    const byDate = (await at({ "retry-after": inTenSeconds })).retryAfterMs ?? 0
    expect(byDate).toBeGreaterThan(8000)
    expect(byDate).toBeLessThanOrEqual(10_000)
    expect((await at({ "retry-after": "soon" })).retryAfterMs).toBeUndefined()
    expect((await at({ "x-should-retry": "false" })).retryable).toBe(false)
  })

  it("without a body, or with one that is no JSON, are still typed", async () => {
    expect(await failureOf(format, { status: 500, body: "" })).toMatchObject({ kind: "server_error" })
    expect(await failureOf(format, { status: 502, body: "<html>Bad Gateway</html>" })).toMatchObject({
      kind: "server_error"
    })
  })

  it("of the key are authentication errors that do not repeat the key", async () => {
    server.respond(() => ({ body: format.stream(plainAnswer) }))
    const wrongKey = `${serverKey}x`
    const got = await collect(format.provider(server.url, { apiKey: Redacted.make(wrongKey) }))
    expect(got.outcome).toMatchObject({
      _tag: "Failed",
      error: { kind: "authentication", retryable: false, status: 401 }
    })
    expect(JSON.stringify(got.outcome)).not.toContain(wrongKey)
  })

  it("of the connection are connection errors", async () => {
    const got = await collect(format.provider("http://127.0.0.1:9"))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "connection", retryable: true } })
    server.respond(() => ({ body: "", ending: "reset", cutAfter: 0 }))
    const reset = await collect(format.provider(server.url))
    expect(reset.outcome).toMatchObject({ _tag: "Failed", error: { retryable: true } })
  })

  it("say which request it was", async () => {
    const error = await failureOf(format, { status: 500, headers: json, body: format.errorBody("Oops", "server") })
    expect(error.providerRequestId).toMatch(/^req_/)
  })
})

describe("answers that end in a refusal", () => {
  it("by Anthropic's safety system are refusals with their explanation", async () => {
    const stop = {
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: "cyber", explanation: "Not this." }
    }
    server.respond(() => ({ body: messagesStreamOf(toolAnswer, [], stop) }))
    const got = await collect(formatNamed("messages").provider(server.url))
    expect(got.outcome).toMatchObject({
      _tag: "Failed",
      error: { kind: "refusal", message: "Not this.", code: "cyber", retryable: false }
    })
    expect(got.usage?.input_tokens).toBe(toolAnswer.inputTokens)
  })

  it.each([
    [
      "refusal",
      "length",
      chatChunk(plainAnswer, { refusal: "I cannot help." }) + chatChunk(plainAnswer, {}, "stop") + chatDone
    ],
    ["content_filter", "filter", chatChunk(plainAnswer, {}, "content_filter") + chatDone],
    ["truncated", "abort", chatChunk(plainAnswer, {}, "abort") + chatDone],
    ["server_error", "error", chatChunk(plainAnswer, {}, "error") + chatDone]
  ] as const)("by a chat server are %s errors (%s)", async (kind, _, body) => {
    expect((await failureOf(formatNamed("chat"), { body })).kind).toBe(kind)
  })

  it.each([
    ["server_error", "server_error"],
    ["rate_limit_exceeded", "rate_limited"],
    ["invalid_prompt", "invalid_request"],
    ["context_length_exceeded", "context_exceeded"],
    ["insufficient_quota", "quota_exceeded"],
    ["bio_policy", "content_filter"]
  ] as const)("by a failed response with code %s are %s errors", async (code, kind) => {
    const error = await failureOf(formatNamed("responses"), { body: responsesFailed(plainAnswer, code, "No.") })
    expect(error).toMatchObject({ kind, code, message: "No.", retryable: errorTable[kind].retryable })
  })

  it("by OpenAI's filter are content_filter errors", async () => {
    const response = { id: "resp_1", output: [], incomplete_details: { reason: "content_filter" }, usage: null }
    const body = responseEvents([{ type: "response.incomplete", response }])
    expect((await failureOf(formatNamed("responses"), { body })).kind).toBe("content_filter")
  })

  it("by an error nested in an error event keep its code", async () => {
    const body = responseEvents([
      { type: "error", error: { type: "tokens", code: "rate_limit_exceeded", message: "TPM" } }
    ])
    expect(await failureOf(formatNamed("responses"), { body })).toMatchObject({ kind: "rate_limited", message: "TPM" })
    const gateway = `data: ${JSON.stringify({ error: { code: 429, message: "upstream is busy" } })}\n\n`
    expect(await failureOf(formatNamed("chat"), { body: gateway })).toMatchObject({
      kind: "rate_limited",
      message: "upstream is busy"
    })
  })

  it("by the spending limit are not retried", async () => {
    const body = messagesError("rate_limit_error", "limit").replace(
      '"message"',
      '"details":{"error_code":"enforced_spend_limit_reached"},"message"'
    )
    expect(await failureOf(formatNamed("messages"), { status: 429, headers: json, body })).toMatchObject({
      kind: "quota_exceeded",
      retryable: false
    })
  })
})

describe("the error table", () => {
  it("has the kinds that were agreed", () => {
    const agreed: ReadonlyArray<ErrorKind> = [
      "rate_limited",
      "overloaded",
      "server_error",
      "authentication",
      "invalid_request",
      "context_exceeded",
      "truncated",
      "timeout",
      "connection",
      "refusal",
      "content_filter",
      "malformed_response"
    ]
    expect(errorKinds).toEqual(expect.arrayContaining([...agreed]))
  })

  it("retries nothing that would fail the same way again", () => {
    const final = errorKinds.filter((kind) => !errorTable[kind].retryable)
    expect(final).toEqual([
      "quota_exceeded",
      "authentication",
      "invalid_request",
      "context_exceeded",
      "refusal",
      "content_filter"
    ])
  })
})

describe("parseRetryAfterMs", () => {
  const read = (value: string, nowMs = 0) =>
    parseRetryAfterMs({ get: (name) => (name === "retry-after" ? value : null) }, nowMs)

  it("reads seconds, fractions and dates, and nothing else", () => {
    expect(read("3")).toBe(3000)
    expect(read("0.25")).toBe(250)
    expect(read("Thu, 01 Jan 1970 00:00:05 GMT", 2000)).toBe(3000)
    expect(read("Thu, 01 Jan 1970 00:00:05 GMT", 9000)).toBe(0)
    expect([read("-1"), read("later"), read(""), read("1e9"), read("9".repeat(40))]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined
    ])
    expect(parseRetryAfterMs(undefined, 0)).toBeUndefined()
  })
})

describe("classify", () => {
  it("cuts texts that are too long and makes them sendable", () => {
    const error = classify({ provider: "p", codes: [], message: `\ud800${"x".repeat(10_000)}`, nowMs: 0 })
    expect(error.message).toHaveLength(2000)
    expect(error.message.isWellFormed()).toBe(true)
  })
})
