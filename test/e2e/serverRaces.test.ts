// Goal: of two people who decide the same question at once, one decides and the other is told; and a server beside many
// readers that take nothing stays small and quick for the others. Method: real sockets, many rounds, raw readers.
// Verifies: G6
import { once } from "node:events"
import { connect } from "node:net"
import { describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import type { Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const { open } = useServers()

interface Round {
  readonly approved: boolean
  readonly ran: boolean
}

const decideAtOnce = async (
  clients: readonly [Socket, Socket],
  ran: ReadonlySet<string>,
  random: () => number
): Promise<Round> => {
  const [left, right] = clients
  const id = await left.create({ model: "scripted/act" })
  await left.ok("subscribe", { conversation_id: id })
  await left.ok("message.post", { conversation_id: id, content: "go" })
  const of = (kind: string) =>
    left.runes().find((rune) => rune["conversation_id"] === id && rune["kind"] === kind) as
      | { payload: Json }
      | undefined
  await left.until(() => of("tool.approval_requested") !== undefined)
  const { items } = await left.ok("approval.list", { conversation_id: id })
  const [item] = items as ReadonlyArray<Json>
  const call = { conversation_id: id, call_id: item!["call_id"] }
  const approve = (socket: Socket) =>
    socket.ask("approval.approve", { ...call, scope: "once", arguments_hash: item!["arguments_hash"] })
  const deny = (socket: Socket) => socket.ask("approval.deny", { ...call, reason: "no" })
  const isApproveFirst = random() < 0.5
  const [first, second] = isApproveFirst
    ? await Promise.all([approve(left), deny(right)])
    : await Promise.all([deny(left), approve(right)])
  const [approval, denial] = isApproveFirst ? [first, second] : [second, first]
  expect([approval.ok, denial.ok].filter((ok) => ok !== undefined)).toHaveLength(1)
  const loser = approval.ok === undefined ? approval : denial
  const decision = approval.ok === undefined ? "denied" : "approved"
  expect(loser.error).toMatchObject({ code: "already_decided", data: { decision: { decision } } })
  await left.until(() => of("turn.completed") !== undefined)
  return { approved: decision === "approved", ran: ran.has(id) }
}

describe("two who decide at once", () => {
  it("make one decision; the other is told which; what was denied never runs", async () => {
    const rounds = count("approval races", { fast: 200, soak: 10_000 })
    const random = randomFrom(seedFor("approval races"))
    const ran = new Set<string>()
    const server = await open({
      scenarios: scenarios({ act: [step(1, use("act", { how: "well" })), always(say("done"))] }),
      tools: [
        effectTool(
          "act",
          async (_input, context) => {
            ran.add(context.conversation_id)
            return "ran"
          },
          { approval: "ask" }
        )
      ]
    })
    // Several pairs in turn, for no connection may ask for more than so much in a second.
    const pairs: Array<readonly [Socket, Socket]> = []
    for (let pair = 0; pair < 8; pair++) pairs.push([await server.connect(), await server.connect()])
    let approved = 0
    for (let round = 0; round < rounds; round++) {
      const clients = pairs[round % pairs.length]!
      const outcome = await decideAtOnce(clients, ran, random)
      expect(outcome.ran).toBe(outcome.approved)
      if (outcome.approved) approved += 1
      clients[0].pushed.length = 0
    }
    reportCount("approval races with one decision", rounds)
    reportCount("approval races that ended in yes", approved)
  })
})

/** A reader that asks for everything and then takes nothing. */
const stall = async (server: TestServer, id: string) => {
  const socket = connect({ host: "127.0.0.1", port: server.port })
  const lines = [
    "GET /ws HTTP/1.1",
    `Host: 127.0.0.1:${server.port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Authorization: Bearer ${server.token}`
  ]
  socket.write(`${lines.join("\r\n")}\r\n\r\n`)
  await once(socket, "data")
  socket.pause()
  socket.write(masked({ id: "0", op: "hello", protocol: 1 }))
  socket.write(masked({ id: "1", op: "subscribe", conversation_id: id }))
  socket.on("error", () => undefined)
  return socket
}

const masked = (value: unknown): Buffer => {
  const body = Buffer.from(JSON.stringify(value))
  return Buffer.concat([Buffer.from([0x81, 0x80 | body.length, 0, 0, 0, 0]), body])
}

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  [...values].sort((left, right) => left - right)[Math.floor(values.length * share)] ?? 0

/** Counts completed turns and looks at nothing else, so that a hundred of them leave the machine to the server. */
class Counter {
  turns = 0
  lastEventId = 0
  private wake: () => void = () => undefined

  constructor(socket: Socket) {
    socket.raw.removeAllListeners("message")
    socket.raw.on("message", (data: Buffer) => {
      const start = data.toString("latin1", 0, 300)
      const id = /"event_id":(\d+)/.exec(start)
      if (id !== null) this.lastEventId = Number(id[1])
      if (!start.includes('"kind":"turn.completed"')) return
      this.turns += 1
      this.wake()
    })
  }

  async until(turns: number): Promise<void> {
    while (this.turns < turns) await new Promise<void>((resolve) => (this.wake = resolve))
  }
}

const connectLive = async (server: TestServer, id: string): Promise<Counter> => {
  const socket = await server.connect()
  await socket.ok("subscribe", { conversation_id: id })
  return new Counter(socket)
}

const stallMany = async (server: TestServer, id: string, wanted: number) => {
  const readers: Array<Awaited<ReturnType<typeof stall>>> = []
  while (readers.length < wanted) {
    readers.push(...(await Promise.all(Array.from({ length: 100 }, () => stall(server, id)))))
  }
  return readers
}

const MIB = 1_048_576

describe("readers that take nothing", () => {
  it("cost the others nothing, and the server little, until they are sent away", async () => {
    const wanted = count("stalled readers", { fast: 2_000, soak: 4_000 })
    const server = await open({
      door: { stalledMs: 3_000 },
      scenarios: scenarios({ brief: [always(say("noted"))] }),
      model: "scripted/brief"
    })
    const writer = await server.connect()
    const id = await writer.create()
    const live = await Promise.all(Array.from({ length: 100 }, () => connectLive(server, id)))
    const before = process.memoryUsage().rss
    const readers = await stallMany(server, id, wanted)
    const lags: Array<number> = []
    let most = 0
    // Enough to fill every buffer between the server and a reader that takes nothing.
    for (let turn = 1; turn <= 40; turn++) {
      await writer.ok("message.post", { conversation_id: id, content: "x".repeat(200_000) })
      await Promise.all(live.map((counter) => counter.until(2 * turn - 1)))
      const startedMs = performance.now()
      await writer.ok("message.post", { conversation_id: id, content: "x" })
      await Promise.all(live.map((counter) => counter.until(2 * turn)))
      lags.push(performance.now() - startedMs)
      most = Math.max(most, process.memoryUsage().rss)
    }
    const grownMib = (most - before) / MIB
    reportCount("stalled readers beside 100 live ones", readers.length)
    reportCount("MiB the process grew beside stalled readers", Math.round(grownMib))
    reportCount("ms at the 99th percentile for a turn to reach 100 live readers", Math.round(percentile(lags, 0.99)))
    const left = async (): Promise<number> => (await writer.ok("stats"))["connections"] as number
    while ((await left()) > live.length + 1) await new Promise((resolve) => setTimeout(resolve, 100))
    const head = (await writer.ok("conversation.get", { conversation_id: id }))["last_event_id"]
    for (const counter of live) expect(counter.lastEventId).toBe(head)
    for (const reader of readers) reader.destroy()
    expect(grownMib).toBeLessThan(400)
  }, 180_000)
})
