// Goal: `fetch_url` gives a model the text of a page, within bounds. Method: a real server that serves pages, odd ones,
// packed ones and ones without end.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type RequestListener, type Server } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TLSSocket } from "node:tls"
import { gzipSync } from "node:zlib"
import { afterEach, describe, expect, it } from "vitest"
import { makeFetchUrl } from "#src/tool/builtin/fetch/FetchUrl.ts"
import { readHtml } from "#src/tool/builtin/fetch/Html.ts"
import { fetchLimits } from "#src/tool/builtin/fetch/Limits.ts"
import { growth } from "../support/cost.ts"
import { type Part, programRuns, requirePart } from "../support/require.ts"
import { runTool, type TestContext } from "../support/tool/runTool.ts"

const open = new Set<Server>()
afterEach(() => {
  for (const server of open) {
    server.closeAllConnections()
    server.close()
  }
  open.clear()
})

const serve = async (listener: RequestListener) => {
  const server = createServer(listener)
  open.add(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

interface Asked {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly raw?: boolean
  readonly addresses?: ReadonlyArray<string>
  readonly ports?: Readonly<Record<string, number>>
}

const get = async (port: number, asked: Asked = {}) => {
  const { addresses = ["93.184.216.34"], ports = {}, raw, signal = new AbortController().signal, timeoutMs } = asked
  const tool = makeFetchUrl({
    resolve: async () => addresses,
    dial: (address) => ({ host: "127.0.0.1", port: ports[address] ?? port }),
    ...(timeoutMs === undefined ? {} : { timeoutMs })
  })
  const input = { url: "http://example.org/page", ...(raw === undefined ? {} : { raw }) }
  return runTool(tool, input, { signal } as unknown as TestContext)
}

const answering = (type: string, body: string | Buffer, more: Record<string, string> = {}, status = 200) =>
  serve((_, response) => response.writeHead(status, { "content-type": type, ...more }).end(body))

describe("a page", () => {
  it("is given as its text, with its title and where its links lead", async () => {
    const html = `<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head>
      <body><script>alert("<p>no</p>")</script><h1>Head</h1><p>One<br>two &lt;three&gt; &#x263a;</p>
      <ul><li>a</li><li><a href="/x?y=1">b</a></li></ul><!-- <p>hidden</p> --><noscript>no</noscript></body></html>`
    const outcome = await get(await answering("text/html; charset=utf-8", html))
    expect(outcome.status).toBe("success")
    expect(outcome.output).toMatch(
      /^http:\/\/example\.org\/page \(200, text\/html; charset=utf-8, \d+ bytes\)\nA & B\n/
    )
    for (const part of ["Head\n", "One\ntwo <three> ☺", "- a", "- b (http://example.org/x?y=1)"])
      expect(outcome.output).toContain(part)
    for (const part of ["alert", "hidden", "p{}", "no</p>", "\nno"]) expect(outcome.output).not.toContain(part)
  })

  it("is given as it is when that is asked for, or when it is no HTML", async () => {
    const html = await answering("text/html", "<p>x</p>")
    expect((await get(html, { raw: true })).output).toContain("<p>x</p>")
    expect((await get(await answering("application/vnd.api+json", '{"a":1}'))).output).toContain('{"a":1}')
    expect((await get(await answering("text/plain; charset=iso-8859-1", Buffer.from([0xe4])))).output).toContain("ä")
  })

  it("that is no text is named and not shown", async () => {
    const image = await get(await answering("image/png", "x"))
    expect(image).toMatchObject({
      status: "error",
      error: { code: "not_text", message: expect.stringContaining("image/png") }
    })
    expect(await get(await answering("text/plain", "a\u0000b"))).toMatchObject({ error: { code: "not_text" } })
  })

  it("that is an error of the server is an error, with what the server says", async () => {
    const outcome = await get(await answering("text/plain", "gone", {}, 404))
    expect(outcome).toMatchObject({
      status: "error",
      error: { code: "http_error" },
      output: expect.stringContaining("gone")
    })
  })

  it("that is packed is unpacked, and no further than the limit", async () => {
    const small = await answering("text/plain", gzipSync("hello"), { "content-encoding": "gzip" })
    expect((await get(small)).output).toContain("hello")
    const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, 97), { level: 9 })
    const before = process.memoryUsage().rss
    const outcome = await get(await answering("text/plain", bomb, { "content-encoding": "gzip" }))
    const grownMiB = (process.memoryUsage().rss - before) / 1_048_576
    console.log(
      `bomb: ${bomb.length} bytes of 200 MiB, ${outcome.output?.length} characters kept, memory +${grownMiB.toFixed(0)} MiB`
    )
    expect(outcome.output).toContain(`${fetchLimits.bodyBytesMax} bytes, cut there`)
    expect(outcome.output?.length).toBeLessThan(fetchLimits.bodyBytesMax + 1000)
    expect(grownMiB).toBeLessThan(128)
    const broken = await answering("text/plain", "no gzip", { "content-encoding": "gzip" })
    expect(await get(broken)).toMatchObject({ status: "error", error: { code: "fetch_failed" } })
    const odd = await answering("text/plain", "x", { "content-encoding": "secret" })
    expect(await get(odd)).toMatchObject({ error: { code: "fetch_failed" } })
  })

  it("without end is cut", async () => {
    const port = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/plain" })
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        if (!response.destroyed) response.once("drain", more)
      }
      more()
    })
    expect((await get(port)).output).toContain("cut there")
  })

  it("that does not come is a typed end, at the limit or when the call is stopped", async () => {
    const silent = await serve(() => undefined)
    expect(await get(silent, { timeoutMs: 200 })).toMatchObject({ status: "error", error: { code: "fetch_timeout" } })
    const slow = await serve((_, response) => void response.writeHead(200, { "content-type": "text/plain" }).write("a"))
    expect(await get(slow, { timeoutMs: 200 })).toMatchObject({ error: { code: "fetch_timeout" } })
    const stop = new AbortController()
    const stopped = get(silent, { signal: stop.signal })
    stop.abort()
    expect(await stopped).toMatchObject({ status: "error", error: { code: "fetch_failed" } })
    const cut = await serve((request) => void request.socket.destroy())
    expect(await get(cut)).toMatchObject({ error: { code: "fetch_failed" } })
  })

  it("is found at the next address when the first does not answer", async () => {
    const port = await answering("text/plain", "here")
    const gone = await serve(() => undefined)
    for (const server of [...open].slice(-1)) server.close()
    const outcome = await get(port, { addresses: ["93.184.216.34", "93.184.216.35"], ports: { "93.184.216.34": gone } })
    expect(outcome.output).toContain("here")
  })

  it("is in question for its host alone", () => {
    const tool = makeFetchUrl()
    expect(tool.access({ url: "https://example.org/x" })).toEqual({ url: "https://example.org/x" })
    expect(tool).toMatchObject({ mutating: false, effect_class: "idempotent", provenance: "builtin" })
  })
})

