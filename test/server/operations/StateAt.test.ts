// Goal: a conversation of the past is what it was then. Method: what `conversation.get` said while it happened, beside what
// it says afterwards about the same event.
import { describe, expect, it } from "vitest"
import { always, say, scenarios, step, use } from "../../support/runtime/scenarios.ts"
import { tool } from "../../support/runtime/tools.ts"
import { useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()

describe("conversation.get at an event", () => {
  it("says of every moment what it said then", async () => {
    const server = await open({
      model: "scripted/work",
      scenarios: scenarios({ work: [step(1, say("Look."), use("look")), always(say("Done."))] }),
      tools: [tool("look", async () => "a sign")]
    })
    const socket = await server.connect()
    const id = await socket.create({ title: "past" })
    const then = new Map<unknown, unknown>()
    const note = async (): Promise<void> => {
      const said = await socket.ok("conversation.get", { conversation_id: id })
      then.set(said["last_event_id"], said)
    }
    await note()
    for (const content of ["one", "two", "three"]) {
      await socket.ok("subscribe", { conversation_id: id, after: "tail" })
      await socket.ok("message.post", { conversation_id: id, content })
      await note()
      await socket.rune("turn.completed")
      await note()
    }
    expect(then.size).toBeGreaterThan(3)
    for (const [at, said] of then)
      expect(await socket.ok("conversation.get", { conversation_id: id, at_event_id: at })).toEqual(said)
  })

  it("is the present for an event that is not there yet, and an error for a conversation that is not there", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create({})
    const now = await socket.ok("conversation.get", { conversation_id: id })
    expect(await socket.ok("conversation.get", { conversation_id: id, at_event_id: 9_999 })).toEqual(now)
    const missing = { conversation_id: "conv_00000000", at_event_id: 1 }
    expect((await socket.error("conversation.get", missing)).code).toBe("not_found")
  })
})
