// Goal: a stream that stops at any byte is never taken for a complete answer, and no half-written tool call comes out
// of it. Method: recorded shapes of all three wire formats through the real SDKs, cut after every 8th byte (every byte
// in the soak), once with a proper end of the response and once with a reset connection.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { type Answer, plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { type Collected, collect } from "../support/provider-server/Collect.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

/** Enough for every byte of the longest stream. */
const longMs = 900_000

const stride = count("bytes between cuts", { fast: 8, soak: 1 })

/** First byte count at which the terminal event has arrived as a whole line. */
const terminalAt = (format: Format, body: Buffer): number => {
  const marks = {
    responses: "event: response.completed\ndata: ",
    chat: '"finish_reason":"',
    messages: "event: message_stop\ndata: "
  }
  const line = body.indexOf("\n", body.indexOf(marks[format.name]) + marks[format.name].length)
  return line
}

const check = (got: Collected, cut: number, terminal: number): void => {
  const where = `cut after ${cut} bytes`
  if (got.outcome._tag === "Completed") {
    expect(cut, `${where} completed before its terminal event`).toBeGreaterThanOrEqual(terminal)
    return
  }
  expect(got.outcome, where).toMatchObject({ _tag: "Failed", error: { retryable: true } })
  expect(got.calls, where).toEqual([])
  expect(got.final, where).toBeUndefined()
  if (got.outcome._tag === "Failed") expect(["truncated", "connection"], where).toContain(got.outcome.error.kind)
}

const inGroups = async (cuts: ReadonlyArray<number>, run: (cut: number) => Promise<void>): Promise<void> => {
  for (let at = 0; at < cuts.length; at += 16) await Promise.all(cuts.slice(at, at + 16).map(run))
}

const cutEverywhere = async (format: Format, answer: Answer, ending: "clean" | "reset"): Promise<number> => {
  const body = Buffer.from(format.stream(answer))
  const terminal = terminalAt(format, body)
  const provider = format.provider(server.url)
  // The place of the cut travels in the request, so that many can be under way at once.
  server.respond((request) => ({ body, ending, cutAfter: Number(JSON.parse(request.bodyText).model) }))
  const cuts = Array.from({ length: Math.ceil(body.length / stride) }, (_, index) => index * stride)
  await inGroups(cuts, async (cut) => {
    const got = await collect(provider, { requestId: "req", model: String(cut), messages: [] })
    check(got, cut, terminal)
  })
  const whole = await collect(provider, { requestId: "req", model: String(body.length), messages: [] })
  expect(whole.outcome._tag === "Completed" || ending === "reset").toBe(true)
  return cuts.length
}

describe.each(formats)("$name streams", (format) => {
  it.each([
    ["text", plainAnswer, "clean"],
    ["text", plainAnswer, "reset"],
    ["tool calls", toolAnswer, "clean"],
    ["tool calls", toolAnswer, "reset"]
  ] as const)(
    "with %s are truncated wherever they are cut (%#)",
    async (_, answer, ending) => {
      const cuts = await cutEverywhere(format, answer, ending)
      expect(cuts).toBeGreaterThan(100)
      reportCount("model streams cut", cuts)
    },
    longMs
  )

  it("arrive the same in pieces of any size, also inside a character", async () => {
    const body = format.stream(toolAnswer)
    server.respond((request) => ({ body, pieceBytes: Number(JSON.parse(request.bodyText).model) }))
    const provider = format.provider(server.url)
    const whole = await collect(provider, { requestId: "req", model: "100000", messages: [] })
    for (const size of [1, 2, 3, 5, 64, 1021]) {
      const got = await collect(provider, { requestId: "req", model: String(size), messages: [] })
      expect({ ...got, final: got.final?.content }, `pieces of ${size}`).toEqual({
        ...whole,
        events: got.events,
        final: whole.final?.content
      })
    }
  })
})
