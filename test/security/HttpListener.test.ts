// Goal: nobody comes in who should not: by the wrong name, from another origin, without the token, with an old ticket.
// Method: every combination over raw HTTP and WebSocket upgrades, and a page of another origin in a real browser.
// Verifies: G11
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { connect } from "node:net"
import { describe, expect, it } from "vitest"
import { allowedHosts, checkRequest } from "#src/server/Auth.ts"
import { chromium, dumpPage } from "../support/chromium.ts"
import { reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const { open } = useServers()

/** One raw request; resolves with the status of the answer. */
const statusOf = async (port: number, lines: ReadonlyArray<string>): Promise<number> => {
  const socket = connect({ host: "127.0.0.1", port })
  socket.write(`${lines.join("\r\n")}\r\n\r\n`)
  const [data] = await once(socket, "data")
  socket.destroy()
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(String(data))?.[1])
}

const upgrade = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
]

const hostsOf = (port: number): ReadonlyArray<readonly [string | undefined, boolean]> => [
  [`127.0.0.1:${port}`, true],
  [`localhost:${port}`, true],
  [`LOCALHOST:${port}`, true],
  [`[::1]:${port}`, true],
  ["127.0.0.1", false],
  [`127.0.0.1:${port + 1}`, false],
  [`evil.example:${port}`, false],
  [`127.0.0.1.evil.example:${port}`, false],
  [`localhost.:${port}`, false],
  ["", false]
]

const originsOf = (port: number, host: string): ReadonlyArray<readonly [string | undefined, boolean]> => [
  [undefined, true],
  [`http://${host.toLowerCase()}`, true],
  [`http://127.0.0.1:${port + 1}`, false],
  ["http://evil.example", false],
  [`http://evil.example:${port}`, false],
  ["null", false],
  ["file://", false],
  [`http://127.0.0.1:${port}.evil.example`, false]
]

const credentialsOf = (token: string): ReadonlyArray<readonly [string | undefined, boolean]> => [
  [`Bearer ${token}`, true],
  [`Bearer ${token}x`, false],
  [`Bearer ${token.slice(1)}`, false],
  ["Bearer", false],
  [`Basic ${token}`, false],
  [undefined, false]
]

const cases = (server: TestServer) =>
  hostsOf(server.port).flatMap(([host, isHost]) =>
    originsOf(server.port, host ?? "").flatMap(([origin, isOrigin]) =>
      credentialsOf(server.token).map(([authorization, isKnown]) => ({
        lines: [
          ...(host === undefined ? [] : [`Host: ${host}`]),
          ...(origin === undefined ? [] : [`Origin: ${origin}`]),
          ...(authorization === undefined ? [] : [`Authorization: ${authorization}`])
        ],
        isWelcome: isHost && isOrigin,
        isKnown,
        isAnonymous: authorization === undefined
      }))
    )
  )

