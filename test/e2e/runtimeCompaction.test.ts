// Goal: summing up never makes a model forget what it did. Method: the real runtime through the real SDKs against a
// server in the three wire formats, played by a model that pays an invoice whenever its request does not tell it that
// it was paid; payments are counted where they happen. The requests are checked as the real APIs would check them.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { limits as machineLimits } from "#src/machine/MachineLimits.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import {
  type Exchange,
  type ProviderServer,
  startProviderServer,
  type WireRequest
} from "../support/provider-server/Server.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds } from "../support/runtime/World.ts"
import { expectWellFormed } from "../support/runtime/wellFormed.ts"

const worlds = useWorlds()
let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const contextTokens = 4000
const charsPerToken = 3
const isSummary = ({ bodyText }: WireRequest): boolean => bodyText.includes("Sum up the conversation")
const toldPaid = ({ bodyText }: WireRequest): boolean => bodyText.includes("paid INV-7")

const call = (name: string, text: string): Answer => ({
  ...plainAnswer,
  text: "On it.",
  calls: [{ id: `c-${name}`, name, arguments: text }],
  stop: "calls"
})

let payments = 0
let page = "p"
const tools = [
  effectTool("pay", async () => {
    payments += 1
    return `paid INV-7 ${page}`
  }),
  tool("look", async () => page)
]

describe.each(formats)("over $name", (format) => {
  const whole = (answer: Answer): Exchange => ({ body: format.stream(answer) })
  const refusal = (status: number, kind: "overloaded" | "server" | "too_long"): Exchange => ({
    status,
    headers: { "content-type": "application/json" },
    body: format.errorBody(kind === "too_long" ? "prompt is too long: 9999 tokens > 4000 maximum" : "no", kind)
  })

  /** Pays unless it is told that it has, then looks so many times, then is done. */
  const sensible = (looks: number, summary: (index: number) => Exchange): void => {
    let looked = 0
    let summaries = 0
    payments = 0
    server.respond((request) => {
      if (isSummary(request)) return summary(summaries++)
      if (!toldPaid(request)) return whole(call("pay", '{"invoice":"INV-7"}'))
      return whole(looked++ < looks ? call("look", `{"page":${looked}}`) : plainAnswer)
    })
  }

  const open = async (config = {}): Promise<Talk> => {
    const models = { [`${format.name}/test-model`]: { contextTokens, maxOutputTokens: 200 } }
    const world = await worlds.open({ serverUrl: server.url, tools, models, runFork: fastRunFork(100) })
    return world.create({ model: `${format.name}/test-model`, ...config })
  }

  const vague = () => whole({ ...plainAnswer, text: "They talked about invoices." })

  it.each([
    ["fails once with 503", (index: number) => (index === 0 ? refusal(503, "overloaded") : vague())],
    [
      "breaks off once",
      (index: number) => (index === 0 ? { ...vague(), cutAfter: 40, ending: "reset" as const } : vague())
    ],
    ["is always refused", () => refusal(400, "server")],
    ["is always empty", () => whole({ ...plainAnswer, text: " " })],
    ["says nothing of the payment", vague]
  ])("a model whose summary %s pays once", async (_name, summary) => {
    page = "p".repeat(2500)
    sensible(12, summary)
    const talk = await open()
    await talk.post("Pay invoice INV-7, then look at twelve pages.")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(talk.of("turn.compacted").length).toBeGreaterThanOrEqual(2)
    expect(payments).toBe(1)
    const turns = server.requests.filter((request) => !isSummary(request))
    // The input of the running turn is in every request of it, word for word.
    for (const { bodyText } of turns) expect(bodyText).toContain("Pay invoice INV-7, then look at twelve pages.")
    for (const { bodyText } of server.requests)
      expect(bodyText.length).toBeLessThan(contextTokens * charsPerToken * 1.3)
    // Calls without the tools they are of are refused by some.
    for (const { body, bodyText } of server.requests) {
      if (/tool_use|tool_calls|function_call/.test(bodyText)) expect(body).toHaveProperty("tools")
    }
    expectWellFormed(server.requests)
  })

  it("an outage during a summary is waited out: no stand-in is made", async () => {
    page = "p".repeat(2500)
    sensible(6, (index) => (index < 5 ? refusal(503, "overloaded") : vague()))
    const talk = await open()
    await talk.post("Pay invoice INV-7.")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(talk.of("turn.retry_scheduled").length).toBeGreaterThanOrEqual(5)
    for (const { payload } of talk.of("turn.compacted")) expect(payload.summary).toBe("They talked about invoices.")
    expect(payments).toBe(1)
  })

  it("what is larger than the context is summed up in pieces that fit", async () => {
    page = "0123456789".repeat(4000)
    sensible(1, vague)
    const talk = await open()
    await talk.post("Pay invoice INV-7.")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(payments).toBe(1)
    const summaries = server.requests.filter(isSummary)
    expect(summaries.length).toBeGreaterThanOrEqual(8)
    for (const { bodyText } of server.requests)
      expect(bodyText.length).toBeLessThan(contextTokens * charsPerToken * 1.3)
    expectWellFormed(server.requests)
  })

  it("a summary that the model finds too large is asked for in smaller pieces", async () => {
    page = "p".repeat(2500)
    payments = 0
    let looked = 0
    server.respond((request) => {
      if (isSummary(request)) return request.bodyText.length > 6000 ? refusal(400, "too_long") : vague()
      if (!toldPaid(request)) return whole(call("pay", '{"invoice":"INV-7"}'))
      return whole(looked++ < 5 ? call("look", `{"page":${looked}}`) : plainAnswer)
    })
    const talk = await open()
    await talk.post("Pay invoice INV-7.")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(payments).toBe(1)
    for (const { payload } of talk.of("turn.compacted"))
      expect(payload.summary).toMatch(/^They talked about invoices\./)
  })

  it("a turn that has to be summed up before every call ends with a typed error", async () => {
    page = "x".repeat(30_000)
    payments = 0
    server.respond((request) => (isSummary(request) ? vague() : whole(call("look", "{}"))))
    const talk = await open()
    await talk.post("Look for ever.")
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "context_exceeded", retryable: false, message: expect.stringContaining("larger context") }
    })
    expect(talk.of("turn.compacted").length).toBe(machineLimits.compactionsInRowMax)
    const turns = server.requests.filter((request) => !isSummary(request))
    expect(turns.length).toBe(machineLimits.compactionsInRowMax + 1)
    server.respond((request) => (isSummary(request) ? vague() : whole(plainAnswer)))
    await talk.post("And now?")
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.completed" })
  })

  it("a summary that fails for as long as the conversation retries is made from the text", async () => {
    page = "p".repeat(2500)
    sensible(6, () => refusal(503, "overloaded"))
    const talk = await open({ limits: { max_llm_retries: 1 } })
    await talk.post("Pay invoice INV-7.")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed" })
    expect(payments).toBe(1)
    expect(talk.of("turn.compacted")[0]?.payload.summary).toMatch(/pay \{"invoice":"INV-7"\} → success: paid INV-7/)
  })
})
