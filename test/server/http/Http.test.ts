// Goal: what curl users expect, and the feed for those who speak only HTTP. Method: the real server, fetch.
import { describe, expect, it } from "vitest"
import { limits } from "#src/wire/WireLimits.ts"
import { always, say, scenarios, step, use } from "../../support/runtime/scenarios.ts"
import { tool } from "../../support/runtime/tools.ts"
import type { Json } from "../../support/server/Socket.ts"
import { type TestServer, useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()

const ask = async (server: TestServer, path: string, options: RequestInit = {}) => {
  const headers = {
    authorization: `Bearer ${server.token}`,
    ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    ...(options.headers as Record<string, string> | undefined)
  }
  return fetch(`${server.url}${path}`, { ...options, headers })
}

const post = (server: TestServer, path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(server, path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), headers })

const json = async (response: Response): Promise<Json> => (await response.json()) as Json

/** A conversation with one finished turn. */
const talked = async (server: TestServer): Promise<string> => {
  const socket = await server.connect()
  const id = await socket.create({ title: "talk" })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "hello" })
  await socket.rune("turn.completed")
  return id
}

/** The events of a stream until so many have come. */
const events = async (response: Response, wanted: number): Promise<ReadonlyArray<Record<string, string>>> => {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ""
  const parsed = () =>
    text
      .split("\n\n")
      .slice(0, -1)
      .map((block) => Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2))))
  while (parsed().length < wanted) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return parsed()
}

describe("over HTTP", () => {
  it("tells its health to anybody, and everything else to who has the token", async () => {
    const server = await open()
    expect(await json(await fetch(`${server.url}/healthz`))).toEqual({ status: "ok", version: "0.0.0-test" })
    const paths = ["/metrics", "/v1/conversations", "/v1/conversations/conv_00000000", "/nothing"]
    for (const path of paths) expect((await fetch(`${server.url}${path}`)).status).toBe(401)
    expect((await ask(server, "/nothing")).status).toBe(404)
    expect((await ask(server, "/metrics", { method: "DELETE" })).status).toBe(405)
  })

  it("creates once per key, lists, and shows", async () => {
    const server = await open()
    const key = { "idempotency-key": "one" }
    const created = await post(server, "/v1/conversations", { title: "x", labels: { team: "a" } }, key)
    expect(created.status).toBe(201)
    const body = await json(created)
    expect(await json(await post(server, "/v1/conversations", { title: "x", labels: { team: "a" } }, key))).toEqual(
      body
    )
    expect((await post(server, "/v1/conversations", { title: "y" }, key)).status).toBe(409)
    const listed = await json(await ask(server, "/v1/conversations?label=team%3Da&limit=5"))
    expect(listed).toMatchObject({ items: [{ conversation_id: body["conversation_id"], title: "x" }] })
    const shown = await ask(server, `/v1/conversations/${body["conversation_id"]}`)
    expect(await json(shown)).toMatchObject({ title: "x", state: expect.any(String) })
    expect((await ask(server, "/v1/conversations/conv_00000000")).status).toBe(404)
    expect((await ask(server, "/v1/conversations?limit=ten")).status).toBe(400)
    expect((await ask(server, "/v1/conversations?limit=100000")).status).toBe(200)
    expect((await ask(server, "/v1/conversations?state=nonsense")).status).toBe(400)
  })

  it("answers any operation at /v1/rpc as a socket would", async () => {
    const server = await open()
    const id = await talked(server)
    const got = await post(server, "/v1/rpc", { id: "9", op: "conversation.get", conversation_id: id })
    expect(await json(got)).toMatchObject({ id: "9", ok: { turns: 1 } })
    const refused = await post(server, "/v1/rpc", { id: "9", op: "conversation.resume", conversation_id: id })
    expect(refused.status).toBe(409)
    expect(await json(refused)).toMatchObject({ id: "9", error: { code: "invalid_state" } })
    expect((await post(server, "/v1/rpc", { id: "9", op: "subscribe", conversation_id: id })).status).toBe(400)
    expect((await post(server, "/v1/rpc", "{")).status).toBe(400)
    expect((await post(server, "/v1/rpc", { id: "9", op: "stats" }, { "content-type": "text/plain" })).status).toBe(400)
    const large = await post(server, "/v1/rpc", `"${"x".repeat(limits.messageBytesMax)}"`).catch(() => undefined)
    if (large !== undefined) expect(large.status).toBe(429)
  })

  it("gives runes as JSON lines from a cursor", async () => {
    const server = await open()
    const id = await talked(server)
    const all = (await (await ask(server, `/v1/conversations/${id}/runes`)).text()).trim().split("\n")
    const idsOf = (lines: ReadonlyArray<string>) => lines.map((line) => (JSON.parse(line) as Json)["event_id"])
    expect(idsOf(all)).toEqual(all.map((_, index) => index + 1))
    const some = (await (await ask(server, `/v1/conversations/${id}/runes?after=2&limit=3`)).text()).trim().split("\n")
    expect(idsOf(some)).toEqual([3, 4, 5])
    for (const query of ["after=-1", "after=x", "after=99999", "limit=0"]) {
      expect((await ask(server, `/v1/conversations/${id}/runes?${query}`)).status, query).toBe(400)
    }
  })

  it("streams events that resume where the last one was", async () => {
    const server = await open()
    const id = await talked(server)
    const head = (await (await ask(server, `/v1/conversations/${id}/runes`)).text()).trim().split("\n").length
    const first = await events(await ask(server, `/v1/conversations/${id}/events`), head)
    const runes = first.filter(({ event }) => event === "rune")
    expect(runes.map(({ id: eventId }) => Number(eventId))).toEqual(runes.map((_, index) => index + 1))
    expect(runes).toHaveLength(head)
    const headers = { "last-event-id": "3" }
    const rest = await events(await ask(server, `/v1/conversations/${id}/events`, { headers }), head - 2)
    expect(rest.map(({ event }) => event)).toEqual([...Array.from({ length: head - 3 }, () => "rune"), "caught_up"])
    expect(Number(rest[0]!["id"])).toBe(4)
    const tail = await ask(server, `/v1/conversations/${id}/events?after=tail&kinds=turn.started`)
    const waiting = events(tail, 2)
    await post(server, "/v1/rpc", { id: "1", op: "message.post", conversation_id: id, content: "again" })
    expect((await waiting).map(({ event }) => event)).toEqual(["caught_up", "rune"])
  })

  it("counts transitions, tools, errors, runes and sockets for Prometheus", async () => {
    const server = await open({
      scenarios: scenarios({ look: [step(1, use("look", {})), always(say("seen"))] }),
      model: "scripted/look",
      tools: [tool("look", async () => "a view")]
    })
    await talked(server)
    const text = await (await ask(server, "/metrics")).text()
    expect(text).toMatch(/agent_state_transitions_total\{from="Ready",to="CallingLlm"\} 1/)
    expect(text).toMatch(/tool_run_duration_ms_count 1/)
    expect(text).toMatch(/^runes_total [1-9]/m)
    expect(text).toMatch(/^connections 1$/m)
    expect(text).toMatch(/^log_batches_total [1-9]/m)
    for (const line of text.trim().split("\n")) expect(line).toMatch(/^(# TYPE \w+ \w+|\w+(\{[^}]*\})? -?[0-9.e+]+)$/)
  })
})
