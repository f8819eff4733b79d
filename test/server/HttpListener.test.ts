// Goal: what the protocol promises a client, over a real socket. Method: the real server in this process, a plain client.
import { cpSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it, vi } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { limits as logLimits } from "#runelog/RunelogLimits.ts"
import { snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { BindRefused } from "#src/server/Listener.ts"
import { limits as storeLimits } from "#src/store/StoreLimits.ts"
import { closeCodes } from "#src/wire/Codes.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { Scribe } from "../store/support.ts"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { bareRooms, startTestServer } from "../support/server/graph.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { useServers } from "../support/server/TestServer.ts"
import { openStore } from "../support/store/openStore.ts"

const { directory, leaveUnchecked, open } = useServers()

const idsOf = (runes: ReadonlyArray<Readonly<Record<string, unknown>>>) => runes.map((rune) => rune["event_id"])
/** Event ids that came, and those that were said not to come, in order. */
const accountedFor = (socket: Socket, sub: unknown) =>
  socket.pushed
    .filter((frame) => frame["sub"] === sub)
    .flatMap((frame) => {
      if ("rune" in frame) return [(frame["rune"] as { event_id: number }).event_id]
      const gap = frame["gap"] as { readonly from: number; readonly to: number } | undefined
      return gap === undefined ? [] : upTo(gap.to).slice(gap.from - 1)
    })
const upTo = (head: number) => Array.from({ length: head }, (_, index) => index + 1)

const of = (client: Socket, id: string) => client.runes().filter((rune) => rune["conversation_id"] === id)

describe("the door", () => {
  it("writes a token and where it listens, for the owner alone", async () => {
    const data = directory()
    const server = await open({ dataDirectory: data })
    expect(statSync(join(data, "token")).mode & 0o777).toBe(0o600)
    expect(statSync(join(data, "server.json")).mode & 0o777).toBe(0o600)
    expect(Buffer.from(readFileSync(join(data, "token"), "utf8").trim(), "base64url")).toHaveLength(32)
    const info = JSON.parse(readFileSync(join(data, "server.json"), "utf8"))
    expect(info).toMatchObject({ url: server.url, pid: process.pid, version: "0.0.0-test" })
  })

  it("refuses to listen elsewhere without a token of one's own", async () => {
    await expect(open({ host: "0.0.0.0" })).rejects.toThrow(BindRefused)
  })

  it("says hello with its limits, and who one is", async () => {
    const server = await open()
    const socket = await Socket.open(server.url)
    expect(await socket.hello(server.token)).toMatchObject({
      protocol: 1,
      server: "echs/0.0.0-test",
      principal: "local",
      limits: { messageBytesMax: limits.messageBytesMax }
    })
  })

  it("sends away whoever says no hello, the wrong token, or anything else first", async () => {
    const server = await open({ door: { helloWithinMs: 50 } })
    expect(await (await Socket.open(server.url)).closed()).toBe(4008)
    const wrong = await Socket.open(server.url)
    expect((await wrong.error("hello", { protocol: 1, token: "guess" })).code).toBe("unauthorized")
    expect(await wrong.closed()).toBe(4001)
    const early = await Socket.open(server.url)
    expect((await early.error("stats")).code).toBe("unauthorized")
    expect(await early.closed()).toBe(4001)
  })

  it("sends away who comes when there are too many", async () => {
    const server = await open({ door: { connectionsMax: 2 } })
    const first = await server.connect()
    await server.connect()
    const third = await Socket.open(server.url)
    expect(await third.closed()).toBe(4013)
    expect(await first.ok("stats")).toBeDefined()
  })
})

describe("a conversation over a socket", () => {
  it("runs a turn and shows every rune once, in order, durable", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create({ title: "first" })
    const { head, sub } = await socket.ok("subscribe", { conversation_id: id })
    expect(head).toBeGreaterThan(0)
    const posted = await socket.ok("message.post", { conversation_id: id, content: "good morning" })
    expect(posted["turn_id"]).toBe("turn_1")
    await socket.rune("turn.completed")
    const runes = socket.runes(sub)
    expect(idsOf(runes)).toEqual(upTo(runes.length))
    const final = runes.find((rune) => rune["kind"] === "turn.assistant_final")
    expect(final).toMatchObject({ payload: { content: "good morning" } })
    expect(await socket.ok("conversation.get", { conversation_id: id })).toMatchObject({ title: "first", turns: 1 })
    expect(await socket.ok("conversation.list")).toMatchObject({ items: [{ conversation_id: id, title: "first" }] })
  })

  it("shows state events, agent events and live text to those who ask", async () => {
    const server = await open({
      scenarios: scenarios({ slow: [always(say("one two three four", { chunk_chars: 4, delay_ms: 2 }))] }),
      runtime: { deltaEveryMs: 5 }
    })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/slow" })
    const state = await socket.ok("subscribe", { conversation_id: id, view: "state_events" })
    const agent = await socket.ok("subscribe", { conversation_id: id, view: "agent_events" })
    const runes = await socket.ok("subscribe", { conversation_id: id, live: true })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    const eventsOf = (sub: unknown) =>
      socket.pushed.flatMap((frame) => (frame["sub"] === sub && "event" in frame ? [frame["event"]] : []))
    await socket.until(() => JSON.stringify(eventsOf(agent["sub"])).includes("turn_completed"))
    expect(eventsOf(state["sub"])).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "state_changed", from: "Ready", to: "CallingLlm" }),
        expect.objectContaining({ type: "state_changed", to: "Ready" })
      ])
    )
    const live = socket.pushed.flatMap((frame) => ("live" in frame ? [frame["live"] as { text: string }] : []))
    expect(live.map(({ text }) => text).join("")).toBe("one two three four")
    expect(runes["sub"]).toBeDefined()
  })

  it("asks, takes one decision, and tells who came too late what it was", async () => {
    let runs = 0
    const server = await open({
      scenarios: scenarios({ act: [step(1, use("act", { how: "well" })), always(say("done"))] }),
      tools: [effectTool("act", async () => `ran ${++runs}`, { approval: "ask" })]
    })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/act" })
    await socket.ok("attention.subscribe")
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("tool.approval_requested")
    const { items } = await socket.ok("approval.list")
    const [item] = items as ReadonlyArray<Record<string, string>>
    expect(item).toMatchObject({ conversation_id: id, tool_name: "act", arguments: { how: "well" } })
    expect(await socket.ok("attention.list")).toMatchObject({ items: [{ type: "approval", conversation_id: id }] })
    const call = { conversation_id: id, call_id: item!["call_id"] }
    const wrong = { ...call, scope: "once", arguments_hash: "0".repeat(64) }
    expect((await socket.error("approval.approve", wrong)).code).toBe("bad_request")
    await socket.ok("approval.approve", { ...call, scope: "once", arguments_hash: item!["arguments_hash"] })
    const late = await socket.error("approval.deny", { ...call, reason: "no" })
    expect(late).toMatchObject({ code: "already_decided", data: { decision: { decision: "approved" } } })
    await socket.rune("turn.completed")
    expect(runs).toBe(1)
    await socket.until(() => socket.pushed.filter((frame) => "attention" in frame).length >= 2)
    const changes = socket.pushed.flatMap((frame) => ("attention" in frame ? [frame["attention"]] : []))
    expect(changes).toMatchObject([{ change: "raised" }, { change: "resolved" }])
  })

  it("keeps the outcome of a key over a restart, and refuses another body under it", async () => {
    const data = directory()
    const first = await open({ dataDirectory: data })
    const before = await first.connect()
    const created = await before.ok("conversation.create", { title: "once", idempotency_key: "k1" })
    const posting = { conversation_id: created["conversation_id"], content: "hi", idempotency_key: "k2" }
    const posted = await before.ok("message.post", posting)
    await first.close()
    const second = await open({ dataDirectory: data })
    const after = await second.connect()
    expect(await after.ok("conversation.create", { title: "once", idempotency_key: "k1" })).toEqual(created)
    expect(await after.ok("message.post", posting)).toEqual(posted)
    expect(await after.error("conversation.create", { title: "twice", idempotency_key: "k1" })).toMatchObject({
      code: "idempotency_conflict"
    })
    expect((await after.error("message.post", { ...posting, content: "ho" })).code).toBe("idempotency_conflict")
    expect(((await after.ok("conversation.list"))["items"] as ReadonlyArray<unknown>).length).toBe(1)
  })

  it("closes, archives, reads, restores and forks", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create()
    const { sub } = await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "one" })
    await socket.rune("turn.completed")
    const at = socket.runes(sub).length
    expect((await socket.error("conversation.archive", { conversation_id: id })).code).toBe("invalid_state")
    await socket.ok("conversation.close", { conversation_id: id })
    await socket.rune("session.closed")
    await socket.ok("conversation.archive", { conversation_id: id, idempotency_key: "a" })
    await socket.ok("conversation.archive", { conversation_id: id, idempotency_key: "a" })
    expect(await socket.ok("conversation.get", { conversation_id: id })).toMatchObject({ state: "archived" })
    const again = await socket.ok("subscribe", { conversation_id: id })
    await socket.until(() => socket.pushed.some((frame) => frame["sub"] === again["sub"] && "caught_up" in frame))
    expect(accountedFor(socket, again["sub"])).toEqual(upTo(again["head"] as number))
    await socket.ok("conversation.restore", { conversation_id: id })
    await socket.rune("session.restored", 2)
    expect(idsOf(socket.runes(sub))).toEqual(upTo(socket.runes(sub).length))
    const fork = { conversation_id: id, at_event_id: at, idempotency_key: "f" }
    const forked = await socket.ok("conversation.fork", fork)
    expect(forked["conversation_id"]).not.toBe(id)
    expect(await socket.ok("conversation.fork", fork)).toEqual(forked)
    const copy = { conversation_id: forked["conversation_id"] }
    expect(await socket.ok("message.post", { ...copy, content: "two" })).toHaveProperty("turn_id")
    // The copy has gone on since; what was answered then is still the answer.
    expect(await socket.ok("conversation.fork", fork)).toEqual(forked)
    expect((await socket.error("conversation.fork", { ...fork, at_event_id: 1 })).code).toBe("idempotency_conflict")
    expect((await socket.error("conversation.fork", { conversation_id: id, at_event_id: 9999 })).code).toBe(
      "bad_request"
    )
  })

  it("follows all conversations at once, from now on or from the cursors one has", async () => {
    const server = await open()
    const socket = await server.connect()
    const [one, two] = [await socket.create(), await socket.create()]
    const tail = await server.connect()
    await tail.ok("subscribe", { conversation_id: "*", after: "tail" })
    await tail.until(() => tail.pushed.some((frame) => "caught_up" in frame))
    await socket.ok("message.post", { conversation_id: one, content: "a" })
    const three = await socket.create()
    await tail.rune("turn.completed")
    await tail.rune("agent.ready")
    expect(of(tail, two)).toEqual([])
    expect(of(tail, three)[0]).toMatchObject({ event_id: 1 })
    const all = await server.connect()
    await all.ok("subscribe", { conversation_id: "*", cursors: { [one]: 3 } })
    await all.until(() => all.pushed.some((frame) => "caught_up" in frame))
    expect(of(all, one)[0]).toMatchObject({ event_id: 4 })
    expect(of(all, two)[0]).toMatchObject({ event_id: 1 })
    await socket.ok("message.post", { conversation_id: two, content: "b" })
    await all.until(() => of(all, two).some((rune) => rune["kind"] === "turn.completed"))
    expect(idsOf(of(all, two))).toEqual(upTo(of(all, two).length))
  })

  it("shows a viewer what is public, and lets it change nothing", async () => {
    const server = await open({ tokens: [{ name: "guest", role: "viewer", token: "viewer-token-0123456789" }] })
    const socket = await server.connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "x" })
    await socket.rune("turn.completed")
    const guest = await server.connect("viewer-token-0123456789")
    expect((await guest.error("message.post", { conversation_id: id, content: "y" })).code).toBe("unauthorized")
    await guest.ok("subscribe", { conversation_id: id, visibility: "internal" })
    await guest.until(() => guest.pushed.some((frame) => "caught_up" in frame))
    expect(new Set(guest.runes().map((rune) => rune["visibility"]))).toEqual(new Set(["public"]))
    expect(new Set(socket.runes().map((rune) => rune["visibility"]))).toEqual(new Set(["public", "internal"]))
  })
})

