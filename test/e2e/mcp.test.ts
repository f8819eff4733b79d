// Goal: a real MCP server from npm works end to end: its tools are offered, called, asked about, killed in the middle of
// a call and used again. Method: the server "everything" over both transports, a running server, scripted models.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { realpathSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterEach, describe, expect, it } from "vitest"
import { follow, node, useExtendedServers } from "../support/extended.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import type { Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
// The sandbox shows files where they really are, and not through links in a directory for temporary files.
const everything = realpathSync(
  join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js")
)
/** The program, and the packages it needs wherever this checkout lies. */
const mcpServers = {
  everything: { command: [node, everything, "stdio"], readable: [join(import.meta.dirname, "../../node_modules")] }
}

const payload = (rune: Json): Json => rune["payload"] as Json

const post = (socket: Socket, id: string): Promise<Json> =>
  socket.ok("message.post", { conversation_id: id, content: "go" })

describe("a real MCP server", { timeout: 60_000 }, () => {
  it("offers its tools under its own name, and a call comes back with what it said", async () => {
    const server = await servers.open({
      mcpServers,
      scenarios: scenarios({
        sum: [step(1, use("everything__get-sum", { a: 19, b: 23 })), step(2, say("done"))]
      })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, {
      model: "scripted/sum",
      policy: { mode: "full_access" }
    })
    await post(socket, id)
    const result = payload(await socket.rune("tool.result"))
    expect(result).toMatchObject({ status: "success" })
    expect(String(result["output"])).toContain("42")
    const call = payload(await socket.rune("tool.call"))
    expect(call).toMatchObject({ tool_name: "everything__get-sum", provenance: "mcp" })
    await socket.rune("turn.completed")
  })

  it("is asked about in mode auto, although it says that its tool changes nothing", async () => {
    const server = await servers.open({
      mcpServers,
      scenarios: scenarios({
        echo: [step(1, use("everything__echo", { message: "hello there" })), step(2, say("done"))]
      })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, { model: "scripted/echo" })
    await post(socket, id)
    await socket.rune("tool.approval_requested")
    const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
    expect(items[0]).toMatchObject({ tool_name: "everything__echo", arguments: { message: "hello there" } })
    await socket.ok("approval.approve", {
      conversation_id: id,
      call_id: items[0]!["call_id"],
      scope: "once",
      arguments_hash: items[0]!["arguments_hash"]
    })
    expect(String(payload(await socket.rune("tool.result"))["output"])).toContain("hello there")
  })

  it("that defines a tool anew is asked about again, although it was allowed for the conversation", async () => {
    const bad = realpathSync(join(import.meta.dirname, "../support/mcp/badServer.ts"))
    const server = await servers.open({
      mcpServers: { bad: { command: [node, bad, "redefines"] } },
      scenarios: scenarios({ act: [step(1, use("bad__act", {})), step(2, say("done"))] })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, { model: "scripted/act" })
    const allow = async (times: number, scope: string): Promise<Json> => {
      await socket.rune("tool.approval_requested", times)
      const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
      const { arguments_hash, call_id, shown_as } = items[0]!
      await socket.ok("approval.approve", { conversation_id: id, call_id, scope, arguments_hash })
      return shown_as as Json
    }
    await post(socket, id)
    const first = await allow(1, "session")
    await socket.rune("turn.completed", 1)
    await post(socket, id)
    const second = await allow(2, "session")
    expect(String(first["origin"])).toContain("the MCP server bad")
    expect(second["definition"]).not.toBe(first["definition"])
    await socket.rune("turn.completed", 2)
    await post(socket, id)
    await socket.rune("turn.completed", 3)
    expect(socket.runes().filter(({ kind }) => kind === "tool.approval_requested")).toHaveLength(2)
  })

  it("that is killed in the middle of a call ends that call once, with a typed error, and is there for the next", async () => {
    const slow = { duration: 30, steps: 60 }
    const server = await servers.open({
      mcpServers,
      scenarios: scenarios({
        slow: [
          step(1, use("everything__trigger-long-running-operation", slow)),
          step(2, use("everything__get-sum", { a: 1, b: 2 })),
          step(3, say("done"))
        ]
      })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, {
      model: "scripted/slow",
      policy: { mode: "full_access" }
    })
    await post(socket, id)
    const progress = payload(await socket.rune("tool.progress"))
    expect(progress).toMatchObject({ stream: "status" })
    const pids = await pidsOf("server-everything/dist/index.js", server.workspace)
    expect(pids.length).toBeGreaterThan(0)
    for (const pid of pids) killIfThere(pid)
    const first = payload(await socket.rune("tool.result"))
    expect(first).toMatchObject({ status: "error", error: { code: "mcp_server_gone" } })
    expect(first["call_id"]).toBe(payload(await socket.rune("tool.call"))["call_id"])
    const second = payload(await socket.rune("tool.result", 2))
    expect(second).toMatchObject({ status: "success" })
    await socket.rune("turn.completed")
    expect(socket.runes().filter(({ kind }) => kind === "tool.result")).toHaveLength(2)
  })

  it("that asks a person something in the middle of a call gets the answer from the inbox", async () => {
    const server = await servers.open({
      mcpServers,
      scenarios: scenarios({
        ask: [step(1, use("everything__trigger-elicitation-request", {})), step(2, say("done"))]
      })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, {
      model: "scripted/ask",
      policy: { mode: "full_access" }
    })
    await post(socket, id)
    await socket.rune("tool.approval_requested")
    const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
    expect(items[0]).toMatchObject({ tool_name: "everything__question" })
    const other = await server.connect()
    await other.ok("approval.approve", {
      conversation_id: id,
      call_id: items[0]!["call_id"],
      scope: "once",
      arguments_hash: items[0]!["arguments_hash"],
      arguments: { name: "Ada Lovelace", check: true }
    })
    const result = payload(await socket.rune("tool.result", 2))
    expect(String(result["output"])).toContain("Ada Lovelace")
    await socket.rune("turn.completed")
  })
})

describe("a real MCP server at an address", { timeout: 60_000 }, () => {
  const children: Array<ReturnType<typeof spawn>> = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL")
  })

  const startHttp = async (port: number): Promise<ReturnType<typeof spawn>> => {
    const child = spawn(node, [everything, "streamableHttp"], {
      env: { ...process.env, PORT: String(port) },
      stdio: ["ignore", "pipe", "pipe"]
    })
    children.push(child)
    const lines = createInterface({ input: child.stderr! })
    await Promise.race([
      new Promise<void>((resolve) => lines.on("line", (line) => /listening|port/i.test(line) && resolve())),
      once(child, "exit").then(() => Promise.reject(new Error("the MCP server did not start")))
    ])
    return child
  }

  it("is called over Streamable HTTP, and found again after it was restarted", async () => {
    const port = await freePort()
    const child = await startHttp(port)
    const server = await servers.open({
      mcpServers: { web: { url: `http://127.0.0.1:${port}/mcp` } },
      scenarios: scenarios({
        echo: [step(1, use("web__echo", { message: "over http" })), step(2, say("done"))]
      })
    })
    const socket = await server.connect()
    const id = await follow(server, socket, { model: "scripted/echo", policy: { mode: "full_access" } })
    await post(socket, id)
    expect(String(payload(await socket.rune("tool.result"))["output"])).toContain("over http")
    await socket.rune("turn.completed")
    const ended = once(child, "exit")
    child.kill("SIGKILL")
    await ended
    await startHttp(port)
    await post(socket, id)
    expect(String(payload(await socket.rune("tool.result", 2))["output"])).toContain("over http")
    await socket.rune("turn.completed", 2)
  })
})

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** Processes whose command line has the words and whose working directory is the given one. */
/** The end of a sandbox takes what it holds along. */
const killIfThere = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
  }
}

const pidsOf = async (words: string, directory: string): Promise<ReadonlyArray<number>> => {
  const { readdir, readFile, readlink } = await import("node:fs/promises")
  const found: Array<number> = []
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/u.test(name)) continue
    const command = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => "")
    if (command.includes(words) && cwd === directory) found.push(Number(name))
  }
  return found
}
