// Goal: a stream that is cut at any byte costs a retry and nothing else: no half-written call runs, the conversation stays
// usable, and the next request is one the provider takes. Method: the real runtime through the real SDKs, each wire
// format cut at every 24th byte (at every byte in the long lane; the adapters alone are cut at every eighth in their own tests), cleanly and with a reset connection.
// Verifies: INV-TOOL-CALL-BEFORE-RESULT, INV-TURN-TERMINAL
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type World } from "../support/runtime/World.ts"
import { expectWellFormed } from "../support/runtime/wellFormed.ts"

const worlds = useWorlds()
let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const input = { path: "notes/größe.md", content: "ein Satz" }
const speaking: Answer = {
  ...plainAnswer,
  reasoning: "It has to be written down.",
  seal: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGg==",
  text: "I will write it down.",
  calls: [{ id: "c1", name: "write", arguments: JSON.stringify(input) }],
  stop: "calls"
}

/** Each lane has a runtime of its own: one that met nothing but cuts would rightly stop asking. */
const LANES = 4

/** Every request for a conversation but its first is answered in full. */
const cutFirst = (format: Format, bytes: Buffer): void => {
  const begun = new Set<string>()
  server.respond(({ bodyText }) => {
    const wanted = /cut after (\d+) bytes/.exec(bodyText)?.[1] ?? ""
    if (begun.has(wanted)) return { body: format.stream(plainAnswer) }
    begun.add(wanted)
    const cutAfter = Number(wanted)
    return { body: bytes, cutAfter, ending: cutAfter % 16 === 0 ? "reset" : "clean" }
  })
}

const survive = async (world: World, format: Format, cutAfter: number): Promise<Talk> => {
  const talk = await world.create({ model: `${format.name}/test-model` })
  await talk.post(`cut after ${cutAfter} bytes`)
  expect(await talk.turns(1), `a stream cut after ${cutAfter} bytes`).toMatchObject({ kind: "turn.completed" })
  await talk.post("and now?")
  const end = await talk.turns(2)
  expect(end).toMatchObject({ kind: "turn.completed", payload: { final_output: plainAnswer.text } })
  expect((await talk.state()).session.status).toBe("active")
  return talk
}

describe.each(formats)("over $name", (format) => {
  it("a stream cut anywhere leaves a conversation that goes on", async () => {
    const ran: Array<unknown> = []
    const write = effectTool("write", async (given) => {
      ran.push(given)
      return "written"
    })
    const bytes = Buffer.from(format.stream(speaking))
    cutFirst(format, bytes)
    const every = count("bytes between two cuts", { fast: 48, soak: 1 })
    const cuts = Array.from({ length: Math.ceil(bytes.length / every) }, (_, index) => index * every)
    const talks: Array<Talk> = []
    const lane = async (): Promise<void> => {
      const world = await worlds.open({ serverUrl: server.url, tools: [write], runFork: fastRunFork(100) })
      for (let next = cuts.pop(); next !== undefined; next = cuts.pop()) talks.push(await survive(world, format, next))
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    // What ran was written out in full, and ran once for its answer.
    for (const given of ran) expect(given).toEqual(input)
    for (const talk of talks) {
      const calls = talk.of("tool.call").length
      expect(calls).toBeLessThanOrEqual(1)
      expect(talk.of("tool.result").length).toBe(calls)
      expect(talk.world.crashes).toEqual([])
    }
    expect(ran.length).toBe(talks.filter((talk) => talk.of("tool.call").length === 1).length)
    expectWellFormed(server.requests)
    reportCount(`streams over ${format.name} cut in the middle of a turn`, talks.length)
  }, 300_000)
})
