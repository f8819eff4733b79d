// Goal: whatever an MCP server does, a call has one typed outcome, memory and time are bounded, and nothing of it is left
// behind. Method: a server that misbehaves on demand, as a real process in the sandbox that was found, and a web server
// that breaks the rules of the other transport.
import { readdirSync, readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { mcpLimits } from "#src/tool/mcp/McpLimits.ts"
import { offeredName } from "#src/tool/mcp/Names.ts"
import { conversationServers, globalServers } from "#src/tool/mcp/Settings.ts"
import { reportCount } from "../support/counts.ts"
import { command, useMcpHosts } from "../support/mcp/host.ts"

const open = useMcpHosts()
const bad = (mode: string, more: object = {}) => ({ bad: { command: command(mode), ...more } })

const alive = (mode: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/u.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").endsWith(`badServer.ts\0${mode}\0`)
    } catch {
      return false
    }
  })

describe("an MCP server", { timeout: 40_000 }, () => {
  it("that dies in a call ends that call with one typed error, and lives again for the next", async () => {
    const host = await open(bad("dies_in_call"))
    await host.ready()
    const outcome = await host.call("bad__act")
    expect(outcome).toMatchObject({ status: "unknown", error: { code: "mcp_server_gone", source: "tool" } })
    expect(outcome.error?.message).toMatch(/exit code 3; it said: out of luck; it is not known/)
    expect(await host.call("bad__act")).toMatchObject({ error: { code: "mcp_server_gone" } })
    expect(host.troubles).toHaveLength(2)
    expect(alive("dies_in_call")).toEqual([])
  })

  it("that floods is held back in its pipe, and its answers still come", async () => {
    const host = await open(bad("floods"))
    await host.ready()
    let turns = 0
    const turning = setInterval(() => {
      turns += 1
    }, 1)
    const before = process.memoryUsage().rss
    for (let at = 0; at < 3; at += 1) expect((await host.call("bad__act")).output).toMatch(/^pid \d+$/)
    clearInterval(turning)
    const grownMiB = Math.round((process.memoryUsage().rss - before) / 1_048_576)
    reportCount("MiB grown under a flood of an MCP server", Math.max(0, grownMiB))
    expect(grownMiB).toBeLessThan(64)
    // The event loop turned while the flood was held back.
    expect(turns).toBeGreaterThan(10)
  })

  it.each([
    ["huge", /more than 8388608 bytes/],
    ["endless_line", /more than 8388608 bytes/],
    ["only_garbage", /not the protocol/]
  ])("that sends %s is ended, and the call with it", async (mode, reason) => {
    const host = await open(bad(mode))
    await host.ready()
    const outcome = await host.call("bad__act")
    expect(outcome).toMatchObject({ status: "unknown", error: { code: "mcp_server_gone" } })
    expect(outcome.error?.message).toMatch(reason)
    await expect.poll(() => alive(mode), { timeout: 5_000 }).toEqual([])
  })

  it("that prints to the wrong stream now and then is understood all the same", async () => {
    const host = await open(bad("garbage"))
    await host.ready()
    expect(await host.call("bad__act")).toEqual({ status: "success", output: "fine" })
  })

  it("that answers, asks and tells ever deeper gets its one result, and what is too deep is not offered", async () => {
    const host = await open(bad("deep"))
    await host.ready()
    expect(await host.call("bad__act")).toMatchObject({ status: "error", error: { code: "mcp_protocol_error" } })
    const listed = await open(bad("deep_list"))
    expect((await listed.ready()).map(({ name }) => name)).toEqual(["bad__act"])
  })

  it("that answers twice is heard once", async () => {
    const host = await open(bad("twice"))
    await host.ready()
    expect(await host.call("bad__act")).toEqual({ status: "success", output: "first" })
    expect(await host.call("bad__act")).toEqual({ status: "success", output: "first" })
  })

  it.each([
    ["silent", /no answer to initialize within 300 ms/],
    ["ends_at_once", /exit code 1/],
    ["old", /speaks version 1999-01-01/],
    ["no_list", /its list of tools is no list/]
  ])(
    "that is %s has no tools, holds nobody up for longer than its time, and is tried again later",
    async (mode, why) => {
      const host = await open(bad(mode, mode === "silent" ? { start_timeout_ms: 300 } : {}))
      expect(await host.ready()).toEqual([])
      expect(host.troubles.join()).toMatch(why)
      const troubles = host.troubles.length
      await host.ready()
      await host.ready()
      // Nobody waits for it a second time: it was not tried.
      expect(host.troubles).toHaveLength(troubles)
      const outcome = await host.call("bad__act")
      expect(outcome.status).toBe("error")
      expect(outcome.error?.message).toMatch(why)
      await expect.poll(() => alive(mode), { timeout: 5_000 }).toEqual([])
    }
  )

  it("that is not there at all is a typed error", async () => {
    const host = await open({ bad: { command: ["/no/such/program"] } })
    expect(await host.ready()).toEqual([])
    expect(await host.call("bad__act")).toMatchObject({ status: "error" })
  })

  it("with 10,000 tools offers the first of them, and says how many are left out", async () => {
    const host = await open(bad("many"))
    const tools = await host.ready()
    expect(tools).toHaveLength(mcpLimits.toolsPerServerMax)
    expect(host.troubles).toEqual([
      expect.stringMatching(/^bad: 128 of its tools are offered, 9872 are not: tool_128, /)
    ])
    const chosen = await open(bad("many", { include: ["tool_9999", "tool_5"], exclude: ["tool_5"] }))
    expect((await chosen.ready()).map(({ name }) => name)).toEqual(["bad__tool_9999"])
  })

  it("whose list never ends is cut off", async () => {
    const host = await open(bad("endless_pages"))
    expect(await host.ready()).toHaveLength(mcpLimits.pagesMax)
  })

  it("may name its tools as it likes: each has a name of its own that the providers take, and none is a built-in's", async () => {
    const host = await open(bad("names"))
    const names = (await host.ready()).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^bad__[a-zA-Z0-9_-]{1,59}$/)
    expect(names).toContain("bad__bash")
    expect(names).not.toContain("bash")
    expect(names).toHaveLength(9)
    expect(offeredName("bad", "a.b")).not.toBe(offeredName("bad", "a/b"))
  })

  it("is believed about repeating its tools, and about their harmlessness only where it was told to be", async () => {
    const facts = async (more: object) => {
      const host = await open(bad("names", more))
      const tools = await host.ready()
      return ["reads", "again", "bash"].map((name) => {
        const tool = tools.find((one) => one.name === `bad__${name}`)
        return [tool?.effect_class, tool?.mutating]
      })
    }
    expect(await facts({})).toEqual([
      ["pure", true],
      ["idempotent", true],
      ["effect", true]
    ])
    expect(await facts({ trust_annotations: true })).toEqual([
      ["pure", false],
      ["idempotent", true],
      ["effect", true]
    ])
  })

  it("that answers with an error, gives the model that error", async () => {
    const host = await open(bad("rpc_error"))
    await host.ready()
    expect(await host.call("bad__act")).toMatchObject({
      error: { code: "mcp_error", message: expect.stringContaining("no such thing") }
    })
  })

  it("is told when a call is cancelled, and the next call works", async () => {
    const host = await open(bad("never"))
    await host.ready()
    const cancel = new AbortController()
    const call = host.call("bad__act", {}, cancel.signal)
    setTimeout(() => cancel.abort(), 50)
    expect(await call).toEqual({ status: "cancelled" })
    const after = await host.call("bad__act", { what: "cancelled" })
    expect(JSON.parse(after.output ?? "")).toHaveLength(1)
  })

  it("that asks too much at once is refused what is too much, and what is not offered", async () => {
    const host = await open(bad("asks_back"))
    await host.ready()
    const { output } = await host.call("bad__act")
    expect(Number(/refused (\d+)/u.exec(output ?? "")?.[1])).toBeGreaterThanOrEqual(50)
  })

  it("that changes its tools has the new ones offered", async () => {
    const host = await open(bad("changes"))
    expect(await host.ready()).toHaveLength(1)
    await host.call("bad__act")
    await expect.poll(async () => (await host.ready()).map(({ name }) => name)).toEqual(["bad__act", "bad__more"])
  })

  it("is closed when nobody uses it, and opened again when somebody does", async () => {
    const host = await open(bad("good"), { idleMs: 200 })
    await host.ready()
    const first = (await host.call("bad__act")).output
    await expect.poll(() => alive("good"), { timeout: 10_000 }).toEqual([])
    expect(host.mcp.tools(host.state)).toHaveLength(1)
    const second = (await host.call("bad__act")).output
    expect(first).toMatch(/^pid/)
    expect(second).toMatch(/^pid/)
    expect(host.troubles).toEqual([])
  })

  it("that ignores every request to end is ended", async () => {
    const host = await open(bad("stubborn"))
    await host.ready()
    expect(alive("stubborn").length).toBeGreaterThan(0)
    await host.mcp.close()
    expect(alive("stubborn")).toEqual([])
  })
})

