// Goal: whatever a provider sends, the turn ends in a typed rune, the conversation stays usable and the next request is
// one the provider takes. Method: the real runtime through the real SDKs against a server that speaks the three wire
// formats and misbehaves on cue.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type Exchange, type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type WorldOptions } from "../support/runtime/World.ts"
import { expectWellFormed } from "../support/runtime/wellFormed.ts"

const worlds = useWorlds()
let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const calls = (...list: ReadonlyArray<readonly [id: string, name: string, text: string]>): Answer => ({
  ...plainAnswer,
  text: "I will look.",
  calls: list.map(([id, name, text]) => ({ id, name, arguments: text })),
  stop: "calls"
})

const ran: Array<unknown> = []
const tools = [
  tool("look", async (input) => {
    ran.push(input)
    return "seen"
  }),
  effectTool("write", async (input) => {
    ran.push(input)
    return "written"
  })
]

describe.each(formats)("over $name", (format) => {
  const whole = (answer: Answer): Exchange => ({ body: format.stream(answer), pieceBytes: 97 })
  const refusal = (status: number, kind: "rate_limit" | "overloaded" | "server", headers = {}): Exchange => ({
    status,
    headers: { "content-type": "application/json", ...headers },
    body: format.errorBody("busy", kind)
  })

  /** Answers in this order, the last one for ever. */
  const script = (...exchanges: ReadonlyArray<Exchange>): void => {
    ran.length = 0
    let next = 0
    server.respond(() => exchanges[Math.min(next++, exchanges.length - 1)]!)
  }

  const open = async (more: WorldOptions = {}, config = {}): Promise<Talk> => {
    const world = await worlds.open({ serverUrl: server.url, tools, runFork: fastRunFork(100), ...more })
    return world.create({ model: `${format.name}/test-model`, ...config })
  }

  const turn = async (...exchanges: ReadonlyArray<Exchange>): Promise<{ talk: Talk; end: AnyRune }> => {
    script(...exchanges)
    const talk = await open()
    await talk.post("please")
    return { talk, end: await talk.turns() }
  }

  /** One more message to a provider that is well again. */
  const staysUsable = async (talk: Talk): Promise<void> => {
    const before = [...server.requests]
    script(whole(plainAnswer))
    await talk.post("and now?")
    const ends = talk.kinds.filter((kind) => /^turn\.(completed|interrupted|error)$/.test(kind)).length
    expect(await talk.turns(ends + 1)).toMatchObject({
      kind: "turn.completed",
      payload: { final_output: plainAnswer.text }
    })
    expectWellFormed([...before, ...server.requests])
    expect(talk.world.crashes).toEqual([])
    expect((await talk.state()).session.status).toBe("active")
  }

  const errorsOf = (talk: Talk) => talk.of("tool.result").map(({ payload }) => payload.error?.code)

  it("a turn with two tools is asked for, run and told, and its usage counted", async () => {
    const { talk, end } = await turn(
      whole(calls(["c1", "look", '{"a":1}'], ["c2", "write", '{"b":2}'])),
      whole(plainAnswer)
    )
    expect(end).toMatchObject({
      kind: "turn.completed",
      payload: { usage: { input_tokens: 240, output_tokens: 68 } }
    })
    expect(ran).toEqual([{ a: 1 }, { b: 2 }])
    expect(server.requests.length).toBe(2)
    await staysUsable(talk)
  })

  it.each([
    ["is no JSON", '{"path": "a', "invalid_arguments"],
    ["is no object", "[1,2]", "invalid_arguments"],
    ["has __proto__ keys", '{"__proto__":{"admin":true},"a":1}', "invalid_arguments"],
    ["nests 10,000 deep", `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`, "invalid_arguments"]
  ])("a call whose argument text %s gets a typed result and does not run", async (_name, text, code) => {
    const { talk, end } = await turn(whole(calls(["c1", "look", text], ["c2", "look", "{}"])), whole(plainAnswer))
    expect(end.kind).toBe("turn.completed")
    expect(errorsOf(talk)).toEqual([code, undefined])
    expect(ran).toEqual([{}])
    await staysUsable(talk)
  })

  it("10 MB of arguments get a typed result and do not run", async () => {
    const huge = { body: format.stream(calls(["c1", "look", `{"a":"${"x".repeat(10_000_000)}"}`])) }
    script(huge, whole(plainAnswer))
    const talk = await open({ runFork: fastRunFork(1) })
    await talk.post("please")
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(errorsOf(talk)).toEqual(["arguments_too_large"])
    expect(ran).toEqual([])
    expect(JSON.stringify(talk.runes).length).toBeLessThan(50_000)
    await staysUsable(talk)
  })

  it("lone surrogates are replaced, in arguments as in text", async () => {
    const odd = { ...calls(["c1", "look", '{"a":"\\ud83d"}']), text: "half a \ud83d face" }
    const { talk, end } = await turn({ body: format.stream(odd).replaceAll("\ud83d", "\\ud83d") }, whole(plainAnswer))
    expect(end.kind).toBe("turn.completed")
    expect(ran).toEqual([{ a: "\ufffd" }])
    await staysUsable(talk)
  })

  it("a tool that does not exist is told so", async () => {
    const { talk, end } = await turn(whole(calls(["c1", "no_such_tool", "{}"])), whole(plainAnswer))
    expect(end.kind).toBe("turn.completed")
    expect(errorsOf(talk)).toEqual(["unknown_tool"])
    await staysUsable(talk)
  })

  it("the same call id twice is two calls with two results", async () => {
    const { talk, end } = await turn(
      whole(calls(["same", "look", '{"n":1}'], ["same", "look", '{"n":2}'])),
      whole(calls(["same", "look", '{"n":3}'])),
      whole(plainAnswer)
    )
    expect(end.kind).toBe("turn.completed")
    expect(talk.of("tool.result").map(({ payload }) => payload.call_id)).toEqual(["call_1", "call_2", "call_3"])
    await staysUsable(talk)
  })

  it("a stream that is cut is asked for again, and what had come is kept", async () => {
    const body = format.stream({ ...plainAnswer, text: "0123456789".repeat(20) })
    const cutAfter = Math.floor(body.length * 0.7)
    const { talk, end } = await turn({ body, cutAfter, ending: "reset" }, { body, cutAfter }, whole(plainAnswer))
    expect(end).toMatchObject({ kind: "turn.completed", payload: { final_output: plainAnswer.text } })
    expect(talk.of("turn.retry_scheduled").length).toBe(2)
    const partials = talk.of("turn.model_requested").map(({ payload }) => payload.partial_output ?? "")
    expect(partials[0]).toBe("")
    for (const partial of partials.slice(1)) expect("0123456789".repeat(20).startsWith(partial)).toBe(true)
    expect(partials[2]?.length).toBeGreaterThan(20)
    await staysUsable(talk)
  })

  it("a call in a stream that is cut never runs", async () => {
    const body = format.stream(calls(["c1", "write", '{"path":"a","content":"b"}']))
    for (const share of [0.5, 0.7, 0.85]) {
      const { talk } = await turn({ body, cutAfter: Math.floor(body.length * share) }, whole(plainAnswer))
      expect(ran).toEqual([])
      expect(talk.of("tool.call")).toEqual([])
      await staysUsable(talk)
    }
  })

  it("an error inside a stream that began well is tried again", async () => {
    const { talk, end } = await turn({ body: format.errorInStream(plainAnswer) }, whole(plainAnswer))
    expect(end.kind).toBe("turn.completed")
    expect(talk.of("turn.retry_scheduled").map(({ payload }) => payload.error_type)).toEqual(["overloaded"])
    await staysUsable(talk)
  })

  it.each([
    [429, "rate_limit", "rate_limited"],
    [529, "overloaded", "overloaded"],
    [500, "server", "server_error"],
    [503, "overloaded", "overloaded"]
  ] as const)("a storm of %i ends in a typed error after the attempts that are allowed", async (status, kind, type) => {
    script(refusal(status, kind))
    const talk = await open({}, { limits: { max_llm_retries: 2 } })
    await talk.post("please")
    const end = await talk.turns()
    expect(end).toMatchObject({ kind: "turn.error", payload: { retryable: true, source: "harness" } })
    expect([type, "server_error", "overloaded"]).toContain((end.payload as { error_type: string }).error_type)
    expect(server.requests.length).toBe(3)
    expect(talk.of("turn.model_requested").map(({ payload }) => payload.attempt)).toEqual([1, 2, 3])
    await staysUsable(talk)
  })

  it("an outage is waited out, with longer and longer pauses, and the turn goes on", async () => {
    const down = Array.from({ length: 7 }, () => refusal(503, "overloaded"))
    const { talk, end } = await turn(...down, whole(plainAnswer))
    expect(end).toMatchObject({ kind: "turn.completed", payload: { final_output: plainAnswer.text } })
    expect(server.requests.length).toBe(8)
    const pauses = talk.of("turn.retry_scheduled").map(({ payload }) => payload.delay_ms)
    expect(pauses.length).toBeGreaterThanOrEqual(7)
    for (const [index, least] of [250, 1000, 2000, 4000].entries()) expect(pauses[index]).toBeGreaterThanOrEqual(least)
    expect(talk.of("turn.retry_scheduled")[0]?.payload).toMatchObject({ provider: format.name })
    await staysUsable(talk)
  })

  it("an outage that lasts longer than the conversation waits ends in a typed error", async () => {
    script(refusal(503, "overloaded"))
    const talk = await open({}, { limits: { llm_retry_ms: 3000 } })
    await talk.post("please")
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "overloaded", retryable: true }
    })
    expect(server.requests.length).toBe(4)
    await staysUsable(talk)
  })

  it("a person can retry at once what waits, or stop it", async () => {
    script(refusal(429, "rate_limit", { "retry-after": "600" }), whole(plainAnswer))
    const talk = await open()
    await talk.post("please")
    await talk.until("turn.retry_scheduled")
    expect(talk.of("turn.retry_scheduled")[0]?.payload.delay_ms).toBe(600_000)
    await talk.submit({ _tag: "RetryTurn" })
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    script(refusal(429, "rate_limit", { "retry-after": "600" }), whole(plainAnswer))
    await talk.post("once more")
    await talk.until("turn.retry_scheduled", 2)
    await talk.submit({ _tag: "InterruptTurn", reason: "enough" })
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.interrupted" })
    await staysUsable(talk)
  })

  it("a pause that is asked for is kept, and one that is too long ends the turn", async () => {
    const { talk, end } = await turn(refusal(429, "rate_limit", { "retry-after": "7" }), whole(plainAnswer))
    expect(end.kind).toBe("turn.completed")
    expect(talk.of("turn.retry_scheduled")[0]?.payload.delay_ms).toBe(7000)
    await staysUsable(talk)
    const long = await turn(refusal(429, "rate_limit", { "retry-after": "7000" }))
    expect(long.end).toMatchObject({ kind: "turn.error", payload: { error_type: "rate_limited" } })
    expect(server.requests.length).toBe(1)
  })

  it("as many attempts are made as the conversation asks for", async () => {
    for (const [retries, requests] of [
      [0, 1],
      [4, 5]
    ] as const) {
      script(refusal(500, "server"))
      const talk = await open({}, { limits: { max_llm_retries: retries } })
      await talk.post("please")
      expect((await talk.turns()).kind).toBe("turn.error")
      expect(server.requests.length).toBe(requests)
    }
  })

  it("a stream that stalls is given up after the idle limit, and its slot is free", async () => {
    const body = format.stream(plainAnswer)
    const { talk, end } = await turn(
      { body, cutAfter: Math.floor(body.length / 2), ending: "stall" },
      whole(plainAnswer)
    )
    expect(end.kind).toBe("turn.completed")
    expect(talk.of("turn.retry_scheduled").map(({ payload }) => payload.error_type)).toEqual(["timeout"])
    await server.idle()
    await staysUsable(talk)
  })

  it("a provider that never answers is given up after the limit for calls", async () => {
    script({ body: "", neverAnswer: true })
    const talk = await open({}, { limits: { llm_timeout_ms: 60_000, max_llm_retries: 1 } })
    await talk.post("please")
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "timeout", message: "no complete answer within 60000 ms" }
    })
    expect(server.requests.length).toBe(2)
    await server.idle()
    await staysUsable(talk)
  })

  it("an answer that is larger than the log can hold ends in a typed error", async () => {
    const { talk, end } = await turn({ body: format.stream({ ...plainAnswer, text: "y".repeat(1_500_000) }) })
    expect(end).toMatchObject({ kind: "turn.error", payload: { error_type: "malformed_response", retryable: false } })
    expect(server.requests.length).toBe(1)
    await staysUsable(talk)
  })

  const wrongKey: Exchange = {
    status: 401,
    headers: { "content-type": "application/json" },
    body: format.errorBody("no", "server")
  }

  it("a wrong key asks for a person, and the turn goes on once somebody says so", async () => {
    script(wrongKey, wrongKey, whole(plainAnswer))
    const talk = await open()
    await talk.post("please")
    await talk.until("turn.retry_scheduled")
    const waiting = await talk.state()
    expect(attentionOf(waiting)).toBe("awaiting_input")
    expect(attentionItems(waiting)).toMatchObject([{ type: "provider", expires_ms: null }])
    expect(attentionItems(waiting)[0]?.title).toMatch(/needs a person \(authentication\)/)
    expect(server.requests.length).toBe(1)
    await talk.submit({ _tag: "RetryTurn" })
    await talk.until("turn.retry_scheduled", 2)
    await talk.submit({ _tag: "RetryTurn" })
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(attentionItems(await talk.state())).toEqual([])
    await staysUsable(talk)
  })

  it("a wrong key is said to be wrong, once, where nobody is to be waited for", async () => {
    const world = await worlds.open({ serverUrl: server.url, tools })
    script(wrongKey)
    const talk = await world.create({ model: `${format.name}/test-model`, limits: { llm_retry_ms: 0 } })
    await talk.post("please")
    expect(await talk.turns()).toMatchObject({ payload: { error_type: "authentication", retryable: false } })
    expect(server.requests.length).toBe(1)
    await staysUsable(talk)
  })

  it("a model that nobody has heard of, or that cannot be one, is said so without asking anybody", async () => {
    script(whole(plainAnswer))
    const talk = await open({}, {})
    await talk.submit({ _tag: "UpdateConfig", changes: { model: "nobody/model" } })
    await talk.post("please")
    expect(await talk.turns()).toMatchObject({ kind: "turn.error", payload: { error_type: "invalid_request" } })
    await talk.submit({ _tag: "UpdateConfig", changes: { model: "not a model" } })
    await talk.post("please")
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.error", payload: { error_type: "invalid_request" } })
    expect(server.requests.length).toBe(0)
    await talk.submit({ _tag: "UpdateConfig", changes: { model: `${format.name}/test-model` } })
    await staysUsable(talk)
  })
})
