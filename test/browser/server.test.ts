// Goal: a page can really use a server: from an origin that the settings name, with the product's client, in a real
// browser, and from no other origin. Method: the server as people start it, the bundled client, pages on ports of their own.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server as HttpServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { build } from "vite"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { chromium } from "../support/chromium.ts"
import { requirePart } from "../support/require.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"

const entry = fileURLToPath(new URL("../../src/client/Client.ts", import.meta.url))

const bundle = async (): Promise<string> => {
  const built = await build({
    configFile: false,
    logLevel: "error",
    build: { write: false, minify: false, lib: { entry, formats: ["es"], fileName: "client" } }
  })
  const [first] = Array.isArray(built) ? built : [built]
  const chunk = first !== undefined && "output" in first ? first.output[0] : undefined
  if (chunk === undefined) throw new Error("nothing was built")
  return chunk.code
}

/** Everything a page would do: over HTTP, with a ticket, and with the client. */
const pageFor = (
  url: string,
  token: string
): string => `<!doctype html><meta charset="utf-8"><body><script type="module">
import { Client } from "/client.js"
const url = ${JSON.stringify(url)}, token = ${JSON.stringify(token)}
const report = {}
const attempt = async (name, work) => { try { report[name] = await work() } catch (error) { report[name] = "refused: " + error } }
const headers = { authorization: "Bearer " + token, "content-type": "application/json" }
await attempt("created", async () => (await fetch(url + "/v1/conversations", { method: "POST", headers, body: "{}" })).status)
await attempt("ticket", async () => {
  const { ticket } = await (await fetch(url + "/v1/tickets", { method: "POST", headers })).json()
  const socket = new WebSocket(url.replace("http", "ws") + "/ws")
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = () => reject("socket") })
  socket.send(JSON.stringify({ id: "1", op: "hello", protocol: 1, ticket }))
  const { data } = await new Promise((resolve, reject) => { socket.onmessage = resolve; socket.onclose = () => reject("closed") })
  return JSON.parse(data).ok.principal
})
await attempt("said", async () => {
  const client = await Client.connect({ endpoint: { url, token }, giveUpAfterMs: 3000 })
  const { conversation_id } = await client.call("conversation.create", { model: "scripted/echo" })
  await client.call("message.post", { conversation_id, content: "from a page" })
  for await (const item of client.tail(conversation_id))
    if (item.rune?.kind === "turn.completed") return item.rune.payload.final_output
})
await fetch("/report", { method: "POST", body: JSON.stringify(report) })
</script>`

type Report = Readonly<Record<string, unknown>>

interface Page {
  readonly http: HttpServer
  readonly origin: string
  readonly reported: Promise<Report>
}

let code = ""
let place = ""
let server: ServerProcess
const pages: Array<Page> = []

const openPage = async (): Promise<Page> => {
  const { promise, resolve } = Promise.withResolvers<Report>()
  const http = createServer((request, response) => {
    if (request.method === "POST") {
      void text(request).then((body) => resolve(JSON.parse(body)))
      return void response.end()
    }
    const isScript = request.url === "/client.js"
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html")
    response.end(isScript ? code : pageFor(server.url, server.token))
  })
  await once(http.listen(0, "127.0.0.1"), "listening")
  const page = { http, origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, reported: promise }
  pages.push(page)
  return page
}

const visit = async ({ origin, reported }: Page): Promise<Report> => {
  const profile = mkdtempSync(join(tmpdir(), "echs-browser-"))
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"]
  const child = spawn("chromium", [...args, `--user-data-dir=${profile}`, `${origin}/`], {
    stdio: "ignore",
    detached: true
  })
  try {
    const gone = once(child, "exit").then(() => {
      throw new Error("the browser ended too early")
    })
    return await Promise.race([reported, gone])
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL")
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

let named: Page
let unnamed: Page

beforeAll(async () => {
  code = await bundle()
  place = mkdtempSync(join(tmpdir(), "echs-browser-server-"))
  named = await openPage()
  unnamed = await openPage()
  const data = join(place, "data")
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(join(data, "config.json"), JSON.stringify({ origins: [named.origin] }))
  server = await startProcess(data)
})

afterAll(async () => {
  for (const { http } of pages) {
    http.closeAllConnections()
    http.close()
  }
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

describe("a page in a browser", { timeout: 60_000 }, () => {
  it("of an origin that the settings name uses the server: HTTP, a ticket, a conversation", async (context) => {
    requirePart(context, chromium)
    expect(await visit(named)).toEqual({ created: 201, ticket: "local", said: "from a page" })
  })

  it("of any other origin does not get in, although it has the token", async (context) => {
    requirePart(context, chromium)
    const report = await visit(unnamed)
    for (const name of ["created", "ticket", "said"]) expect(String(report[name]), name).toMatch(/^refused/)
  })
})