describe("settings of MCP servers", () => {
  const none = (): undefined => undefined
  const reason = (value: object): string => {
    const [one] = globalServers({ x: value }, none)
    return one?._tag === "Invalid" ? one.reason : "it is valid"
  }

  it("are read in both forms of a command", () => {
    const servers = globalServers(
      { a: { command: "npx", args: ["-y", "thing"], env: { A: "1" } }, b: { command: ["npx", "thing"] } },
      none
    )
    expect(servers.map((one) => (one._tag === "Server" ? one.server.reach : one))).toMatchObject([
      { type: "stdio", argv: ["npx", "-y", "thing"], environment: { A: "1" }, network: false },
      { type: "stdio", argv: ["npx", "thing"] }
    ])
  })

  it("that make no sense are refused with the reason", () => {
    expect(reason({})).toMatch(/neither a command nor an address/)
    expect(reason({ command: ["x"], url: "http://x" })).toMatch(/both/)
    expect(reason({ url: "ftp://x" })).toMatch(/url/)
    expect(reason({ command: ["x"], netwrok: true })).toMatch(/netwrok/)
    expect(globalServers({ no__good: { command: ["x"] } }, none)[0]).toMatchObject({ _tag: "Invalid" })
    expect(globalServers([], none)[0]).toMatchObject({ _tag: "Invalid" })
  })

  it("of the server's own may use its variables, those of a conversation may not", () => {
    const own = globalServers({ a: { command: ["x"], env_from: ["KEY"] } }, () => "secret")
    expect(own[0]).toMatchObject({ server: { reach: { environment: { KEY: "secret" } } } })
    const [theirs] = conversationServers([{ type: "mcp", server: "a", command: ["x"], env_from: ["KEY"] }, "bash"])
    expect(theirs).toMatchObject({ _tag: "Invalid", reason: expect.stringContaining("env_from") })
  })
})

