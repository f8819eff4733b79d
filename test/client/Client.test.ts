// Goal: a call happens once and a tail has every rune once, whatever happens to the connection. Method: the client over
// real sockets against a small server whose log outlives its restarts, dropped and restarted at random places.
// Verifies: G7
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { backoffMs } from "#src/client/Backoff.ts"
import { Client, type ClientOptions, type ConnectionChange, clientLimits, type TailItem } from "#src/client/Client.ts"
import { Feed } from "#src/client/Feed.ts"
import { AllPosition } from "#src/client/Position.ts"
import { readingOperations } from "#src/client/ReadingOperations.ts"
import type { AnyRune } from "#src/client/Wire.ts"
import { operationNames, operations } from "#src/wire/Operations.ts"
import { WireServer } from "../support/client/wireServer.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const conversation = "conv_00000000"
let server: WireServer
const clients: Array<Client> = []

beforeEach(async () => {
  server = new WireServer()
  await server.start()
})

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await server.stop()
})

const connect = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
  const endpoint = { url: server.url, token: server.token }
  const client = await Client.connect({ endpoint, random: () => 0, ...options })
  clients.push(client)
  return client
}

const eventIdOf = (item: TailItem): number | undefined => ("rune" in item ? item.rune.event_id : undefined)

/** The event ids a tail brings, up to and with `last`. */
const idsUntil = async (items: AsyncIterable<TailItem>, last: number): Promise<ReadonlyArray<number>> => {
  const ids: Array<number> = []
  for await (const item of items) {
    const id = eventIdOf(item)
    if (id !== undefined) ids.push(id)
    if (id === last) return ids
  }
  return ids
}

const upTo = (last: number, first = 1): ReadonlyArray<number> =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe("connecting", () => {
  it("says hello with the token and hands out the welcome", async () => {
    const client = await connect({ client: { name: "test", version: "1" } })
    expect(client.welcome).toMatchObject({ server: "test/1" })
    expect(server.received[0]).toMatchObject({ id: "0", op: "hello", protocol: 1, client: { name: "test" } })
  })

  it("fails with NoServer where nothing listens", async () => {
    await server.stop()
    await expect(connect()).rejects.toMatchObject({ _tag: "NoServer", url: server.url })
  })

  it("fails with SentAway for a wrong token, and does not try again", async () => {
    const endpoint = { url: server.url, token: "wrong" }
    await expect(Client.connect({ endpoint })).rejects.toMatchObject({ _tag: "SentAway", closeCode: 4001 })
    expect(server.received.filter(({ op }) => op === "hello")).toHaveLength(1)
  })

  it("waits for a server that is not there yet when told to", async () => {
    await server.stop()
    const waiting = connect({ isPatient: true })
    await server.start()
    expect((await waiting).welcome?.server).toBe("test/1")
  })

  it("asks for the address again before every connection", async () => {
    const other = new WireServer()
    await other.start()
    let current = server
    const client = await connect({ endpoint: async () => ({ url: current.url, token: current.token }) })
    current = other
    await server.stop()
    expect(await client.call("stats", {})).toEqual({ runes: 0 })
    expect(other.received.map(({ op }) => op)).toEqual(["hello", "stats"])
    await other.stop()
  })

  it("gives up when told how long to try", async () => {
    const client = await connect({ giveUpAfterMs: 100 })
    await server.stop()
    await expect(client.call("stats", {})).rejects.toMatchObject({ _tag: "NoServer" })
  })

  it("waits longer and longer for a server that ends every connection, and survives what is no JSON", async () => {
    const waits: Array<number> = []
    const client = await connect({
      onConnection: (change) => void (change.type === "lost" && waits.push(change.retryInMs))
    })
    let babbles = 4
    server.intercept = (message, socket) => {
      if (message["op"] !== "stats" || babbles === 0) return false
      babbles -= 1
      socket.send("this is {no JSON")
      return true
    }
    expect(await client.call("stats", {})).toEqual({ runes: 0 })
    expect(waits).toEqual([25, 50, 100, 200])
  })

  it("tells when the connection is lost and when it is back", async () => {
    const changes: Array<ConnectionChange> = []
    const client = await connect({ onConnection: (change) => changes.push(change) })
    server.dropAll(1001)
    await client.call("stats", {})
    await expect.poll(() => changes.map(({ type }) => type)).toEqual(["connected", "lost", "connected"])
    expect(changes[1]).toMatchObject({ code: 1001 })
  })
})

