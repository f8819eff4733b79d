// Goal: `fetch_url` reaches nothing but the open Internet, whatever an address looks like, a name resolves to or a page
// leads to. Method: a table of 80 and more forms, a real server on this machine that must not be reached, and a look at
// every connection that is made.
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { makeFetchUrl } from "#src/tool/builtin/fetch/FetchUrl.ts"
import type { ToolOutcome } from "#src/tool/ToolPort.ts"
import { reportCount } from "../support/counts.ts"
import { runTool, type TestContext } from "../support/tool/runTool.ts"

const names: Readonly<Record<string, ReadonlyArray<string>>> = {
  "public.example.org": ["93.184.216.34"],
  "loopback.example.org": ["127.0.0.1"],
  "loopback6.example.org": ["::1"],
  "mixed.example.org": ["93.184.216.34", "10.0.0.1"],
  "mixed6.example.org": ["2606:2800:220:1::1", "fd00::1"],
  "metadata.example.org": ["169.254.169.254"],
  "mapped.example.org": ["::ffff:192.168.0.1"],
  "zone.example.org": ["fe80::1%eth0"],
  "garbage.example.org": ["not an address"],
  "127.0.0.1.nip.example": ["127.0.0.1"]
}

/** Everything that must be refused, by kind. */
const forms: Readonly<Record<string, ReadonlyArray<string>>> = {
  "addresses of this machine and its network": [
    "http://127.0.0.1/",
    "http://127.1.2.3/",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://0.1.2.3/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.255.255/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://100.64.0.1/",
    "http://100.100.100.200/latest/meta-data/",
    "http://100.127.255.255/",
    "http://192.0.0.192/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.7/",
    "http://203.0.113.7/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://168.63.129.16/"
  ],
  "the same in other forms": [
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://0x7f.1/",
    "http://0xA9FEA9FE/",
    "http://2852039166/",
    "http://0251.0376.0251.0376/",
    "http://%31%32%37%2e%30%2e%30%2e%31/",
    "http://127。0。0。1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127.0.0.1./",
    "http://1572395042/",
    "http://0x5db8d822/"
  ],
  "IPv6, and addresses inside it": [
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:93.184.216.34]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::93.184.216.34]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/"
  ],
  "names of machines nearby, and names that resolve to them": [
    "http://localhost/",
    "http://LOCALHOST./",
    "http://app.localhost/",
    "http://printer.local/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://router/",
    "http://intranet.corp/",
    "http://loopback.example.org/",
    "http://loopback6.example.org/",
    "http://mixed.example.org/",
    "http://mixed6.example.org/",
    "http://metadata.example.org/",
    "http://mapped.example.org/",
    "http://zone.example.org/",
    "http://garbage.example.org/",
    "http://127.0.0.1.nip.example/"
  ],
  "other schemes, ports, credentials and tricks of writing": [
    "file:///etc/passwd",
    "ftp://public.example.org/",
    "gopher://public.example.org:80/_x",
    "data:text/plain,x",
    "javascript:alert(1)",
    "ws://public.example.org/",
    "http://public.example.org:22/",
    "http://public.example.org:6379/",
    "http://public.example.org:25/",
    "http://public.example.org:4600/",
    "http://public.example.org:0/",
    "http://user:secret@public.example.org/",
    "http://user@public.example.org/",
    "http://public.example.org@127.0.0.1/",
    "http://127.0.0.1#@public.example.org/",
    "http://127.0.0.1\\@public.example.org/",
    "http:127.0.0.1/",
    "http:/\\127.0.0.1/",
    "http://public.example.org\r\nx: y/",
    "http://public.example.org /",
    "//127.0.0.1/",
    "not an address",
    ""
  ]
}

