// Goal: the published client, against the real server, has every rune once however often the server is killed, and what
// it posted happened once. Method: a server process killed at random moments of a turn that streams, several tails and
// posts over all of it; in the end the tails are compared with the log.
// Verifies: INV-RESUME-NO-DUPLICATES, INV-RESUME-NO-GAPS, G7
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type AnyRune, Client } from "#src/client/Client.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"

let place = ""
let scenario = ""
let server: ServerProcess

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-client-"))
  scenario = join(place, "slow.json")
  const slow = { name: "slow", replies: [{ play: [{ text: "word ".repeat(60), chunk_chars: 5, delay_ms: 10 }] }] }
  writeFileSync(scenario, JSON.stringify(slow))
  server = await startProcess(join(place, "data"))
})

afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

const connect = (): Promise<Client> =>
  Client.connect({ endpoint: async () => ({ url: server.url, token: server.token }) })

/** Every rune of a tail until this many turns have ended. */
const follow = async (client: Client, id: string, turns: number): Promise<ReadonlyArray<AnyRune>> => {
  const runes: Array<AnyRune> = []
  let ended = 0
  for await (const item of client.tail(id)) {
    if (!("rune" in item)) continue
    runes.push(item.rune)
    ended += item.rune.kind === "turn.completed" ? 1 : 0
    if (ended === turns) return runes
  }
  return runes
}

describe("the client and a server that is killed", () => {
  it("end with exactly the log, and every message once", async () => {
    const kills = count("servers killed under the client", { fast: 4, soak: 40 })
    const random = randomFrom(seedFor("servers killed under the client"))
    const client = await connect()
    const readers = await Promise.all([connect(), connect(), connect()])
    const { conversation_id: id } = await client.call("conversation.create", { model: `scripted/${scenario}` })
    const tails = readers.map((reader) => follow(reader, id, kills))
    for (let kill = 0; kill < kills; kill += 1) {
      const posting = client.call("message.post", { conversation_id: id, content: `message ${kill}` })
      // Somewhere between the post that nobody has answered yet and the end of the turn it begins.
      await new Promise((resolve) => setTimeout(resolve, random() * 500))
      await server.end("SIGKILL")
      server = await startProcess(join(place, "data"))
      await posting
    }
    const [first = [], ...others] = await Promise.all(tails)
    expect(first.map((rune) => rune.event_id)).toEqual(first.map((_, index) => index + 1))
    for (const other of others) expect(other).toEqual(first)
    expect(await follow(client, id, kills)).toEqual(first)
    const inputs = first
      .filter(({ kind }) => kind === "turn.queued" || kind === "turn.started")
      .map((rune) => String((rune.payload as { input: unknown }).input))
    expect(new Set(inputs)).toEqual(new Set(Array.from({ length: kills }, (_, kill) => `message ${kill}`)))
    const finals = first.filter(({ kind }) => kind === "turn.completed")
    expect(finals).toHaveLength(kills)
    await Promise.all([client, ...readers].map((one) => one.close()))
    reportCount("servers killed under the client", kills)
  })

  it("hear of what needs a person, also after it came back", async () => {
    const client = await connect()
    const { conversation_id: id } = await client.call("conversation.create", {
      model: "scripted/demo",
      workspace: place
    })
    const updates = client.attention()
    expect((await updates.next()).value).toHaveProperty("items")
    await client.call("message.post", { conversation_id: id, content: "go" })
    const needs = async (): Promise<unknown> => {
      for await (const update of updates) {
        const items = "items" in update ? update.items : [update.changed]
        const found = items.find((item) => item.conversation_id === id && JSON.stringify(item).includes("approval"))
        if (found !== undefined) return found
      }
      return undefined
    }
    expect(await needs()).toMatchObject({ conversation_id: id })
    await client.close()
  })
})