describe("a call", () => {
  it("is rejected with the code, message and data of the server", async () => {
    const client = await connect()
    server.intercept = (message, socket) => {
      if (message["op"] !== "approval.deny") return false
      const error = { code: "already_decided", message: "too late", data: { decision: "approved" } }
      socket.send(JSON.stringify({ id: message["id"], error }))
      return true
    }
    await expect(
      client.call("approval.deny", { conversation_id: conversation, call_id: "call_1" })
    ).rejects.toMatchObject({
      _tag: "RequestFailed",
      op: "approval.deny",
      code: "already_decided",
      message: "too late",
      data: { decision: "approved" }
    })
  })

  it("is made again with the same key when the connection is lost before the answer", async () => {
    const client = await connect()
    let drops = 3
    server.intercept = (message, socket) => {
      if (message["op"] !== "message.post" || drops === 0) return false
      drops -= 1
      // The first time the command took effect and only the answer is lost.
      server.append(server.outcomes.size === 0 ? 1 : 0)
      server.outcomes.set(String(message["idempotency_key"]), 1)
      socket.terminate()
      return true
    }
    const answer = await client.call("message.post", { conversation_id: conversation, content: "hello" })
    expect(answer).toEqual({ event_id: 1 })
    expect(server.runes).toHaveLength(1)
    const posts = server.received.filter(({ op }) => op === "message.post")
    expect(posts).toHaveLength(4)
    expect(new Set(posts.map((post) => post["idempotency_key"])).size).toBe(1)
  })

  it("takes the key it is given", async () => {
    const client = await connect()
    const post = () =>
      client.call("message.post", { conversation_id: conversation, content: "x" }, { idempotencyKey: "mine" })
    expect([await post(), await post()]).toEqual([{ event_id: 1 }, { event_id: 1 }])
  })

  it("waits as long as a busy server asks, and no more than so often", async () => {
    const client = await connect()
    server.intercept = (message, socket) => {
      if (message["op"] !== "stats") return false
      socket.send(
        JSON.stringify({ id: message["id"], error: { code: "busy", message: "full", data: { retry_after_ms: 1 } } })
      )
      return true
    }
    await expect(client.call("stats", {})).rejects.toMatchObject({ code: "busy" })
    expect(server.received.filter(({ op }) => op === "stats")).toHaveLength(clientLimits.busyRetriesMax + 1)
  })

  it("fails at once when too many wait already", async () => {
    const client = await connect()
    server.intercept = ({ op }) => op === "stats"
    const waiting = Array.from({ length: clientLimits.callsWaitingMax }, () => client.call("stats", {}).catch(String))
    await expect(client.call("stats", {})).rejects.toMatchObject({ code: "busy" })
    await client.close()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["ClientClosed: the client is closed"]))
  })

  it("carries a key exactly when the operation changes something", () => {
    const reading = operationNames.filter((name) => !operations[name].mutates)
    expect(new Set(reading)).toEqual(readingOperations)
  })
})

