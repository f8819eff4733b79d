// Goal: whatever a model writes as a tool call, the answer ends in a typed outcome, nothing crashes, and the next
// request is well-formed. Method: a battery of bad calls and random mutations of good ones through every wire format
// and its real SDK, each followed by a second request with the error as the tool's result; the parser alone, harder.
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ArgumentsFailure, parseArguments } from "#src/provider/Arguments.ts"
import { assistant, toolResults, user } from "#src/provider/Canonical.ts"
import { limits } from "#src/provider/ProviderLimits.ts"
import { count, reportCount } from "../support/counts.ts"
import { type Answer, type AnswerCall, toolAnswer } from "../support/provider-server/Answer.ts"
import { type Collected, collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import { messagesStreamOf } from "../support/provider-server/Messages.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { seedFor } from "../support/seed.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

/** Enough for the counts of the soak. */
const longMs = 900_000

const answerWith = (...calls: ReadonlyArray<AnswerCall>): Answer => ({ ...toolAnswer, calls })

const played = async (format: Format, answer: Answer): Promise<Collected> => {
  server.respond(() => ({ body: format.stream(answer) }))
  return collect(format.provider(server.url))
}

/** Sends the answer back with an error per call and returns what went over the wire. */
const nextRequest = async (format: Format, got: Collected): Promise<string> => {
  const results = got.calls.map((call) => ({
    type: "tool_result" as const,
    call_id: call.call_id,
    output: call.parsed._tag === "Unusable" ? call.parsed.message : "ok",
    is_error: true
  }))
  const messages = [user("go"), assistant(got.final?.items ?? []), toolResults(results)]
  server.respond(() => ({ body: format.stream({ ...toolAnswer, calls: [], stop: "end" }) }))
  const next = await collect(format.provider(server.url), sampleRequest({ messages }))
  expect(next.outcome._tag).toBe("Completed")
  return server.requests[0]?.bodyText ?? ""
}

const depth = 10_000

const battery: ReadonlyArray<readonly [name: string, written: string, reason: ArgumentsFailure | undefined]> = [
  ["text instead of JSON", "please run ls", "invalid_json"],
  ["an unclosed object", '{"path":"a"', "invalid_json"],
  ["a trailing comma", '{"path":"a",}', "invalid_json"],
  ["two objects", '{"a":1}{"b":2}', "invalid_json"],
  ["an array", "[1,2]", "not_an_object"],
  ["a bare string", '"ls"', "not_an_object"],
  ["null", "null", "not_an_object"],
  ["nothing at all", "", undefined],
  [`nesting ${depth} deep`, `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`, "too_deep"],
  [`${depth} open brackets`, "[".repeat(depth), "too_deep"],
  ["a __proto__ key", '{"__proto__":{"admin":true}}', "forbidden_key"],
  ["a __proto__ key in disguise", '{"a":[{"\\u005f_proto__":1}]}', "forbidden_key"],
  ["a lone surrogate", '{"text":"\\ud800 and \\udc00"}', undefined],
  ["a NUL", '{"text":"a\\u0000b"}', undefined]
]

describe.each(formats)("$name answers", (format) => {
  it.each(battery)("with %s end in a typed outcome and a sound next request", async (_, written, reason) => {
    const got = await played(format, answerWith({ id: "call_1", name: "bash", arguments: written }))
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "tool_calls" })
    expect(got.calls).toHaveLength(1)
    expect(got.calls[0]?.parsed).toMatchObject(reason === undefined ? { _tag: "Parsed" } : { _tag: "Unusable", reason })
    const body = await nextRequest(format, got)
    expect(body.isWellFormed()).toBe(true)
    expect(body).not.toMatch(/\\ud[89ab][0-9a-f]{2}/i)
    expect(body.length).toBeLessThan(20_000)
  })

  it("with 10 MB of arguments are delivered as unusable, and little of them is kept", async () => {
    const written = `{"content":"${"x".repeat(10 * 1024 * 1024)}"}`
    const got = await played(format, answerWith({ id: "call_1", name: "write_file", arguments: written }))
    expect(got.calls[0]?.parsed).toMatchObject({ _tag: "Unusable", reason: "too_large" })
    expect(got.calls[0]?.arguments.length).toBe(limits.unusableArgumentsCharsKept)
    expect((await nextRequest(format, got)).length).toBeLessThan(20_000)
  })

  it("that never stop growing fail as malformed", async () => {
    const half = "y".repeat(limits.answerCharsMax / 2)
    const calls = ["a", "b", "c"].map((id) => ({ id, name: "write_file", arguments: half }))
    const text = format.name === "responses" ? half.repeat(3) : ""
    const got = await played(format, { ...answerWith(...calls), text })
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "malformed_response" } })
    expect(got.calls).toEqual([])
  })

  it("with a tool nobody has are delivered under its name, and go back under a legal one", async () => {
    const got = await played(format, answerWith({ id: "call_1", name: "rm -rf /", arguments: "{}" }))
    expect(got.calls[0]?.tool_name).toBe("rm -rf /")
    expect(await nextRequest(format, got)).toContain('"rm_-rf__"')
  })

  it("with the same id twice become two calls", async () => {
    const call = { id: "call_1", name: "bash", arguments: "{}" }
    const got = await played(format, answerWith(call, call))
    expect(new Set(got.calls.map((one) => one.call_id)).size).toBe(2)
    await nextRequest(format, got)
  })

  it("with too many calls fail as malformed", async () => {
    const calls = Array.from({ length: limits.toolCallsMax + 1 }, (_, index) => ({
      id: `c${index}`,
      name: "a",
      arguments: "{}"
    }))
    const got = await played(format, answerWith(...calls))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "malformed_response" } })
  })

  it("cut by the output limit never make a half-written call executable", async () => {
    for (const written of ["", '{"path":', '{"path":"a"}']) {
      const got = await played(format, {
        ...answerWith({ id: "call_1", name: "rm", arguments: written }),
        stop: "length"
      })
      expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "max_output_tokens" })
      const executable = got.calls[0]?.parsed._tag === "Parsed"
      expect(executable).toBe(written === '{"path":"a"}' || (format.name === "responses" && written === ""))
    }
  })

  it(
    "with random damage always end, and the next request is sound",
    async () => {
      const runs = count("damaged answers per format", { fast: 300, soak: 10_000 })
      const calls = fc.array(
        fc.record({
          id: fc.oneof(fc.constantFrom("", "call_1", "a b", "\ud800"), fc.string({ maxLength: 8 })),
          name: fc.oneof(fc.constantFrom("bash", "", "\udc00"), fc.string({ maxLength: 8 })),
          arguments: fc.oneof(
            fc.json(),
            fc.string(),
            fc.json().map((json) => json.slice(0, -1))
          )
        }),
        { minLength: 1, maxLength: 4 }
      )
      await fc.assert(
        fc.asyncProperty(calls, async (damaged) => {
          const got = await played(format, answerWith(...damaged))
          expect(got.outcome._tag).toBe("Completed")
          expect(got.calls).toHaveLength(damaged.length)
          await nextRequest(format, got)
        }),
        { numRuns: runs, seed: seedFor(`damaged ${format.name} answers`) }
      )
      reportCount("malformed model answers", runs)
    },
    longMs
  )
})