const openssl: Part = {
  name: "openssl",
  isThere: () => programRuns("openssl", ["version"]),
  remedy: "apt-get install openssl"
}

/** A server with a certificate of its own for the name, and that certificate. */
const serveSecurely = async (name: string) => {
  const directory = mkdtempSync(join(tmpdir(), "echs-tls-"))
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")]
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`]
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
  spawnSync("openssl", [...made, "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" })
  const pem = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") }
  rmSync(directory, { recursive: true })
  const named: Array<string> = []
  const server = createSecureServer(pem, (request, response) => {
    named.push((request.socket as TLSSocket).servername || "")
    response.writeHead(200, { "content-type": "text/plain" }).end("secure")
  })
  open.add(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { port: (server.address() as AddressInfo).port, certificate: pem.cert, named }
}

describe("a page over https", () => {
  const get = (port: number, certificates?: string) =>
    runTool(
      makeFetchUrl({
        resolve: async () => ["93.184.216.34"],
        dial: () => ({ host: "127.0.0.1", port }),
        ...(certificates === undefined ? {} : { certificates })
      }),
      { url: "https://example.org/" },
      {} as unknown as TestContext
    )

  it("is read when the certificate is of the host that was asked for, and not otherwise", async (context) => {
    requirePart(context, openssl)
    const right = await serveSecurely("example.org")
    expect(await get(right.port, right.certificate)).toMatchObject({ status: "success" })
    expect(right.named).toEqual(["example.org"])
    expect(await get(right.port)).toMatchObject({ status: "error", error: { code: "fetch_failed" } })
    const wrong = await serveSecurely("other.example")
    expect(await get(wrong.port, wrong.certificate)).toMatchObject({ error: { code: "fetch_failed" } })
    expect(wrong.named).toEqual([])
  })
})

describe("reading HTML", () => {
  const base = new URL("https://example.org/dir/")
  it.each([
    ["plain text", "plain text"],
    ["a < b && c > d", "a < b && c > d"],
    ["<p>a<p>b", "a\nb"],
    ["<script>x", ""],
    ["a<!-- never closed", "a"],
    ["<a href='javascript:x'>y</a>", "y"],
    ['<a href="z">y</a>', "y (https://example.org/dir/z)"],
    ['<img alt="a > b">c', "c"],
    ["<head><title>t", "t"],
    ["&unknown; &#0; &#xd800; &#99999999;", "&unknown; \ufffd \ufffd &#99999999;"]
  ])("%j reads %j", (html, text) => {
    expect(readHtml(html, base).text).toBe(text)
  })

  it("takes time in proportion to the page", () => {
    const hostile = ["<", "<a ", "&", '<a href="', "<!--", "<head>", " \t", "<script>"]
    for (const piece of hostile) {
      const read = (times: number) => readHtml(piece.repeat(times), base)
      expect(growth(read, 50_000), piece).toBeLessThan(3)
    }
  })
})