describe("a tail", () => {
  it("begins after its cursor, says when it has caught up, and goes on", async () => {
    server.append(10)
    const client = await connect()
    const tail = client.tail(conversation, { after: 7 })
    const items: Array<TailItem> = []
    for (let seen = 0; seen < 4; seen += 1) items.push((await tail.next()).value as TailItem)
    expect(items.map((item) => eventIdOf(item) ?? item)).toEqual([8, 9, 10, { caught_up: { head: 10 } }])
    server.append(1)
    expect(eventIdOf((await tail.next()).value as TailItem)).toBe(11)
    await tail.return()
  })

  it.each([1001, 4014, 1006] as const)("goes on where it was after the server closed with %i", async (code) => {
    server.append(5)
    const client = await connect()
    const ids: Array<number> = []
    for await (const item of client.tail(conversation)) {
      const id = eventIdOf(item)
      if (id !== undefined) ids.push(id)
      if (id === 3) {
        server.dropAll(code === 1006 ? undefined : code)
        server.append(4)
      }
      if (id === 9) break
    }
    expect(ids).toEqual(upTo(9))
  })

  it("stops with SentAway when the server closes with 4001", async () => {
    const client = await connect()
    const tail = client.tail(conversation)
    await tail.next()
    server.dropAll(4001)
    await expect(tail.next()).rejects.toMatchObject({ _tag: "SentAway", closeCode: 4001 })
  })

  it("from now on brings what comes, and nothing that was, also over a restart", async () => {
    server.append(5)
    const client = await connect()
    const tail = client.tail(conversation, { after: "tail" })
    expect((await tail.next()).value).toEqual({ caught_up: { head: 5 } })
    await server.stop()
    server.append(2)
    await server.start()
    expect(await idsUntil(tail, 7)).toEqual([6, 7])
  })

  it("hands out gaps and does not ask for what they cover", async () => {
    const client = await connect()
    server.intercept = (message, socket) => {
      if (message["op"] !== "subscribe" || message["after"] !== 0) return false
      socket.send(JSON.stringify({ id: message["id"], ok: { sub: "g", head: 90 } }))
      socket.send(JSON.stringify({ sub: "g", gap: { from: 1, to: 90, reason: "thinned" } }))
      return true
    }
    server.append(91)
    const tail = client.tail(conversation)
    expect((await tail.next()).value).toEqual({ gap: { from: 1, to: 90, reason: "thinned" } })
    server.dropAll()
    expect(await idsUntil(tail, 91)).toEqual([91])
  })

  it("fails for a conversation that is not there", async () => {
    const client = await connect()
    await expect(client.tail("conv_99999999").next()).rejects.toMatchObject({ code: "not_found" })
  })

  it("ends when its signal aborts, also while it waits for a server", async () => {
    const client = await connect()
    const controller = new AbortController()
    const tail = client.tail(conversation, { signal: controller.signal })
    await tail.next()
    await server.stop()
    const next = tail.next()
    controller.abort()
    expect(await next).toEqual({ done: true, value: undefined })
  })

  it("leaves its subscription when the reader stops", async () => {
    server.append(3)
    const client = await connect()
    for await (const item of client.tail(conversation)) if (eventIdOf(item) === 2) break
    await expect.poll(() => server.following).toBe(0)
  })

  it("of a reader that does not keep up holds a bounded number of frames, and misses none", async () => {
    const total = clientLimits.feedFramesMax * 3
    server.append(total)
    const client = await connect()
    const tail = client.tail(conversation)
    const first = eventIdOf((await tail.next()).value as TailItem)
    await expect.poll(() => server.received.some(({ op }) => op === "unsubscribe")).toBe(true)
    expect([first, ...(await idsUntil(tail, total))]).toEqual(upTo(total))
    const cursors = server.received.filter(({ op }) => op === "subscribe").map((request) => Number(request["after"]))
    // One was read before the rest had to wait.
    expect(cursors[1]).toBe(1 + clientLimits.feedFramesMax)
  })

  it("brings a frame that is larger than all its room", async () => {
    const client = await connect()
    server.append(1, { text: "x".repeat(clientLimits.feedCharsMax + 1) })
    server.append(2)
    expect(await idsUntil(client.tail(conversation), 3)).toEqual([1, 2, 3])
  })

  it("has every rune once, dropped and restarted at random", async () => {
    const seed = seedFor("client tails under drops")
    const random = randomFrom(seed)
    const rounds = count("client tails under drops", { fast: 20, soak: 400 })
    for (let round = 0; round < rounds; round += 1) {
      const start = server.runes.length
      const total = start + 300
      const client = await connect()
      let dropped = 0
      const writing = (async () => {
        while (server.runes.length < total) {
          server.append(Math.min(1 + Math.floor(random() * 20), total - server.runes.length))
          const dice = random()
          if (dice < 0.1) server.dropAll([undefined, 1001, 4014][Math.floor(random() * 3)])
          if (dice >= 0.1 && dice < 0.15) {
            await server.stop()
            await server.start()
          }
          dropped += dice < 0.15 ? 1 : 0
          await new Promise((resolve) => setImmediate(resolve))
        }
      })()
      const ids = await idsUntil(client.tail(conversation, { after: start }), total)
      await writing
      expect(ids, `SEED=${seed} round ${round}, ${dropped} drops`).toEqual(upTo(total, start + 1))
      await client.close()
    }
    reportCount("client tails under drops", rounds)
  })
})

