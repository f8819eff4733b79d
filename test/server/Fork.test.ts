// Goal: a fork begins with nothing to do, whatever the original had under way, and its log says what was ended; looking at
// it starts nothing; asked to continue it goes on by itself. A restored conversation can be spoken to. Method: the real
// server in this process, a plain client, a tool that counts how often it pays.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, Gate, tool } from "../support/runtime/tools.ts"
import type { Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const { directory, open } = useServers()

const payload = (rune: Json | undefined): Json => (rune?.["payload"] ?? {}) as Json
const kindsOf = (runes: ReadonlyArray<Json>) => runes.map((rune) => String(rune["kind"]))

const pays = scenarios({
  pay: [step(1, use("pay")), step(2, say("paid"))],
  ask: [step(1, use("pay_asked")), step(2, say("paid"))],
  talk: [always(say("well"))]
})

/** Every way of looking at a conversation that the door has: operations, feeds, pages of HTTP. */
const lookAt = async ({ token, url }: TestServer, socket: Socket, id: unknown): Promise<void> => {
  const pages = [`/v1/conversations/${id}`, `/v1/conversations/${id}/runes`, "/v1/conversations?q=pay", "/metrics"]
  for (const page of [...pages, "/healthz"]) {
    const answer = await fetch(`${url}${page}`, { headers: { authorization: `Bearer ${token}` } })
    expect(answer.status, page).toBe(200)
    await answer.text()
  }
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${token}` }
  const stream = await fetch(`${url}/v1/conversations/${id}/events`, { headers, signal: leaving.signal })
  await stream.body?.getReader().read()
  leaving.abort()
  for (const fields of [
    { conversation_id: id, after: 0 },
    { conversation_id: id, view: "state_events" }
  ]) {
    const { sub } = await socket.ok("subscribe", fields)
    await socket.ok("unsubscribe", { sub })
  }
  await socket.ok("conversation.list", { q: "pay" })
  await socket.ok("conversation.get", { conversation_id: id })
  await socket.ok("conversation.list")
  await socket.ok("approval.list", { conversation_id: id })
  await socket.ok("approval.list")
  await socket.ok("attention.list")
  await socket.ok("agent.list", { conversation_id: id })
  await socket.ok("stats", { conversation_id: id })
}

/** The fork's runes from its beginning to its head. */
const logOf = async (socket: Socket, id: unknown): Promise<ReadonlyArray<Json>> => {
  const { head, sub } = await socket.ok("subscribe", { conversation_id: id, after: 0 })
  await socket.until(() => socket.runes(sub).some((rune) => Number(rune["event_id"]) >= Number(head)))
  return socket.runes(sub)
}

const headOf = async (socket: Socket, id: unknown): Promise<number> =>
  Number((await socket.ok("conversation.get", { conversation_id: id }))["last_event_id"])

/** Speaks to the fork: the one turn that follows must be the one that was asked for. */
const expectOnlyNewWork = async (socket: Socket, id: unknown, from: number): Promise<void> => {
  const { sub } = await socket.ok("subscribe", { conversation_id: id, after: from })
  await socket.ok("message.post", { conversation_id: id, content: "something new" })
  const started = () => socket.runes(sub).filter(({ kind }) => kind === "turn.started")
  await socket.until(() => started().length > 0)
  expect(started().map((rune) => payload(rune)["input"])).toEqual(["something new"])
}

const busy = async () => {
  const gate = new Gate()
  const server = await open({ scenarios: pays, tools: [effectTool("pay", gate.run)] })
  const socket = await server.connect()
  const id = await socket.create({ model: "scripted/pay" })
  await socket.ok("message.post", { conversation_id: id, content: "pay one" })
  await gate.started
  await socket.ok("message.post", { conversation_id: id, content: "pay two" })
  await socket.ok("message.post", { conversation_id: id, content: "pay three" })
  return { gate, id, server, socket }
}

describe("a fork", () => {
  it("has nothing to do although messages were queued, and says what it ended", async () => {
    const { gate, id, server, socket } = await busy()
    const fork = { conversation_id: id, at_event_id: await headOf(socket, id), idempotency_key: "f" }
    const forked = await socket.ok("conversation.fork", fork)
    const copy = forked["conversation_id"]
    await lookAt(server, socket, copy)
    const runes = await logOf(socket, copy)
    expect(runes).toHaveLength(Number(forked["event_id"]))
    expect(payload(runes.find(({ kind }) => kind === "tool.result"))).toMatchObject({
      status: "unknown",
      error: { code: "tool_outcome_unknown", message: expect.stringContaining("forked") }
    })
    expect(payload(runes.find(({ kind }) => kind === "turn.interrupted"))).toMatchObject({ reason: "forked" })
    const queued = runes.filter(({ kind }) => kind === "turn.queued").map((rune) => rune["event_id"])
    expect(queued).toHaveLength(2)
    expect(payload(runes.find(({ kind }) => kind === "turn.dequeued"))).toEqual({ event_ids: queued, reason: "forked" })
    await expectOnlyNewWork(socket, copy, Number(forked["event_id"]))
    // What was answered first is still the answer.
    expect(await socket.ok("conversation.fork", fork)).toEqual(forked)
    expect((await socket.error("conversation.fork", { ...fork, continue: true })).code).toBe("idempotency_conflict")
    await socket.ok("turn.interrupt", { conversation_id: copy })
    gate.end("done")
  })

  it("of a conversation that waits for an approval waits for none", async () => {
    let paid = 0
    const asked = effectTool("pay_asked", async () => `paid ${++paid}`, { approval: "ask" })
    const server = await open({ scenarios: pays, tools: [asked] })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/ask" })
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "pay" })
    await socket.rune("tool.approval_requested")
    const forked = await socket.ok("conversation.fork", {
      conversation_id: id,
      at_event_id: await headOf(socket, id)
    })
    const copy = forked["conversation_id"]
    await lookAt(server, socket, copy)
    expect((await socket.ok("approval.list", { conversation_id: copy }))["items"]).toEqual([])
    const runes = await logOf(socket, copy)
    expect(payload(runes.find(({ kind }) => kind === "tool.result"))).toMatchObject({ status: "cancelled" })
    await expectOnlyNewWork(socket, copy, Number(forked["event_id"]))
    expect((await socket.ok("approval.list", { conversation_id: id }))["items"]).toHaveLength(1)
    expect(paid).toBe(0)
  })

  it("at any rune of a goal has a plan that is stopped, a team that is gone, and no work", async () => {
    const data = directory()
    const workspace = join(data, "workspace")
    mkdirSync(workspace)
    const server = await open({ dataDirectory: data, tools: fileTools })
    const socket = await server.connect()
    const { conversation_id: id } = await socket.ok("goal.submit", {
      goal: "Write a letter",
      model: "scripted/goal-critique",
      workspace
    })
    const { sub } = await socket.ok("subscribe", { conversation_id: id, after: 0 })
    await socket.rune("plan.goal_met")
    const places = socket
      .runes(sub)
      .filter(({ kind }) => /^plan\.|^agent\.ready|^turn\.started|^tool\.started/.test(String(kind)))
    expect(places.length).toBeGreaterThan(10)
    for (const { event_id: at, kind } of places) {
      const forked = await socket.ok("conversation.fork", { conversation_id: id, at_event_id: at })
      const copy = forked["conversation_id"]
      await lookAt(server, socket, copy)
      const got = await socket.ok("conversation.get", { conversation_id: copy })
      expect(got, `fork at ${kind}`).toMatchObject({ agents_alive: 1, last_event_id: forked["event_id"] })
      const status = (got["plan"] as Json | undefined)?.["status"]
      expect([undefined, "stopped", "goal_met"], `fork at ${kind}`).toContain(status)
    }
    expect(server.lines.filter((line) => line.includes('"crash"'))).toEqual([])
  }, 60_000)

  it("before the first agent is refused, and leaves nothing behind; at every later event it is spoken to", async () => {
    const server = await open({ scenarios: pays })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/talk" })
    const head = await headOf(socket, id)
    const refused = await socket.error("conversation.fork", { conversation_id: id, at_event_id: 1 })
    expect(refused).toMatchObject({ code: "bad_request", message: expect.stringContaining("fork at a later event") })
    expect(await socket.ok("conversation.list")).toMatchObject({ items: [{ conversation_id: id }] })
    for (let at = 2; at <= head; at++) {
      const forked = await socket.ok("conversation.fork", { conversation_id: id, at_event_id: at })
      await expectOnlyNewWork(socket, forked["conversation_id"], Number(forked["event_id"]))
    }
  })

  it("goes on by itself when it is asked to, and what may have happened is not done again", async () => {
    const { gate, id, socket } = await busy()
    const fork = { conversation_id: id, at_event_id: await headOf(socket, id), continue: true, idempotency_key: "f" }
    const forked = await socket.ok("conversation.fork", fork)
    const { sub } = await socket.ok("subscribe", { conversation_id: forked["conversation_id"], after: 0 })
    const finals = () => socket.runes(sub).filter(({ kind }) => kind === "turn.started")
    // The turn goes on with an unknown outcome, then the queue is worked off: nobody has looked at it.
    await socket.until(() => finals().length === 2)
    expect(kindsOf(socket.runes(sub))).not.toContain("turn.dequeued")
    expect(payload(socket.runes(sub).find(({ kind }) => kind === "tool.result"))).toMatchObject({ status: "unknown" })
    expect(payload(finals()[1])).toMatchObject({ input: "pay two" })
    expect(await socket.ok("conversation.fork", fork)).toEqual(forked)
    expect((await socket.error("conversation.fork", { ...fork, continue: false })).code).toBe("idempotency_conflict")
    await socket.ok("conversation.close", { conversation_id: forked["conversation_id"] })
    gate.end("done")
  })

  it("stays without work when the server is started again", async () => {
    const data = directory()
    const gate = new Gate()
    const first = await open({ dataDirectory: data, scenarios: pays, tools: [tool("pay", gate.run)] })
    const socket = await first.connect()
    const id = await socket.create({ model: "scripted/pay" })
    await socket.ok("message.post", { conversation_id: id, content: "pay one" })
    await gate.started
    await socket.ok("message.post", { conversation_id: id, content: "pay two" })
    const forked = await socket.ok("conversation.fork", { conversation_id: id, at_event_id: await headOf(socket, id) })
    await first.close()
    const second = await open({ dataDirectory: data, scenarios: pays, tools: [tool("pay", async () => "paid")] })
    await second.recovered
    const again = await second.connect()
    await lookAt(second, again, forked["conversation_id"])
    expect(await headOf(again, forked["conversation_id"])).toBe(forked["event_id"])
    await expectOnlyNewWork(again, forked["conversation_id"], Number(forked["event_id"]))
  })
})

describe("a closed conversation", () => {
  it("that was archived and restored is spoken to again, and remembers what was said", async () => {
    const server = await open({ scenarios: pays })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/talk" })
    const { sub } = await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "remember the word rune" })
    await socket.rune("turn.completed")
    for (const times of [1, 2]) {
      await socket.ok("conversation.close", { conversation_id: id })
      await socket.rune("session.closed", times)
      await socket.ok("conversation.archive", { conversation_id: id })
      await socket.ok("conversation.restore", { conversation_id: id, idempotency_key: `r${times}` })
      await socket.ok("conversation.restore", { conversation_id: id, idempotency_key: `r${times}` })
      expect(await socket.ok("conversation.get", { conversation_id: id })).toMatchObject({ state: "active" })
      const { items } = (await socket.ok("conversation.list")) as { items: ReadonlyArray<Json> }
      expect(items[0]).toMatchObject({ conversation_id: id, state: "active" })
      await socket.ok("message.post", { conversation_id: id, content: `turn ${times}` })
      await socket.rune("turn.completed", times + 1)
    }
    expect(kindsOf(socket.runes(sub)).filter((kind) => kind === "turn.started")).toHaveLength(3)
  })

  it("is spoken to in its fork, wherever its end was cut", async () => {
    const server = await open({ scenarios: pays })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/talk" })
    const { sub } = await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "one" })
    const said = Number((await socket.rune("turn.completed"))["event_id"])
    await socket.ok("conversation.close", { conversation_id: id })
    const closed = Number((await socket.rune("session.closed"))["event_id"])
    await socket.ok("conversation.archive", { conversation_id: id })
    const archived = Number((await socket.rune("session.archived"))["event_id"])
    expect(archived).toBe(closed + 1)
    for (let at = said; at <= archived; at++) {
      const forked = await socket.ok("conversation.fork", { conversation_id: id, at_event_id: at })
      const copy = forked["conversation_id"]
      expect(await socket.ok("conversation.get", { conversation_id: copy })).toMatchObject({ state: "active" })
      await expectOnlyNewWork(socket, copy, Number(forked["event_id"]))
    }
    expect(socket.runes(sub).length).toBe(archived)
  })
})