describe("a stop", () => {
  it("leaves behind what hangs, says so, and gives the directory free when that ends after all", async () => {
    const hanging = Promise.withResolvers<void>()
    const lines: Array<string> = []
    const data = directory()
    const hangs = Layer.effectDiscard(Effect.addFinalizer(() => Effect.promise(() => hanging.promise)))
    const writeLine = (line: string) => void lines.push(line)
    const server = await startTestServer(
      { dataDirectory: data, drainMs: 50, writeLine },
      { ...bareRooms(), followers: hangs }
    )
    await server.close()
    expect(lines.filter((line) => line.includes("abandoned"))).toEqual([expect.stringContaining('"after_ms":50')])
    await expect(Runelog.open({ directory: data })).rejects.toMatchObject({ _tag: "DirectoryLocked" })
    hanging.resolve()
    await vi.waitFor(async () => (await Runelog.open({ directory: data })).close(), { timeout: 10_000 })
  })
})

describe("a follower of everything that comes back", () => {
  it("hears of what began while it was away, and of what was quiet until then, each rune once", async () => {
    const server = await open()
    const socket = await server.connect()
    const quiet = await socket.create()
    const quietHead = (await socket.ok("conversation.get", { conversation_id: quiet }))["last_event_id"] as number
    const { updated_ms: quietMs } = await socket.ok("conversation.get", { conversation_id: quiet })
    const since_ms = (quietMs as number) + 1
    while (Date.now() < since_ms) await new Promise((resolve) => setImmediate(resolve))
    const away = await server.connect()
    const first = await away.ok("subscribe", { conversation_id: "*", after: "tail" })
    expect(Math.abs((first["since_ms"] as number) - since_ms)).toBeLessThan(60_000)
    const heard = await socket.create()
    await away.until(() => of(away, heard).length > 0)
    await away.close()
    const born = await socket.create()
    await socket.ok("message.post", { conversation_id: quiet, content: "now" })
    const cursors = { [heard]: of(away, heard).length }
    const back = await server.connect()
    const again = await back.ok("subscribe", { conversation_id: "*", after: "tail", cursors, since_ms })
    expect(again["since_ms"]).toBe(since_ms)
    await back.until(() => of(back, quiet).some((rune) => rune["kind"] === "turn.completed"))
    await back.until(() => of(back, born).length > 0 && back.pushed.some((frame) => "caught_up" in frame))
    const bornHead = (await socket.ok("conversation.get", { conversation_id: born }))["last_event_id"] as number
    expect(idsOf(of(back, born))).toEqual(upTo(bornHead))
    expect(idsOf(of(back, quiet))).toEqual(upTo(of(back, quiet).length + quietHead).slice(quietHead))
  })

  it("takes a time only where it means something", async () => {
    const socket = await (await open()).connect()
    const id = await socket.create()
    expect((await socket.error("subscribe", { conversation_id: id, since_ms: 1 })).code).toBe("bad_request")
  })
})