describe("a tail of a derived view", () => {
  const event = (id: string) => ({ event_id: id, event: { type: "turn_started" } })

  it("resumes in the middle of what one rune means, without an event twice", async () => {
    const client = await connect()
    const afters: Array<unknown> = []
    server.intercept = (message, socket) => {
      if (message["op"] !== "subscribe") return false
      afters.push(message["after"])
      socket.send(JSON.stringify({ id: message["id"], ok: { sub: "v", head: 9 } }))
      const ids = afters.length === 1 ? ["3.0", "5.0", "5.1"] : ["5.0", "5.1", "5.2", "6.0"]
      for (const id of ids) socket.send(JSON.stringify({ sub: "v", event: event(id) }))
      if (afters.length === 1) socket.close(1001)
      return true
    }
    const seen: Array<unknown> = []
    for await (const item of client.tail(conversation, { view: "agent_events" })) {
      if ("event" in item) seen.push(item.event.event_id)
      if (seen.length === 5) break
    }
    expect(seen).toEqual(["3.0", "5.0", "5.1", "5.2", "6.0"])
    expect(afters).toEqual([0, 4])
  })
})

/** Answers every subscription with these frames. */
const sendOnSubscribe = (frames: ReadonlyArray<object>): void => {
  server.intercept = (message, socket) => {
    if (message["op"] !== "subscribe") return false
    socket.send(JSON.stringify({ id: message["id"], ok: { sub: "e", head: 0 } }))
    for (const frame of frames) socket.send(JSON.stringify({ sub: "e", ...frame }))
    return true
  }
}

/** The first items of a tail, each in a word. */
const taken = async (client: Client, id: string, most: number): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  for await (const item of client.tail(id)) {
    if ("rune" in item) seen.push(`${item.rune.conversation_id} ${item.rune.event_id}`)
    else if ("gap" in item) seen.push(`${item.gap.conversation_id} ${item.gap.from}-${item.gap.to}`)
    else if ("failed" in item) seen.push(`${item.failed.conversation_id} ${item.failed.error.code}`)
    if (seen.length === most) break
  }
  return seen
}

describe("a tail of one conversation", () => {
  it("hands out no rune and no gap twice, whatever the server sends again", async () => {
    const rune = (eventId: number) => ({
      rune: { conversation_id: conversation, event_id: eventId, kind: "turn.started" }
    })
    const gap = { gap: { from: 3, to: 6, reason: "thinned" } }
    const all = [rune(1), rune(2), gap, rune(7)]
    sendOnSubscribe([...all, ...all, rune(5), gap, rune(8)])
    const seen = await taken(await connect(), conversation, 5)
    expect(seen.map((one) => one.split(" ")[1])).toEqual(["1", "2", "3-6", "7", "8"])
  })
})

