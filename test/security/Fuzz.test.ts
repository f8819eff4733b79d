// Goal: whatever comes over the wire, the server answers or closes, nobody else notices, and nothing goes unhandled.
// Method: mutated messages over real sockets, and raw frames that break the rules of WebSocket, beside a bystander.
import { once } from "node:events"
import { connect, type Socket as NetSocket } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { isOperation, operationNames, operations } from "#src/wire/Operations.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const { open } = useServers()
type Random = () => number

const pick = <A>(random: Random, items: ReadonlyArray<A>): A => items[Math.floor(random() * items.length)]!

const fields = (id: string): Json => ({
  conversation_id: id,
  agent_id: "agt_0000",
  content: [{ type: "text", text: "hello" }],
  mode: "steer",
  title: "t",
  goal: "g",
  plan_id: "plan_1",
  call_id: "call_1",
  hook_run_id: "hookrun_1",
  scope: "once",
  arguments_hash: "0".repeat(64),
  reason: "r",
  at_event_id: 2_000_000,
  after: 1,
  kinds: ["turn.*"],
  limit: 3,
  sub: "s1",
  role: "worker",
  tokens: 5,
  text: "t",
  tools: [{}],
  labels: { a: "b" },
  budget: { usd: 1 },
  policy: { mode: "auto" },
  view: "state_events",
  idempotency_key: "k"
})

const odd: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  0,
  1e308,
  2 ** 53,
  0.5,
  "",
  "*",
  "\u0000",
  "\ud800",
  "../../etc/passwd",
  "conv_zzzzzzzz",
  "__proto__",
  "x".repeat(3000),
  [],
  {},
  [[[[]]]],
  { __proto__: null, constructor: 1 }
]

const mutateTree = (random: Random, value: unknown): unknown => {
  if (random() < 0.25) return pick(random, odd)
  if (Array.isArray(value)) return random() < 0.5 ? [...value, ...value] : value.map((one) => mutateTree(random, one))
  if (typeof value !== "object" || value === null) return random() < 0.5 ? pick(random, odd) : [value]
  const entries = Object.entries(value)
  const at = Math.floor(random() * entries.length)
  return Object.fromEntries(
    entries.flatMap(([key, one], index) => {
      if (index !== at) return [[key, one]]
      return random() < 0.3 ? [] : [[random() < 0.2 ? `${key}x` : key, mutateTree(random, one)]]
    })
  )
}

const mutateText = (random: Random, text: string): string => {
  const at = Math.floor(random() * text.length)
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return text.slice(0, at) + String.fromCharCode(Math.floor(random() * 0xd7ff)) + text.slice(at + 1)
    case 2:
      return text.slice(0, at) + text + text.slice(at)
    case 3:
      return text.replaceAll(pick(random, ['"', ":", "{", "}", ","]), pick(random, ["", "[", "\\", "\u2028", '"']))
    default:
      return `${"[".repeat(Math.floor(random() * 200))}${text}`
  }
}

/** A message near one that would be accepted, if it is not one. */
const message = (random: Random, id: string): string => {
  const op = pick(random, [...operationNames, "hello", "toString", "__proto__"])
  const known = isOperation(op) ? Object.keys(operations[op].input) : []
  const given = Object.entries(fields(id)).filter(([key]) => known.includes(key) || random() < 0.02)
  const valid = { id: `f${Math.floor(random() * 1e6)}`, op, ...Object.fromEntries(given) }
  const mutated = random() < 0.85 ? mutateTree(random, valid) : valid
  const text = JSON.stringify(mutated) ?? "null"
  return random() < 0.3 ? mutateText(random, text) : text
}

const errorsIn = (server: TestServer): ReadonlyArray<string> =>
  server.lines.filter((line) => line.includes('"level":"error"'))

const unhandled: Array<unknown> = []
const note = (error: unknown): void => void unhandled.push(error)

afterEach(() => {
  process.off("unhandledRejection", note)
})

