// Goal: the client works in a browser as it does in Node. Method: bundled for browsers, loaded by a page in a real one,
// following a log over dropped connections; the page writes down what it saw.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { build } from "vite"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { chromium } from "../support/chromium.ts"
import { WireServer } from "../support/client/wireServer.ts"
import { requirePart } from "../support/require.ts"

const entry = fileURLToPath(new URL("../../src/client/Client.ts", import.meta.url))
const server = new WireServer()
const runes = 300

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

const page = (url: string, token: string): string => `<!doctype html><meta charset="utf-8"><body><script type="module">
import { Client } from "/client.js"
const changes = []
const client = await Client.connect({
  endpoint: { url: ${JSON.stringify(url)}, token: ${JSON.stringify(token)} },
  onConnection: ({ type }) => changes.push(type)
})
const ids = []
for await (const item of client.tail("conv_00000000")) {
  if (!("rune" in item)) continue
  ids.push(item.rune.event_id)
  if (ids.length % 100 === 0 && ids.length < ${runes}) await client.call("message.post", { conversation_id: "conv_00000000", content: "drop" }).catch(() => {})
  if (ids.length === ${runes}) break
}
await fetch("/report", { method: "POST", body: JSON.stringify({ ids, changes }) })
</script>`

let code = ""
const reported = Promise.withResolvers<{ readonly ids: unknown; readonly changes: unknown }>()
const http = createServer((request, response) => {
  if (request.method === "POST") {
    void text(request).then((body) => reported.resolve(JSON.parse(body)))
    return void response.end()
  }
  const isScript = request.url === "/client.js"
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html")
  response.end(isScript ? code : page(server.url, server.token))
})

/** Opens the page and keeps it open until the work is done. */
const withPage = async <A>(url: string, work: Promise<A>): Promise<A> => {
  const profile = mkdtempSync(join(tmpdir(), "echs-browser-"))
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"]
  const child = spawn("chromium", [...args, `--user-data-dir=${profile}`, url], { stdio: "ignore", detached: true })
  try {
    const gone = once(child, "exit").then(() => {
      throw new Error("the browser ended too early")
    })
    return await Promise.race([work, gone])
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL")
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

beforeAll(async () => {
  code = await bundle()
  server.append(runes)
  await server.start()
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
})

afterAll(async () => {
  http.close()
  await server.stop()
})

describe("the client in a browser", () => {
  it("is one file without anything of Node", () => {
    expect(code).not.toMatch(/from "|require\(|node:/)
  })

  it("follows a log over dropped connections, every rune once", async (context) => {
    requirePart(context, chromium)
    const dropped = new Set<unknown>()
    server.intercept = (message, socket) => {
      const { idempotency_key: key } = message
      if (message["op"] !== "message.post" || dropped.has(key)) return false
      dropped.add(key)
      socket.terminate()
      return true
    }
    const report = await withPage(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`, reported.promise)
    expect(report.ids).toEqual(Array.from({ length: runes }, (_, index) => index + 1))
    expect(report.changes).toEqual(["connected", "lost", "connected", "lost", "connected"])
  })
})
