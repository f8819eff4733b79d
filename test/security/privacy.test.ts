// Goal: what is secret leaves the server by no door and for no role, what is internal reaches no viewer, and nothing of one
// conversation reaches the model, the runes or the readers of another. Method: a log with marked runes of each
// visibility, read by every means there is; conversations side by side whose every model request is recorded.
// Verifies: INV-SECRET-PRIVACY, INV-MEMORY-PRIVACY
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import { snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { agent, Scribe } from "../store/support.ts"
import { reportCount } from "../support/counts.ts"
import type { Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"
import { openStore } from "../support/store/openStore.ts"

const { directory, leaveUnchecked, open } = useServers()

const roles = ["viewer", "operator", "admin"] as const
const tokens = roles.map((role) => ({ name: role, role, token: `${role}-${"0".repeat(20)}` }))
const tokenOf = (role: string): string => tokens.find(({ name }) => name === role)?.token ?? ""

/** A finished conversation with one rune of each visibility that says so. */
const plant = async (data: string): Promise<{ readonly id: string; readonly head: number }> => {
  const scribe = new Scribe().begin({ title: "planted" }).turn("hello", "an answer")
  for (const visibility of ["public", "internal", "secret"] as const) {
    const said = `marked-${visibility}`
    const error = { code: "planted", message: said, retryable: false, source: "orchestrator" } as const
    scribe.add("system.error", error, { visibility, agent_id: agent })
    const before = scribe.runes.length
    scribe.turn(said, said)
    for (let at = before; at < scribe.runes.length; at += 1) scribe.runes[at] = { ...scribe.runes[at]!, visibility }
  }
  const store = await openStore({ directory: data, snapshotShape })
  await store.runes.appendNow(scribe.conversationId, scribe.runes)
  await store.close()
  return { id: scribe.conversationId, head: scribe.runes.length }
}

/** Everything that one role gets to see of the conversation, by every means. */
const seenBy = async (server: TestServer, role: string, id: string): Promise<ReadonlyMap<string, string>> => {
  const seen = new Map<string, string>()
  const socket = await server.connect(tokenOf(role))
  const headers = { authorization: `Bearer ${tokenOf(role)}` }
  const follow = async (name: string, fields: Json): Promise<void> => {
    const { sub } = await socket.ok("subscribe", fields)
    const isOf = (frame: Json): boolean => frame["sub"] === sub
    await socket.until(() => socket.pushed.some((frame) => isOf(frame) && "caught_up" in frame))
    seen.set(name, JSON.stringify(socket.pushed.filter(isOf)))
  }
  for (const view of ["runes", "state_events", "agent_events"])
    await follow(`socket ${view}`, { conversation_id: id, after: 0, view })
  for (const visibility of ["public", "internal"])
    await follow(`socket ${visibility}`, { conversation_id: id, after: 0, visibility })
  await follow("everything", { conversation_id: "*", after: 0 })
  for (const op of ["conversation.get", "agent.list", "approval.list"])
    seen.set(op, JSON.stringify(await socket.ok(op, { conversation_id: id })))
  for (const op of ["conversation.list", "attention.list", "stats"]) seen.set(op, JSON.stringify(await socket.ok(op)))
  for (const query of ["", "?visibility=internal", "?visibility=secret", "?kinds=system.error,turn.started"]) {
    const url = `${server.url}/v1/conversations/${id}/runes${query}`
    seen.set(`http ${query}`, await (await fetch(url, { headers })).text())
  }
  const ending = new AbortController()
  const stream = await fetch(`${server.url}/v1/conversations/${id}/events`, { headers, signal: ending.signal })
  let events = ""
  for await (const chunk of stream.body ?? []) {
    events += Buffer.from(chunk).toString()
    if (events.includes("caught_up") || events.includes("marked-public")) break
  }
  ending.abort()
  seen.set("events", events)
  return seen
}

const hits = (seen: ReadonlyMap<string, string>, mark: string): ReadonlyArray<string> =>
  [...seen].flatMap(([name, said]) => (said.includes(mark) ? [name] : []))

describe("a rune that is secret", () => {
  it("leaves the server by no door and for no role, and one that is internal reaches no viewer", async () => {
    const data = directory()
    leaveUnchecked(data)
    const { head, id } = await plant(data)
    const server = await open({ dataDirectory: data, tokens })
    let looked = 0
    for (const role of roles) {
      const seen = await seenBy(server, role, id)
      looked += seen.size
      expect(hits(seen, "marked-secret"), role).toEqual([])
      // The search would find one: what may be seen is.
      expect(hits(seen, "marked-public"), role).toEqual(expect.arrayContaining(["socket runes", "everything", "http "]))
      if (role === "viewer") expect(hits(seen, "marked-internal")).toEqual([])
      else expect(hits(seen, "marked-internal")).toEqual(expect.arrayContaining(["socket runes", "http "]))
    }
    const socket = await server.connect(tokenOf("admin"))
    for (const fields of [{ visibility: "secret" }, { visibility: ["secret"] }, { visibility: "SECRET" }])
      expect((await socket.error("subscribe", { conversation_id: id, after: 0, ...fields })).code).toBe("bad_request")
    const forked = await socket.ok("conversation.fork", { conversation_id: id, at_event_id: head })
    const copied = await seenBy(server, "admin", String(forked["conversation_id"]))
    expect(hits(copied, "marked-secret")).toEqual([])
    reportCount("ways by which a secret rune was looked for", looked + copied.size)
  })
})

describe("what an agent was told", () => {
  it("is in no request, rune or answer of another conversation", async () => {
    const requests: Array<string> = []
    const provider = createServer((request, response) => {
      void text(request).then((body) => {
        requests.push(body)
        response.writeHead(200, { "content-type": "text/event-stream" })
        const part = (choice: object): string =>
          `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, ...choice }] })}\n\n`
        response.write(part({ delta: { role: "assistant", content: "noted" } }))
        response.end(`${part({ delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`)
      })
    })
    await once(provider.listen(0, "127.0.0.1"), "listening")
    try {
      const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
      const server = await open({ providers: { local: { adapter: "openai-chat", baseUrl, keyVariable: null } } })
      const socket = await server.connect()
      const talkers = await Promise.all(
        Array.from({ length: 8 }, async (_, at) => ({
          id: await socket.create({ model: "local/m" }),
          mark: `remember-${at}-mark`
        }))
      )
      const said = async (id: string, content: string, turns: number): Promise<void> => {
        await socket.ok("message.post", { conversation_id: id, content })
        const over = () =>
          socket.runes().filter((rune) => rune["conversation_id"] === id && rune["kind"] === "turn.completed")
        await socket.until(() => over().length >= turns)
      }
      await socket.ok("subscribe", { conversation_id: "*", after: 0 })
      // Side by side, so that whatever is shared has its chance.
      for (let turn = 1; turn <= 3; turn += 1)
        await Promise.all(talkers.map(({ id, mark }) => said(id, `${mark}: what do you know?`, turn)))
      const marksIn = (body: string): ReadonlyArray<string> => [...new Set(body.match(/remember-\d-mark/g))]
      expect(requests).toHaveLength(24)
      for (const body of requests) expect(marksIn(body)).toHaveLength(1)
      for (const { id, mark } of talkers) {
        expect(marksIn(JSON.stringify(runesOf(socket, id)))).toEqual([mark])
        expect(marksIn(JSON.stringify(await socket.ok("conversation.get", { conversation_id: id })))).not.toContain(
          talkers.find((other) => other.id !== id)?.mark
        )
      }
      reportCount("model requests searched for another conversation", requests.length)
    } finally {
      provider.closeAllConnections()
      provider.close()
    }
  })
})

const runesOf = (socket: Socket, id: string): ReadonlyArray<Json> =>
  socket.runes().filter((rune) => rune["conversation_id"] === id)