describe("figures of a stretch of time", () => {
  it("count what happened in it, in one conversation or in all", async () => {
    const server = await open()
    const socket = await server.connect()
    const ids = [await socket.create(), await socket.create()]
    await socket.ok("subscribe", { conversation_id: "*" })
    for (const id of ids) await socket.ok("message.post", { conversation_id: id, content: "x" })
    await socket.rune("turn.completed", 2)
    const runes = socket.runes().length
    const all = await socket.ok("stats", { window: "1h" })
    expect(all).toMatchObject({
      connections: 1,
      window: { conversations: 2, turns_completed: 2, turns_failed: 0, runes }
    })
    const { days, models, usage, workspaces } = all["window"] as {
      readonly usage: Json
      readonly [part: string]: unknown
    }
    // Every part adds up to the whole; the hour may have a midnight in it.
    for (const parts of [days, models, workspaces] as ReadonlyArray<ReadonlyArray<Json>>)
      expect(parts.reduce((sum, part) => sum + Number(part["output_tokens"]), 0)).toBe(usage["output_tokens"])
    expect((days as ReadonlyArray<Json>).reduce((sum, day) => sum + Number(day["runes"]), 0)).toBe(runes)
    expect(models).toMatchObject([{ model: "echo" }])
    const one = await socket.ok("stats", { window: "1h", conversation_id: ids[0] })
    expect(one).toMatchObject({ turns: 1, window: { conversations: 1, turns_started: 1 } })
    for (const window of ["", "1", "h", "0m", "-1h", "32d", "1 h"]) {
      expect((await socket.error("stats", { window })).code).toBe("bad_request")
    }
    const unknown = { window: "1h", conversation_id: "conv_00000000" }
    expect((await socket.error("stats", unknown)).code).toBe("not_found")
  })
})