describe("mutated messages", () => {
  it("are answered or end their own connection; nothing goes unhandled", async () => {
    process.on("unhandledRejection", note)
    const wanted = count("mutated messages", { fast: 100_000, soak: 10_000_000 })
    const random = randomFrom(seedFor("mutated messages"))
    const server = await open()
    const bystander = await server.connect()
    const codes = new Map<string, number>()
    let sent = 0
    const lane = async (): Promise<void> => {
      while (sent < wanted) sent += await burst(server, random, codes)
    }
    await Promise.all(Array.from({ length: 4 }, lane))
    expect(codes.get("internal") ?? 0).toBe(0)
    expect(errorsIn(server)).toEqual([])
    expect(unhandled).toEqual([])
    expect([...codes.keys()]).toEqual(expect.arrayContaining(["bad_request", "not_found", "invalid_state"]))
    expect(await bystander.ok("stats")).toHaveProperty("connections")
    reportCount("mutated messages", sent)
  }, 240_000)
})

/** As many messages as one connection may send in a second, each few followed by a good one. */
const burst = async (server: TestServer, random: Random, codes: Map<string, number>): Promise<number> => {
  const socket = await server.connect()
  const id = await socket.create()
  socket.raw.removeAllListeners("message")
  let answered = 0
  socket.raw.on("message", (data: Buffer) => {
    const start = data.toString("latin1", 0, 200)
    if (start.includes('"id":"end"')) answered = 1
    const code = /"error":\{"code":"([a-z_]+)"/.exec(start)?.[1]
    if (code !== undefined) codes.set(code, (codes.get(code) ?? 0) + 1)
  })
  let sent = 0
  for (; sent < 420 && socket.raw.readyState === socket.raw.OPEN; sent++) {
    socket.send(message(random, id))
    if (sent % 8 === 0) socket.send({ id: "g", op: "unsubscribe", sub: "none" })
  }
  socket.send({ id: "end", op: "unsubscribe", sub: "none" })
  const ended = once(socket.raw, "close")
  const answer = new Promise<void>((resolve) => {
    socket.raw.on("message", () => {
      if (answered === 1) resolve()
    })
  })
  await Promise.race([ended, answer])
  socket.raw.terminate()
  return sent
}

const handshake = (server: TestServer): string =>
  [
    "GET /ws HTTP/1.1",
    `Host: 127.0.0.1:${server.port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Authorization: Bearer ${server.token}`,
    "\r\n"
  ].join("\r\n")

const randomBytes = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))

/** A frame that may break any rule there is: opcode, reserved bits, mask, length, fragments, UTF-8. */
const frame = (random: Random): Buffer => {
  const body = randomBytes(random, Math.floor(random() * 40))
  const first = random() < 0.5 ? Math.floor(random() * 256) : pick(random, [0x81, 0x01, 0x80, 0x00, 0x88, 0x89, 0x8a])
  const isMasked = random() < 0.8 ? 0x80 : 0
  const claimed = random() < 0.7 ? body.length : Math.floor(random() * 128)
  const longer = claimed === 126 ? randomBytes(random, 2) : claimed === 127 ? randomBytes(random, 8) : Buffer.alloc(0)
  const mask = isMasked === 0 ? Buffer.alloc(0) : randomBytes(random, 4)
  return Buffer.concat([Buffer.from([first, isMasked | claimed]), longer, mask, body])
}

const breakIn = async (server: TestServer, random: Random): Promise<number> => {
  const socket: NetSocket = connect({ host: "127.0.0.1", port: server.port })
  socket.on("error", () => undefined)
  socket.write(handshake(server))
  await once(socket, "data")
  const frames = Array.from({ length: 8 }, () => frame(random))
  for (const one of frames) socket.write(one)
  if (random() < 0.5) socket.end()
  else socket.destroy()
  socket.resume()
  if (!socket.closed) await once(socket, "close")
  return frames.length
}

describe("raw broken frames", () => {
  it("end their own connection at most; nothing goes unhandled", async () => {
    process.on("unhandledRejection", note)
    const wanted = count("raw broken frames", { fast: 20_000, soak: 1_000_000 })
    const random = randomFrom(seedFor("raw broken frames"))
    const server = await open()
    const bystander = await Socket.open(server.url)
    await bystander.hello(server.token)
    let sent = 0
    const lane = async (): Promise<void> => {
      while (sent < wanted) sent += await breakIn(server, random)
    }
    await Promise.all(Array.from({ length: 16 }, lane))
    const others = async (): Promise<number> => (await bystander.ok("stats"))["connections"] as number
    while ((await others()) > 1) await new Promise((resolve) => setTimeout(resolve, 50))
    expect(errorsIn(server)).toEqual([])
    expect(unhandled).toEqual([])
    reportCount("raw broken frames", sent)
  }, 240_000)
})
