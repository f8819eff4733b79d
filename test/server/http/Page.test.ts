// Goal: a browser gets in with a ticket and stays in with a cookie that nobody else can use; the page may load nothing from
// elsewhere. Method: a real server with a page of two files, asked over HTTP and WebSocket as browsers ask, and as others do.
import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { brotliCompressSync, brotliDecompressSync, gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import type { PageFiles } from "#src/server/http/Page.ts"
import { type TestServer, useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()

const bytes = Buffer.from("<!doctype html><title>page</title>")
const file = (type: string, isImmutable: boolean) => ({
  type,
  isImmutable,
  bytes,
  compressed: { br: brotliCompressSync(bytes), gzip: gzipSync(bytes) }
})
const files = new Map([
  ["/", file("text/html; charset=utf-8", false)],
  ["/page/app-1.js", file("text/javascript; charset=utf-8", true)]
])
const page: PageFiles = { file: async (path) => files.get(path) }

/** As a browser asks: headers that fetch of Node would not send. */
const ask = async (server: TestServer, path: string, headers: Record<string, string> = {}, body?: string) => {
  const asked = request(`${server.url}${path}`, { method: body === undefined ? "GET" : "POST", headers })
  asked.end(body)
  const [response] = (await once(asked, "response")) as [IncomingMessage]
  const pieces: Array<Buffer> = []
  for await (const piece of response) pieces.push(piece as Buffer)
  return { status: response.statusCode, headers: response.headers, bytes: Buffer.concat(pieces) }
}

const ticketOf = async (server: TestServer): Promise<string> => {
  const answer = await ask(server, "/v1/tickets", { authorization: `Bearer ${server.token}` }, "")
  return JSON.parse(answer.bytes.toString()).ticket
}

const signIn = async (server: TestServer): Promise<{ readonly cookie: string; readonly whole: string }> => {
  const ticket = await ticketOf(server)
  const { headers } = await ask(server, "/v1/session", { origin: server.url }, JSON.stringify({ ticket }))
  const [whole = ""] = headers["set-cookie"] ?? []
  return { cookie: whole.split(";")[0] ?? "", whole }
}

/** Says hello without a token; the name of who is let in, or the code with which the server hangs up. */
const hello = async (server: TestServer, headers: Record<string, string>): Promise<string | number> => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws`, { headers })
  await once(socket, "open")
  socket.send(JSON.stringify({ id: "0", op: "hello", protocol: 1 }))
  const said = once(socket, "message").then(([data]) => JSON.parse(String(data)).ok?.principal as string | undefined)
  const closed = once(socket, "close").then(([code]) => code as number)
  const outcome = (await said) ?? (await closed)
  socket.terminate()
  return outcome
}

describe("the page", () => {
  it("is open to everybody, may load nothing from elsewhere and run no text as script", async () => {
    const server = await open({ page })
    const answer = await ask(server, "/", { "accept-encoding": "gzip, br" })
    expect(answer.status).toBe(200)
    expect(answer.headers["content-encoding"]).toBe("br")
    expect(brotliDecompressSync(answer.bytes)).toEqual(bytes)
    const policy = String(answer.headers["content-security-policy"])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(answer.headers["cache-control"]).toBe("no-cache")
    expect((await ask(server, "/page/app-1.js")).headers["cache-control"]).toContain("immutable")
    expect((await ask(server, "/page/nothing.js")).status).toBe(401)
  })

  it("is not there where the server has none", async () => {
    expect((await ask(await open(), "/")).status).toBe(401)
  })
})

describe("a session of a browser", () => {
  it("begins with a ticket, once, and lets the WebSocket in", async () => {
    const server = await open({ page })
    const ticket = await ticketOf(server)
    const begin = () => ask(server, "/v1/session", { origin: server.url }, JSON.stringify({ ticket }))
    const [first, second] = [await begin(), await begin()]
    expect([first.status, second.status]).toEqual([200, 401])
    const [whole = ""] = first.headers["set-cookie"] ?? []
    expect(whole).toMatch(/; HttpOnly; SameSite=Strict/)
    const cookie = whole.split(";")[0] ?? ""
    expect(await hello(server, { cookie, origin: server.url })).toBe("local")
    expect((await ask(server, "/v1/conversations", { cookie, "sec-fetch-site": "same-origin" })).status).toBe(200)
  })

  it("is of no use to another page of the same machine, or without an origin", async () => {
    const server = await open({ page, origins: ["http://127.0.0.1:9"] })
    const { cookie } = await signIn(server)
    expect(await hello(server, { cookie })).toBe(4001)
    expect(await hello(server, { cookie, origin: "http://127.0.0.1:9" })).toBe(4001)
    expect((await ask(server, "/v1/conversations", { cookie })).status).toBe(401)
    expect((await ask(server, "/v1/conversations", { cookie, "sec-fetch-site": "same-site" })).status).toBe(401)
  })

  it("that was altered, or is of another server, is none", async () => {
    const [server, other] = [await open({ page }), await open({ page })]
    const { cookie } = await signIn(server)
    const [name = "", value = ""] = cookie.split("=")
    const [who, , ...rest] = value.split(".")
    const longer = [who, String(Date.now() + 1e12), ...rest].join(".")
    expect(await hello(server, { cookie: `${name}=${longer}`, origin: server.url })).toBe(4001)
    const { cookie: foreign } = await signIn(other)
    expect(await hello(server, { cookie: `${name}=${foreign.split("=")[1]}`, origin: server.url })).toBe(4001)
  })

  it("takes no more than a hello may have from who is unknown", async () => {
    const server = await open({ page })
    const large = JSON.stringify({ ticket: "x".repeat(8_192) })
    expect((await ask(server, "/v1/session", { origin: server.url }, large)).status).not.toBe(200)
  })
})
