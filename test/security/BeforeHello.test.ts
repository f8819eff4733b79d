// Goal: whoever has not said hello costs next to nothing: 4 KiB, and a few seconds. Method: a running server, raw sockets
// that send what no client would.
import { once } from "node:events"
import { connect, type Socket as RawSocket } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { limits } from "#src/wire/WireLimits.ts"
import { Socket } from "../support/server/Socket.ts"
import { useServers } from "../support/server/TestServer.ts"

const { open } = useServers()
let raws: Array<RawSocket> = []
afterEach(() => {
  for (const raw of raws) raw.destroy()
  raws = []
})

const rawTo = async (url: string): Promise<RawSocket> => {
  const { hostname, port } = new URL(url)
  const raw = connect(Number(port), hostname)
  raws.push(raw)
  raw.on("error", () => undefined)
  await once(raw, "connect")
  return raw
}

const upgraded = async (url: string): Promise<RawSocket> => {
  const raw = await rawTo(url)
  const key = Buffer.alloc(16).toString("base64")
  raw.write(
    `GET /ws HTTP/1.1\r\nhost: ${new URL(url).host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`
  )
  const [answer] = await once(raw, "data")
  expect(String(answer)).toContain("101 Switching Protocols")
  return raw
}

/** The head of a masked text frame of so many bytes. */
const frameHead = (bytes: number): Buffer => {
  const head = Buffer.alloc(14)
  head[0] = 0x81
  head[1] = 0xff
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

/** Eight masked pings of 122 bytes each. */
const pings = Buffer.concat(
  Array.from({ length: 8 }, () => Buffer.concat([Buffer.from([0x89, 0xfa]), Buffer.alloc(126)]))
)

const ended = (raw: RawSocket): Promise<void> =>
  new Promise((resolve) => {
    raw.resume()
    if (raw.closed) resolve()
    else raw.once("close", () => resolve())
  })

describe("before hello", () => {
  it.each([
    ["one large message that never ends", frameHead(1_000_000), Buffer.alloc(1_024)],
    ["ping after ping", Buffer.alloc(0), pings]
  ])("a socket that sends %s is sent away after 4 KiB", async (_what, head, piece) => {
    const server = await open()
    const raw = await upgraded(server.url)
    const gone = ended(raw)
    raw.write(head)
    // Well below the limit of a message, and well above that of a hello.
    const sending = setInterval(() => raw.write(piece), 1)
    await gone.finally(() => clearInterval(sending))
    expect(raw.bytesWritten).toBeGreaterThan(limits.helloBytesMax)
    expect(raw.bytesWritten).toBeLessThan(900_000)
  })

  it("is enough room for every hello, also with requests right behind it", async () => {
    const server = await open()
    const socket = await Socket.open(server.url)
    const hello = JSON.stringify({ id: "h", op: "hello", protocol: 1, token: server.token })
    const create = JSON.stringify({ id: "c", op: "conversation.create", title: "x".repeat(100_000) })
    socket.raw.send(hello)
    socket.raw.send(create)
    await socket.until(() => socket.answers.has("c"))
    expect(socket.answers.get("c")).toHaveProperty("ok")
    // A connection that has said hello may send what the protocol allows.
    expect(await socket.create({ title: "y".repeat(500_000) })).toMatch(/^conv_/)
  })

  it("a socket that does not even answer the goodbye is gone all the same", async () => {
    const server = await open({ door: { helloWithinMs: 20 } })
    await ended(await upgraded(server.url))
    expect(limits.helloWithinMs + limits.helloGoodbyeMs).toBeLessThanOrEqual(5_000)
    expect(limits.helloBytesMax).toBeLessThanOrEqual(4_096)
  })

  it("headers that do not come to their end are waited for no longer than was said", async () => {
    const server = await open({ door: { headersWithinMs: 50 } })
    const raw = await rawTo(server.url)
    raw.write("GET /healthz HTTP/1.1\r\nhost: ")
    const silent = await rawTo(server.url)
    await Promise.all([ended(raw), ended(silent)])
    expect(limits.headersWithinMs + limits.headersCheckedEveryMs).toBeLessThanOrEqual(10_000)
  }, 15_000)
})