let server: Server
let port = 0
let reached: Array<{ readonly path: string; readonly headers: Readonly<Record<string, unknown>> }> = []
let dialled: Array<string> = []
/** What the server answers by path. */
let answer: (path: string) => {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

const page = { status: 200, headers: { "content-type": "text/plain" }, body: "reached" }
const leadsTo = (location: string) => ({ status: 302, headers: { location, "set-cookie": "a=b" }, body: "" })

beforeAll(async () => {
  server = createServer((request, response) => {
    reached.push({ path: request.url ?? "", headers: request.headers })
    const { body, headers, status } = answer(request.url ?? "")
    response.writeHead(status, headers).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
})
beforeEach(() => {
  reached = []
  dialled = []
  answer = () => page
})

const signal = new AbortController().signal

const fetched = (url: string, resolve: (host: string) => ReadonlyArray<string> = (host) => names[host] ?? []) => {
  const tool = makeFetchUrl({
    resolve: async (host) => resolve(host),
    // Whatever is dialled lands on the server of this test, so that nothing is refused for want of an answer.
    dial: (address) => {
      dialled.push(address)
      return { host: "127.0.0.1", port }
    }
  })
  return runTool(tool, { url }, { signal } as unknown as TestContext)
}

const isRefused = ({ error, status }: ToolOutcome): boolean =>
  status === "sandbox_violation" && error?.code === "address_refused"

describe("fetch_url", () => {
  it("refuses every form of an address that is not on the open Internet, and connects to none", async () => {
    let refused = 0
    const open: Array<string> = []
    for (const [kind, urls] of Object.entries(forms)) {
      for (const url of urls) {
        const outcome = await fetched(url)
        if (isRefused(outcome)) refused += 1
        else open.push(`${kind}: ${JSON.stringify(url)} → ${JSON.stringify(outcome)}`)
      }
    }
    const all = Object.values(forms).flat()
    reportCount("forms of addresses that fetch_url refuses", refused)
    expect(open).toEqual([])
    expect(new Set(all).size).toBe(all.length)
    expect(all.length).toBeGreaterThanOrEqual(80)
    expect(dialled).toEqual([])
    expect(reached).toEqual([])
  })

  it("reaches an open address, and only the one that was looked up", async () => {
    let lookups = 0
    const outcome = await fetched("http://public.example.org/page?x=1", () => {
      lookups += 1
      return lookups === 1 ? ["93.184.216.34"] : ["127.0.0.1"]
    })
    expect(outcome).toMatchObject({ status: "success" })
    expect(lookups).toBe(1)
    expect(dialled).toEqual(["93.184.216.34"])
    expect(reached[0]?.path).toBe("/page?x=1")
    expect(reached[0]?.headers).not.toHaveProperty("cookie")
    expect(reached[0]?.headers).not.toHaveProperty("authorization")
    expect(reached[0]?.headers).toMatchObject({ host: "public.example.org" })
  })

  it("refuses what a page leads to as it refuses everything else", async () => {
    // A header carries no blanks and only plain characters, and what has no slashes is a path of the same host.
    const isSent = (url: string): boolean => /^[a-z]+:(\/\/|\/\\|data|text|alert)[\x21-\x7e]*$/.test(url)
    const targets = Object.values(forms).flat().filter(isSent)
    const open: Array<string> = []
    for (const url of targets) {
      answer = () => leadsTo(url)
      reached = []
      const outcome = await fetched("http://public.example.org/start")
      if (!isRefused(outcome) || reached.length !== 1) open.push(`${url} → ${JSON.stringify(outcome)}`)
    }
    reportCount("forms of addresses that fetch_url refuses behind a redirect", targets.length - open.length)
    expect(open).toEqual([])
    expect(targets.length).toBeGreaterThanOrEqual(80)
  })

  it("looks a host up again for every step, and refuses the one that has moved", async () => {
    let lookups = 0
    answer = (path) => (path === "/a" ? leadsTo("/b") : page)
    const outcome = await fetched("http://public.example.org/a", () => {
      lookups += 1
      return lookups === 1 ? ["93.184.216.34"] : ["169.254.169.254"]
    })
    expect(isRefused(outcome)).toBe(true)
    expect(reached.map(({ path }) => path)).toEqual(["/a"])
  })

  it("follows within a host, without cookies, and not for ever", async () => {
    answer = (path) => (path === "/a" ? leadsTo("/b") : page)
    expect(await fetched("http://public.example.org/a")).toMatchObject({ status: "success" })
    expect(reached.map(({ path }) => path)).toEqual(["/a", "/b"])
    expect(reached[1]?.headers).not.toHaveProperty("cookie")
    reached = []
    answer = () => leadsTo("/again")
    expect(await fetched("http://public.example.org/a")).toMatchObject({ error: { code: "too_many_redirects" } })
    expect(reached).toHaveLength(6)
  })

  it("stops at the door of another host and says where it leads", async () => {
    answer = () => leadsTo("http://other.example.org/page")
    const outcome = await fetched("http://public.example.org/", () => ["93.184.216.34"])
    expect(outcome.output).toContain("http://other.example.org/page")
    expect(reached).toHaveLength(1)
    answer = () => leadsTo("http://public.example.org.evil.example/")
    expect((await fetched("http://public.example.org/", () => ["93.184.216.34"])).output).toContain("another host")
  })
})