describe("a tail of everything", () => {
  it("keeps a cursor for each conversation and names them when it resumes", async () => {
    const client = await connect()
    const asked: Array<unknown> = []
    const rune = (id: string, eventId: number) => ({ conversation_id: id, event_id: eventId, kind: "turn.started" })
    server.intercept = (message, socket) => {
      if (message["op"] !== "subscribe") return false
      asked.push([message["after"], message["cursors"], message["since_ms"]])
      socket.send(JSON.stringify({ id: message["id"], ok: { sub: "e", head: 0, since_ms: 7 * asked.length } }))
      const runes =
        asked.length === 1
          ? [rune("conv_a", 4), rune("conv_b", 9), rune("conv_a", 5)]
          : [rune("conv_a", 5), rune("conv_b", 10)]
      for (const one of runes) socket.send(JSON.stringify({ sub: "e", rune: one }))
      if (asked.length === 1) socket.close(1001)
      return true
    }
    const seen: Array<unknown> = []
    for await (const item of client.tail("*", { after: "tail" })) {
      if ("rune" in item) seen.push(`${item.rune.conversation_id} ${item.rune.event_id}`)
      if (seen.length === 4) break
    }
    expect(seen).toEqual(["conv_a 4", "conv_b 9", "conv_a 5", "conv_b 10"])
    expect(asked).toEqual([
      ["tail", {}, undefined],
      // What was not heard of begins where listening began, however often the connection is lost.
      ["tail", { conv_a: 5, conv_b: 9 }, 7]
    ])
  })

  it("hands out no rune and no gap twice, whatever the server sends again", async () => {
    const rune = (id: string, eventId: number) => ({
      rune: { conversation_id: id, event_id: eventId, kind: "turn.started" }
    })
    const gap = (id: string, from: number, to: number) => ({
      gap: { conversation_id: id, from, to, reason: "thinned" }
    })
    const all = [rune("conv_a", 1), rune("conv_a", 2), rune("conv_b", 1), gap("conv_a", 3, 6), rune("conv_a", 7)]
    sendOnSubscribe([...all, ...all, rune("conv_a", 5), gap("conv_a", 3, 6), gap("conv_b", 1, 1), rune("conv_b", 2)])
    const seen = await taken(await connect(), "*", 6)
    expect(seen).toEqual(["conv_a 1", "conv_a 2", "conv_b 1", "conv_a 3-6", "conv_a 7", "conv_b 2"])
  })

  it("repeats nothing of more conversations than it names when it resumes", { timeout: 60_000 }, async () => {
    const many = clientLimits.cursorsNamedMax + 500
    const runes = Array.from({ length: many }, (_, index) => ({
      rune: { conversation_id: `conv_${String(index).padStart(8, "0")}`, event_id: 1, kind: "turn.started" }
    }))
    const last = { rune: { conversation_id: "conv_last", event_id: 1, kind: "turn.started" } }
    const asked: Array<Readonly<Record<string, number>>> = []
    server.intercept = (message, socket) => {
      if (message["op"] !== "subscribe") return false
      asked.push(message["cursors"] as Readonly<Record<string, number>>)
      socket.send(JSON.stringify({ id: message["id"], ok: { sub: "e", head: 0, since_ms: 1 } }))
      const named = asked.at(-1) ?? {}
      // As the server does it: what is not named comes from its beginning.
      const wanted = runes.filter(({ rune }) => named[rune.conversation_id] === undefined)
      for (const one of asked.length === 1 ? runes : [...wanted, last])
        socket.send(JSON.stringify({ sub: "e", ...one }))
      return true
    }
    const client = await connect()
    const seen = new Map<string, number>()
    for await (const item of client.tail("*")) {
      if (!("rune" in item)) continue
      const { conversation_id: id } = item.rune
      seen.set(id, (seen.get(id) ?? 0) + 1)
      if (id === "conv_last") break
      if (seen.size === many) server.dropAll()
    }
    expect(seen.size).toBe(many + 1)
    expect([...seen.values()].every((times) => times === 1)).toBe(true)
    expect(Object.keys(asked.at(-1) ?? {})).toHaveLength(clientLimits.cursorsNamedMax)
    expect(Object.keys(asked.at(-1) ?? {})).toContain(runes.at(-1)?.rune.conversation_id)
  })

  it("hears which conversation it does not get, goes on with the others, and takes a log that became shorter from there", async () => {
    const rune = (id: string, eventId: number) => ({
      rune: { conversation_id: id, event_id: eventId, kind: "turn.started" }
    })
    const failure = (id: string, code: string, data?: object) => ({
      conversation_id: id,
      error: { code, message: "no", ...(data === undefined ? {} : { data }) }
    })
    sendOnSubscribe([
      rune("conv_a", 100),
      rune("conv_b", 50),
      rune("conv_c", 9),
      failure("conv_a", "bad_request", { head: 7 }),
      failure("conv_b", "not_found"),
      failure("conv_c", "read_only"),
      rune("conv_a", 7),
      rune("conv_a", 8),
      rune("conv_b", 1),
      rune("conv_c", 9),
      rune("conv_c", 10)
    ])
    const seen = await taken(await connect(), "*", 9)
    expect(seen.slice(3)).toEqual([
      "conv_a bad_request",
      "conv_b not_found",
      "conv_c read_only",
      "conv_a 8",
      "conv_b 1",
      "conv_c 10"
    ])
  })

  it("ends when it would have to remember more places than it may", { timeout: 30_000 }, () => {
    const position = new AllPosition(0)
    const runeOf = (id: number) =>
      ({ conversation_id: `c${id}`, event_id: 1, kind: "turn.started" }) as unknown as AnyRune
    const take = (id: number) => position.take({ sub: "e", rune: runeOf(id) })
    for (let id = 0; id < clientLimits.cursorsMax; id += 1) take(id)
    expect(() => take(-1)).toThrow(expect.objectContaining({ code: "limit_exceeded" }))
    expect(take(0)).toBeUndefined()
  })

  it("fails when the server ends the subscription", async () => {
    const client = await connect()
    const tail = client.tail(conversation)
    await tail.next()
    server.sockets[0]?.send(JSON.stringify({ sub: "s1", error: { code: "read_only", message: "the log is damaged" } }))
    await expect(tail.next()).rejects.toMatchObject({ code: "read_only" })
  })
})

