// Goal: bytes that runes name can be read by whoever may read runes, whole or in ranges, and a browser never takes them for
// a document. Method: the real server, fetch; ranges are compared with the bytes that were kept.
import { randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import { rangeOf } from "#src/server/http/BlobDownload.ts"
import { type TestServer, useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()
const html = "<!doctype html><script>document.title = 'taken'</script>"

const keep = async ({ token, url }: TestServer, bytes: Uint8Array | string): Promise<string> => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" }
  const response = await fetch(`${url}/v1/blobs`, { method: "POST", headers, body: new Uint8Array(Buffer.from(bytes)) })
  return ((await response.json()) as { readonly sha256: string }).sha256
}

const read = ({ token, url }: TestServer, sha256: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1/blobs/${sha256}`, { headers: { authorization: `Bearer ${token}`, ...headers } })

describe("a blob", () => {
  it("is read whole, larger than a page of it too", async () => {
    const server = await open()
    const bytes = randomBytes(1_500_000)
    const response = await read(server, await keep(server, bytes))
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("application/octet-stream")
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
  })

  it("is read in ranges, and says where it ends", async () => {
    const server = await open()
    const sha256 = await keep(server, "0123456789")
    const cases: ReadonlyArray<readonly [string, number, string, string | null]> = [
      ["bytes=2-4", 206, "234", "bytes 2-4/10"],
      ["bytes=7-", 206, "789", "bytes 7-9/10"],
      ["bytes=-2", 206, "89", "bytes 8-9/10"],
      ["bytes=5-99", 206, "56789", "bytes 5-9/10"],
      ["bytes=10-", 416, "", "bytes */10"],
      ["bytes=4-2", 416, "", "bytes */10"],
      ["lines=1-2", 200, "0123456789", null]
    ]
    for (const [range, status, text, told] of cases) {
      const response = await read(server, sha256, { range })
      expect([range, response.status, await response.text(), response.headers.get("content-range")]).toEqual([
        range,
        status,
        text,
        told
      ])
    }
  })

  it("is never a document, whatever it says it is", async () => {
    const server = await open()
    const { headers } = await read(server, await keep(server, html))
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("content-disposition")).toMatch(/^attachment;/)
    expect(headers.get("content-security-policy")).toContain("default-src 'none'")
    const svg = await read(server, await keep(server, `<svg xmlns="http://www.w3.org/2000/svg">${html}</svg>`))
    expect(svg.headers.get("content-type")).toBe("text/plain; charset=utf-8")
  })

  it("is read by nobody without a token, and is not found where there is none", async () => {
    const server = await open()
    const sha256 = await keep(server, "mine")
    expect((await fetch(`${server.url}/v1/blobs/${sha256}`)).status).toBe(401)
    expect((await read(server, "0".repeat(64))).status).toBe(404)
    for (const wrong of ["..%2f..%2ftoken", "ABC", "0".repeat(63)])
      expect([404, 400]).toContain((await read(server, wrong)).status)
  })

  it("has ranges within its size, for any header", () => {
    expect(rangeOf(undefined, 5)).toBeUndefined()
    expect(rangeOf("bytes=-", 5)).toBeUndefined()
    expect(rangeOf("bytes=0-0,2-3", 5)).toBeUndefined()
    expect(rangeOf("bytes=-99", 5)).toEqual({ from: 0, to: 5 })
  })
})