describe("Responses items the wire itself calls incomplete", () => {
  it("are not executable", async () => {
    const responses = formats.find((format) => format.name === "responses")
    if (responses === undefined) throw new Error("no such format")
    const stream = responses.stream({ ...answerWith({ id: "c", name: "rm", arguments: "" }), stop: "length" })
    server.respond(() => ({
      body: stream.replaceAll('"status":"completed","arguments"', '"status":"incomplete","arguments"')
    }))
    const got = await collect(responses.provider(server.url))
    expect(got.calls[0]?.parsed).toMatchObject({ _tag: "Unusable", reason: "incomplete" })
  })
})

describe("events of an unknown shape", () => {
  it.each([
    ["responses", 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta"}\n\n'],
    ["chat", 'data: {"choices":[{"index":0,"delta":{"tool_calls":[null]}}]}\n\n'],
    [
      "messages",
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}\n\n'
    ]
  ] as const)("in a %s stream end the call as malformed", async (name, body) => {
    const format = formats.find((candidate) => candidate.name === name)
    server.respond(() => ({ body }))
    const got = await collect(format?.provider(server.url) ?? (Promise.reject(new Error("no such format")) as never))
    expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "malformed_response" } })
  })

  it("that are new to us are passed over", async () => {
    const messages = formats.find((format) => format.name === "messages")
    if (messages === undefined) throw new Error("no such format")
    const stream = messagesStreamOf(
      toolAnswer,
      [
        { start: { type: "hologram", data: [1] }, deltas: [{ type: "hologram_delta", x: 1 }] },
        { start: { type: "text", text: "hi" }, deltas: [] }
      ],
      { stop_reason: "end_turn" }
    )
    server.respond(() => ({ body: `event: brand_new\ndata: {"type":"brand_new"}\n\n${stream}` }))
    const got = await collect(messages.provider(server.url))
    expect(got.outcome).toEqual({ _tag: "Completed", stopReason: "end_turn" })
    expect(got.text).toBe("hi")
    expect(got.final?.items).toMatchObject([
      { type: "opaque", json: '{"type":"hologram","data":[1]}' },
      { type: "text", text: "hi" }
    ])
  })

  it("or an answer that is no event stream at all is malformed", async () => {
    for (const format of formats) {
      server.respond(() => ({ body: "<html>hello</html>", headers: { "content-type": "text/html" } }))
      const got = await collect(format.provider(server.url))
      expect(got.outcome).toMatchObject({
        _tag: "Failed",
        error: { kind: "malformed_response", message: "the answer is text/html, not an event stream" }
      })
    }
  })

  it("or broken JSON in the middle of a stream is malformed", async () => {
    for (const format of formats) {
      const body = format
        .stream(toolAnswer)
        .replace('"sequence_number":5', "sequence")
        .replace('"index":1', "index")
        .replace('"index":0,"delta":{"content"', "{{")
      server.respond(() => ({ body, ending: "stall" }))
      const got = await collect(format.provider(server.url))
      expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind: "malformed_response" } })
    }
    await server.idle()
  })
})

const stringsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => [key, ...stringsIn(member)])
}

describe("parseArguments", () => {
  it(
    "never throws, and what it accepts is a plain object without traps",
    () => {
      const runs = count("argument texts", { fast: 5000, soak: 500_000 })
      const fragment = fc.constantFrom(
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        "\\",
        "__proto__",
        "a",
        "1",
        "\\ud800",
        "\ud800",
        "null",
        " "
      )
      const anyText = fc.oneof(
        fc.json(),
        fc.string({ unit: "binary" }),
        fc.array(fragment, { maxLength: 30 }).map((parts) => parts.join(""))
      )
      fc.assert(
        fc.property(anyText, (written) => {
          const outcome = parseArguments(written)
          if (outcome._tag === "Unusable") return
          expect(Object.getPrototypeOf(outcome.value)).toBe(Object.prototype)
          expect(stringsIn(outcome.value).every((text) => text.isWellFormed())).toBe(true)
          expect(Object.hasOwn(outcome.value, "__proto__")).toBe(false)
        }),
        { numRuns: runs, seed: seedFor("parseArguments") }
      )
      reportCount("argument texts parsed", runs)
    },
    longMs
  )
})