describe("an MCP server at an address", { timeout: 20_000 }, () => {
  let http: Server | undefined
  afterEach(() => {
    http?.closeAllConnections()
    http?.close()
  })

  type Reply = (
    body: { readonly id?: number; readonly method?: string },
    response: ServerResponse,
    request: IncomingMessage
  ) => void

  const hello = {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "web", version: "1" }
  }
  const resultOf = (method: string | undefined, annotations: object = {}): object =>
    method === "initialize"
      ? hello
      : method === "tools/list"
        ? { tools: [{ name: "act", inputSchema: { type: "object" }, annotations }] }
        : { content: [{ type: "text", text: "done" }] }

  const json = (response: ServerResponse, value: object): void =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value))

  const serve = async (
    onCall: Reply,
    onGet?: (request: IncomingMessage, response: ServerResponse) => void,
    annotations?: object
  ) => {
    const server = createServer(async (request, response) => {
      if (request.method !== "POST")
        return onGet === undefined ? void response.writeHead(405).end() : onGet(request, response)
      let text = ""
      for await (const piece of request) text += piece
      const body = JSON.parse(text) as { readonly id?: number; readonly method?: string }
      if (body.id === undefined || body.method === undefined) return void response.writeHead(202).end()
      if (body.method === "tools/call") return onCall(body, response, request)
      json(response, { jsonrpc: "2.0", id: body.id, result: resultOf(body.method, annotations) })
    })
    http = server
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const host = await open({ bad: { url: `http://127.0.0.1:${port}/mcp`, headers: { "x-key": "k" } } })
    await host.ready()
    return host
  }
  const answer = (id: number | undefined): string =>
    JSON.stringify({ jsonrpc: "2.0", id, result: resultOf("tools/call") })
  const stream = { "content-type": "text/event-stream" }

  it("answers with JSON or with events, and sees its headers", async () => {
    const seen: Array<unknown> = []
    const host = await serve(({ id }, response, request) => {
      seen.push(request.headers["x-key"], request.headers["mcp-protocol-version"])
      response.writeHead(200, stream)
      response.write(
        `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "call_1", progress: 1, total: 2 } })}\n\n`
      )
      response.end(`data: ${answer(id)}\n\n`)
    })
    expect(await host.call("bad__act")).toEqual({ status: "success", output: "done" })
    expect(seen).toEqual(["k", "2025-06-18"])
    expect(host.progress).toEqual(["1/2\n"])
  })

  const cases: ReadonlyArray<readonly [string, "error" | "unknown", Reply, RegExp]> = [
    ["fails", "unknown", (_body, response) => void response.writeHead(500).end("broken"), /HTTP 500: broken/],
    ["fails behind a proxy", "unknown", (_body, response) => void response.writeHead(502).end(), /HTTP 502/],
    [
      "fails in the words of the protocol",
      "unknown",
      ({ id }, response) =>
        void response
          .writeHead(503, { "content-type": "application/json" })
          .end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message: "half done" } })),
      /HTTP 503: half done/
    ],
    ["refuses", "error", (_body, response) => void response.writeHead(403).end("no"), /HTTP 403: no/],
    ["asks to wait", "error", (_body, response) => void response.writeHead(429).end(), /HTTP 429/],
    [
      "is an error",
      "error",
      ({ id }, response) => json(response, { jsonrpc: "2.0", id, error: { code: -32_602, message: "bad word" } }),
      /bad word/
    ],
    [
      "sends elsewhere",
      "error",
      (_body, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      /HTTP 302/
    ],
    ["says nothing", "unknown", (_body, response) => void response.writeHead(200).end(), /answered with nothing/],
    ["is only taken", "unknown", (_body, response) => void response.writeHead(202).end(), /.+/],
    [
      "says something else",
      "unknown",
      (_body, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
      /text\/html/
    ],
    [
      "is no JSON",
      "unknown",
      (_body, response) => void response.writeHead(200, { "content-type": "application/json" }).end("{"),
      /not the protocol/
    ],
    [
      "is cut",
      "unknown",
      (_body, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "900" })
        response.write('{"jsonrpc":"2.0"', () => response.destroy())
      },
      /.+/
    ],
    [
      "breaks off",
      "unknown",
      (_body, response) => void response.writeHead(200, stream).end(": hello\n\n"),
      /broke off/
    ],
    [
      "breaks off with a reset",
      "unknown",
      (_body, response) => {
        response.writeHead(200, stream)
        response.write(": hello\n\n", () => response.socket?.resetAndDestroy())
      },
      /.+/
    ],
    [
      "breaks off and is not known any more",
      "unknown",
      (_body, response) => void response.writeHead(200, stream).end("id: 7\nretry: 10\ndata:\n\n"),
      /HTTP 405/
    ],
    ["hangs up", "unknown", (_body, response) => void response.destroy(), /.+/],
    ["is a reset", "unknown", (_body, response) => void response.socket?.resetAndDestroy(), /.+/],
    [
      "is endless",
      "unknown",
      (_body, response) => {
        response.writeHead(200, stream).write("data: ")
        const pour = (): void => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
          response.once("drain", pour)
        }
        pour()
      },
      /too long/
    ]
  ]

  it.each(cases)("whose answer %s ends the call as %s, once", async (_name, status, reply, reason) => {
    let calls = 0
    const host = await serve((...call) => {
      calls += 1
      reply(...call)
    })
    const outcome = await host.call("bad__act")
    expect(outcome.status).toBe(status)
    expect(outcome.error?.message).toMatch(reason)
    expect(outcome.error?.message.includes("it is not known whether the call took effect")).toBe(status === "unknown")
    expect(calls).toBe(1)
  })

  it("whose session is over while an answer is awaited is not asked again", async () => {
    let calls = 0
    const host = await serve(
      (_body, response) => {
        calls += 1
        response.writeHead(200, { ...stream, "mcp-session-id": "s1" }).end("id: 7\nretry: 10\ndata:\n\n")
      },
      (_request, response) => void response.writeHead(404).end()
    )
    expect(await host.call("bad__act")).toMatchObject({ status: "unknown", error: { code: "mcp_server_gone" } })
    expect(calls).toBe(1)
  })

  it("that only reads fails with an error when its answer does not come", async () => {
    const host = await serve((_body, response) => void response.destroy(), undefined, { readOnlyHint: true })
    expect(await host.call("bad__act")).toMatchObject({ status: "error", error: { code: "mcp_server_gone" } })
  })

  it("that cannot be reached has done nothing, and says so", async () => {
    const host = await serve((_body, response) => void response.destroy())
    http?.closeAllConnections()
    await new Promise<void>((resolve) => http?.close(() => resolve()))
    // The first may go out on a connection that is just being closed, which nobody can tell from one that broke.
    await host.call("bad__act")
    const outcome = await host.call("bad__act")
    expect(outcome).toMatchObject({ status: "error", error: { code: "mcp_unavailable" } })
    expect(outcome.error?.message).not.toContain("it is not known")
  })

  it("whose stream breaks off is taken up from its last event", async () => {
    let asked: number | undefined
    const from: Array<unknown> = []
    const host = await serve(
      ({ id }, response) => {
        asked = id
        response.writeHead(200, stream).end("id: 7\nretry: 10\ndata:\n\n")
      },
      (request, response) => {
        const last = request.headers["last-event-id"]
        if (last === undefined) return void response.writeHead(405).end()
        from.push(last)
        response.writeHead(200, stream).end(`id: 8\ndata: ${answer(asked)}\n\n`)
      }
    )
    expect(await host.call("bad__act")).toEqual({ status: "success", output: "done" })
    expect(from).toEqual(["7"])
  })
})