describe("attention", () => {
  it("brings everything first, then changes, and everything again after a lost connection", async () => {
    server.attention.push({ conversation_id: conversation, call_id: "call_1" })
    const client = await connect()
    const updates = client.attention()
    expect((await updates.next()).value).toEqual({ items: [{ conversation_id: conversation, call_id: "call_1" }] })
    server.raiseAttention({ conversation_id: conversation, call_id: "call_2" })
    expect((await updates.next()).value).toEqual({ changed: { conversation_id: conversation, call_id: "call_2" } })
    server.dropAll()
    expect((await updates.next()).value).toMatchObject({ items: [{ call_id: "call_1" }, { call_id: "call_2" }] })
    await updates.return()
  })
})

describe("the frames that wait for a reader", () => {
  it("are let go of when they are read, also by a reader that never quite catches up", async () => {
    const feed = new Feed(() => {})
    const { signal } = new AbortController()
    const frame = (id: number) => ({ sub: "s", gap: { from: id, to: id, reason: "" } })
    for (let id = 0; id < 3; id += 1) feed.push(frame(id), 1)
    for (let id = 3; id < clientLimits.feedFramesMax * 4; id += 1) {
      feed.push(frame(id), 1)
      expect(await feed.next(signal)).toEqual(frame(id - 3))
    }
    expect((feed as unknown as { readonly frames: ReadonlyArray<unknown> }).frames.length).toBeLessThan(
      clientLimits.feedFramesMax + 8
    )
  })
})

describe("the wait before connecting again", () => {
  it("doubles up to a limit and is drawn from the upper half", () => {
    expect([1, 2, 3].map((attempt) => backoffMs(attempt, 0))).toEqual([25, 50, 100])
    expect(backoffMs(1, 0.999)).toBe(50)
    expect(backoffMs(1_000, 1)).toBe(clientLimits.backoffMaxMs)
  })
})