describe("a reader that takes nothing", () => {
  it("is closed with 4014 while others go on, and resumes from its cursor", async () => {
    const server = await open({ door: { stalledMs: 200 } })
    const socket = await server.connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    for (let turn = 1; turn <= 5; turn++) {
      await socket.ok("message.post", { conversation_id: id, content: "z".repeat(50_000) })
      await socket.rune("turn.completed", turn)
    }
    const stalled = await server.connect()
    stalled.raw.pause()
    // Together more than what the kernel takes in for both ends.
    for (let times = 0; times < 200; times++) stalled.send({ id: `s${times}`, op: "subscribe", conversation_id: id })
    const head = (await socket.ok("conversation.get", { conversation_id: id }))["last_event_id"] as number
    expect(await socket.ok("message.post", { conversation_id: id, content: "still there?" })).toHaveProperty("turn_id")
    await socket.rune("turn.completed", 6)
    // Nobody reads for it any more.
    while ((await socket.ok("stats"))["subscriptions"] !== 1) await new Promise((resolve) => setTimeout(resolve, 10))
    // It wakes up: what was on its way comes, and then the reason for which nothing more does.
    stalled.raw.resume()
    expect(await stalled.closed()).toBe(closeCodes.tooFarBehind)
    const [sub] = stalled.pushed.map((frame) => frame["sub"])
    const had = idsOf(stalled.runes(sub)).map(Number)
    const again = await server.connect()
    await again.ok("subscribe", { conversation_id: id, after: had.at(-1) ?? 0 })
    await again.until(() => again.pushed.some((frame) => "caught_up" in frame))
    const all = [...had, ...idsOf(again.runes()).map(Number)]
    expect(all).toEqual(upTo(all.length))
    expect(all.length).toBeGreaterThan(head)
  })
})