describe("the door", () => {
  it("holds for every Host, Origin and token, over HTTP and over WebSocket", async () => {
    const server = await open()
    const all = cases(server)
    for (const { isAnonymous, isKnown, isWelcome, lines } of all) {
      const overHttp = isWelcome ? (isKnown ? 200 : 401) : 403
      expect(await statusOf(server.port, ["GET /metrics HTTP/1.1", ...lines]), lines.join("; ")).toBe(overHttp)
      const health = isWelcome ? 200 : 403
      expect(await statusOf(server.port, ["GET /healthz HTTP/1.1", ...lines]), lines.join("; ")).toBe(health)
      // Without a header the token comes in the first frame.
      const overSocket = isWelcome ? (isKnown || isAnonymous ? 101 : 401) : 403
      const answered = await statusOf(server.port, ["GET /ws HTTP/1.1", ...lines, ...upgrade])
      expect(answered, lines.join("; ")).toBe(overSocket)
    }
    reportCount("combinations of Host, Origin, token and way in", all.length * 3)
  })

  it("refuses a request without Host", async () => {
    const server = await open()
    const lines = [`Authorization: Bearer ${server.token}`]
    expect(await statusOf(server.port, ["GET /metrics HTTP/1.0", ...lines])).toBe(403)
    expect(await statusOf(server.port, ["GET /metrics HTTP/1.1", ...lines])).toBe(400)
  })

  it("takes no token from the address", async () => {
    const { port, token } = await open()
    for (const path of [`/metrics?token=${token}`, `/ws?token=${token}`, `/v1/conversations?access_token=${token}`]) {
      expect(await statusOf(port, [`GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`])).toBe(401)
    }
    const socket = await Socket.open(`http://127.0.0.1:${port}`)
    expect((await socket.error("hello", { protocol: 1 })).code).toBe("unauthorized")
  })

  it("answers requests to addresses that are none, and stays", async () => {
    const { port, token } = await open()
    const lines = [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`]
    for (const target of ["//", "///ws", "/%", "/\\\\evil/ws", "http://evil.example/ws", "*", "/ws/../..//"]) {
      expect(await statusOf(port, [`GET ${target} HTTP/1.1`, ...lines])).toBeGreaterThanOrEqual(400)
      expect(await statusOf(port, [`GET ${target} HTTP/1.1`, ...lines, ...upgrade])).toBeGreaterThanOrEqual(400)
    }
    expect(await statusOf(port, ["GET /metrics HTTP/1.1", ...lines])).toBe(200)
  })

  it("knows no other host or origin by its shape", () => {
    const hosts = allowedHosts("127.0.0.1", 4600)
    expect(checkRequest({ host: "127.0.0.1:4600", origin: "http://127.0.0.1:4600" }, hosts)).toBe("welcome")
    expect(checkRequest({ host: "127.0.0.1:4600", origin: "" }, hosts)).toBe("wrong_origin")
    expect(checkRequest({ host: "localhost:4600", origin: "http://127.0.0.1:4600" }, hosts)).toBe("wrong_origin")
    expect(checkRequest({ host: undefined }, hosts)).toBe("wrong_host")
  })
})

describe("tickets", () => {
  const ticketOf = async (server: TestServer): Promise<string> => {
    const headers = { authorization: `Bearer ${server.token}` }
    const response = await fetch(`${server.url}/v1/tickets`, { method: "POST", headers })
    expect(response.status).toBe(200)
    return ((await response.json()) as { readonly ticket: string }).ticket
  }

  it("let one connection in, once", async () => {
    const server = await open()
    const ticket = await ticketOf(server)
    const first = await Socket.open(server.url)
    expect(await first.ok("hello", { protocol: 1, ticket })).toMatchObject({ principal: "local" })
    const second = await Socket.open(server.url)
    expect((await second.error("hello", { protocol: 1, ticket })).code).toBe("unauthorized")
    expect(await second.closed()).toBe(4001)
  })

  it("are for those who have the token, and are no token", async () => {
    const server = await open()
    expect((await fetch(`${server.url}/v1/tickets`, { method: "POST" })).status).toBe(401)
    const ticket = await ticketOf(server)
    const asToken = await Socket.open(server.url)
    expect((await asToken.error("hello", { protocol: 1, token: ticket })).code).toBe("unauthorized")
    const headers = { authorization: `Bearer ${ticket}` }
    expect((await fetch(`${server.url}/metrics`, { headers })).status).toBe(401)
  })
})

describe("a page of another origin", () => {
  it("in a real browser is refused, whatever it tries", async (context) => {
    requirePart(context, chromium)
    const server = await open()
    const page = createServer((_request, response) => {
      response.setHeader("content-type", "text/html")
      response.end(attack(server.url, server.token))
    })
    await once(page.listen(0, "127.0.0.1"), "listening")
    try {
      const { port } = page.address() as AddressInfo
      const text = /<pre[^>]*>([^<]*)/.exec(await dumpPage(`http://127.0.0.1:${port}/`))?.[1] ?? ""
      expect(text).toContain("socket: refused")
      expect(text).toContain("fetch: refused")
      expect(text).toContain("post: refused")
      expect(text).toContain("events: refused")
      expect(text).not.toContain("came in")
      const socket = await server.connect()
      expect(await socket.ok("conversation.list")).toEqual({ items: [] })
    } finally {
      page.closeAllConnections()
      page.close()
    }
  }, 60_000)
})

/** A page that has even the token, and tries every way in. */
const attack = (url: string, token: string): string => `<!doctype html><body><pre id="out"></pre><script>
const out = (line) => { document.getElementById("out").textContent += line + "\\n" }
const url = ${JSON.stringify(url)}, token = ${JSON.stringify(token)}
const socket = new WebSocket(url.replace("http", "ws") + "/ws")
socket.onopen = () => out("socket: came in")
socket.onerror = () => out("socket: refused")
fetch(url + "/v1/conversations", { headers: { authorization: "Bearer " + token } })
  .then(() => out("fetch: came in"), () => out("fetch: refused"))
fetch(url + "/v1/rpc", { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" },
  body: JSON.stringify({ id: "1", op: "conversation.create" }) })
  .then((answer) => out(answer.type === "opaque" ? "post: refused" : "post: came in"), () => out("post: refused"))
const events = new EventSource(url + "/v1/conversations/conv_00000000/events")
events.onopen = () => out("events: came in")
events.onerror = () => { events.close(); out("events: refused") }
</script></body>`
