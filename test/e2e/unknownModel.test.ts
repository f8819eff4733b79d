// Goal: a model that nobody has described is asked, and what it refuses is learned; a message too long for its model is sent
// in part, with all of it where a tool can read it. Method: the real runtime through the real SDKs against a server in the
// three wire formats that counts characters and refuses in the words of the real ones.
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer, type WireFormat } from "../support/provider-server/Server.ts"
import { useWorlds } from "../support/runtime/World.ts"
import { problemsOf } from "../support/wire-rules/Rules.ts"

const worlds = useWorlds()
let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const words = `begin ${"some words of many ".repeat(5_500)} end`
const sha256 = createHash("sha256").update(words).digest("hex")

/** How the real ones say it: with the number in prose, or without one. */
const refusals: { readonly [F in WireFormat]: string } = {
  chat: "This model's maximum context length is 8192 tokens. However, your messages resulted in 35000 tokens.",
  responses: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  messages: "prompt is too long: 35000 tokens > 8192 maximum"
}

describe.each(formats)("a model over $name that nobody has described", (format) => {
  const model = `${format.name}/nobody-knows`
  const kept = new Map<string, string>()
  const open = (bodyCharsMax: number) => {
    kept.clear()
    server.respond(({ bodyText }) =>
      bodyText.length <= bodyCharsMax
        ? { body: format.stream(plainAnswer) }
        : {
            status: 400,
            headers: { "content-type": "application/json" },
            body: format.errorBody(refusals[format.name], "too_long")
          }
    )
    return worlds.open({
      serverUrl: server.url,
      keepOutput: async (text) => {
        const hash = createHash("sha256").update(text).digest("hex")
        kept.set(hash, text)
        return { sha256: hash, bytes: Buffer.byteLength(text) }
      }
    })
  }

  it("is sent a first message of 100 KB, and answers", async () => {
    const talk = await (await open(1_000_000)).create({ model })
    await talk.post(words)
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]!.bodyText).toContain(words)
  })

  it("that refuses it is sent the beginning and the end, and is known from then on", async () => {
    const world = await open(90_000)
    const talk = await world.create({ model })
    await talk.post(words)
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(server.requests).toHaveLength(2)
    const { bodyText } = server.requests[1]!
    expect(bodyText).toContain("begin some words")
    expect(bodyText).toContain("of many  end")
    expect(bodyText).toContain(`blob:${sha256}`)
    expect(kept.get(sha256)).toBe(words)
    expect(talk.of("turn.started")[0]!.payload.input).toBe(words)
    await talk.post("and now?")
    expect((await talk.turns(2)).kind).toBe("turn.completed")
    const other = await world.create({ model })
    await other.post(words)
    expect((await other.turns()).kind).toBe("turn.completed")
    expect(server.requests.map((request) => request.bodyText.length > 90_000)).toEqual([true, false, false, false])
    for (const request of server.requests) expect(problemsOf(request.format, request.bodyText)).toEqual([])
  })

  it("that has less room each time is asked for less each time, and the conversation is never lost", async () => {
    const world = await open(70_000)
    const talk = await world.create({ model })
    await talk.post(words)
    expect((await talk.turns()).kind).toBe("turn.completed")
    for (let turn = 2; turn <= 8; turn++) {
      await talk.post(words.slice(0, 20_000))
      expect((await talk.turns(turn)).kind).toBe("turn.completed")
    }
  })
})