describe("what cannot be understood", () => {
  it.each([
    ["not JSON", "{", "bad_request"],
    ["no object", "[1]", "bad_request"],
    ["no id", { op: "stats" }, "bad_request"],
    ["an unknown operation", { id: "x", op: "conversation.destroy" }, "bad_request"],
    ["an unknown field", { id: "x", op: "stats", extra: 1 }, "bad_request"],
    ["a wrong type", { id: "x", op: "conversation.list", limit: "ten" }, "bad_request"],
    ["a negative cursor", { id: "x", op: "subscribe", conversation_id: "conv_00000000", after: -1 }, "bad_request"],
    ["an unknown conversation", { id: "x", op: "conversation.get", conversation_id: "conv_00000000" }, "not_found"],
    ["too deep", `${"[".repeat(65)}${"]".repeat(65)}`, "bad_request"]
  ])("%s gets its error, and the connection stays", async (_name, frame, code) => {
    const server = await open()
    const socket = await server.connect()
    socket.send(frame)
    await socket.until(() => socket.answers.has("x") || socket.answers.has(null))
    expect((socket.answers.get("x") ?? socket.answers.get(null))?.error?.code).toBe(code)
    expect(await socket.ok("stats")).toHaveProperty("connections", 1)
  })

  it("a future cursor and a command in the wrong state are refused with the facts", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create()
    const future = await socket.error("subscribe", { conversation_id: id, after: 1_000_000 })
    expect(future).toMatchObject({ code: "bad_request", data: { head: expect.any(Number) } })
    const state = await socket.error("conversation.unsuspend", { conversation_id: id })
    expect(state).toMatchObject({ code: "invalid_state", data: { state: expect.any(String) } })
  })

  it("one connection may ask as fast as the server answers", async () => {
    const server = await open()
    const socket = await server.connect()
    const codes = new Set<string>()
    for (let asked = 0; asked < 4_000; asked += 200) {
      const asks = Array.from({ length: 200 }, () => socket.ask("approval.list"))
      for (const { error } of await Promise.all(asks)) codes.add(error?.code ?? "ok")
    }
    expect([...codes]).toEqual(["ok"])
  })

  it("too many subscriptions are refused one by one", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create()
    const codes = new Map<string, number>()
    for (let asked = 0; asked < 10_000; asked += 250) {
      const asks = Array.from({ length: 250 }, () => socket.ask("subscribe", { conversation_id: id, after: "tail" }))
      for (const { error } of await Promise.all(asks)) {
        const code = error?.code ?? "ok"
        codes.set(code, (codes.get(code) ?? 0) + 1)
      }
    }
    expect([...codes.keys()].sort()).toEqual(["limit_exceeded", "ok"])
    expect(codes.get("ok")).toBeLessThanOrEqual(limits.subscriptionsPerConnectionMax)
    const other = await server.connect()
    expect((await other.ok("stats"))["subscriptions"]).toBe(codes.get("ok"))
  })

  it("one who goes on sending nonsense, or too much, is sent away; others notice nothing", async () => {
    const server = await open()
    const [other, bad, large, binary] = await Promise.all([1, 2, 3, 4].map(() => server.connect()))
    for (let sent = 0; sent < limits.malformedMax; sent++) bad!.send("nonsense")
    expect(await bad!.closed()).toBe(4009)
    large!.send("x".repeat(limits.messageBytesMax + 1))
    expect(await large!.closed()).toBe(4009)
    binary!.raw.send(Buffer.from("{}"), { binary: true })
    await binary!.until(() => binary!.answers.has(null))
    // The server hears of the end of a connection a moment after its client does.
    while (((await other!.ok("stats"))["connections"] as number) > 2) await new Promise(setImmediate)
    expect(await other!.ok("stats")).toHaveProperty("connections", 2)
  })
})

describe("a server that was killed with more conversations written to than a start looks at", () => {
  it("listens, and goes on with the one that has work which its catalog does not know of", async () => {
    const written = directory()
    const data = directory()
    for (const path of [written, data]) leaveUnchecked(path)
    const store = await openStore({ directory: written, snapshotShape })
    // So many that a close leaves them to the journal as well.
    const count = Math.max(storeLimits.suspectsAtOpenMax, logLimits.closeLogsMax) + 1
    const many = Array.from({ length: count }, (_, number) => new Scribe(number + 1).begin())
    await Promise.all(many.map(({ conversationId, runes }) => store.runes.appendNow(conversationId, runes)))
    await store.listNow()
    const [busy] = many
    busy!.startTurn("Go on.")
    await store.runes.appendNow(busy!.conversationId, busy!.runes.slice(4))
    cpSync(written, data, { recursive: true, filter: (path) => !/\/lock(\.guard)?$/.test(path) })
    await store.close()
    const server = await open({ dataDirectory: data })
    const socket = await server.connect()
    await socket.ok("subscribe", { conversation_id: busy!.conversationId })
    await socket.rune("turn.completed")
  })
})
