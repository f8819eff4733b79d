// Goal: a real server process starts, is killed, stops and goes on as promised; clients that come and go at random, over
// restarts, end with exactly the log. Method: real processes, real sockets, plain clients with a cursor each.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"

let directories: Array<string> = []
const processes = new Set<ServerProcess>()

const newDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "echs-serve-"))
  directories.push(directory)
  return directory
}

const start = async (...args: Parameters<typeof startProcess>): Promise<ServerProcess> => {
  const started = await startProcess(...args)
  processes.add(started)
  return started
}

afterEach(async () => {
  for (const server of processes) await server.end("SIGKILL")
  processes.clear()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
  directories = []
})

const connect = async (server: ServerProcess): Promise<Socket> => {
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  return socket
}

const slow = { name: "slow", replies: [{ play: [{ text: "word ".repeat(200), chunk_chars: 5, delay_ms: 15 }] }] }

describe("a server process", () => {
  it("says where it listens, stops on SIGTERM with a word to its clients, and leaves nothing behind", async () => {
    const data = newDirectory()
    const server = await start(data)
    const socket = await connect(server)
    const ended = server.end("SIGTERM")
    expect(await socket.closed()).toBe(1001)
    expect(await ended).toBe(0)
    expect(existsSync(join(data, "server.json"))).toBe(false)
  })

  it("stopped or killed in the middle of a turn, goes on with it at the next start", async () => {
    const data = newDirectory()
    const scenario = join(data, "..", `${data.split("/").at(-1)}.json`)
    writeFileSync(scenario, JSON.stringify(slow))
    directories.push(scenario)
    let id = ""
    let seen = 0
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const server = await start(data)
      const socket = await connect(server)
      if (id === "") id = await socket.create({ model: `scripted/${scenario}` })
      await socket.ok("subscribe", { conversation_id: id, after: seen })
      if (seen === 0) await socket.ok("message.post", { conversation_id: id, content: "go" })
      await socket.rune("turn.assistant_delta", 3)
      expect(socket.runes().some((rune) => rune["kind"] === "turn.completed")).toBe(false)
      seen = socket.runes().at(-1)!["event_id"] as number
      await server.end(signal)
    }
    const server = await start(data)
    const socket = await connect(server)
    await socket.ok("subscribe", { conversation_id: id })
    await socket.rune("turn.completed")
    const kinds = socket.runes().map((rune) => rune["kind"])
    expect(kinds.filter((kind) => kind === "turn.started")).toHaveLength(1)
    expect(kinds.filter((kind) => kind === "turn.completed")).toHaveLength(1)
  })

  it("goes on with a turn also when its catalog was damaged or is gone, and lists it again", async () => {
    const data = newDirectory()
    const scenario = join(data, "..", `${data.split("/").at(-1)}.json`)
    writeFileSync(scenario, JSON.stringify(slow))
    directories.push(scenario)
    const first = await start(data)
    const before = await connect(first)
    const id = await before.create({ model: `scripted/${scenario}` })
    await before.ok("subscribe", { conversation_id: id })
    await before.ok("message.post", { conversation_id: id, content: "go" })
    await before.rune("turn.assistant_delta", 3)
    await first.end("SIGTERM")
    const catalog = join(data, "catalog.sqlite")
    const bytes = readFileSync(catalog)
    writeFileSync(catalog, bytes.fill(0x5a, 4096))
    const server = await start(data)
    const socket = await connect(server)
    await socket.ok("subscribe", { conversation_id: id })
    await socket.rune("turn.completed")
    for (const name of ["", "-wal", "-shm"]) rmSync(`${catalog}${name}`, { force: true })
    const list = (await socket.ok("conversation.list", {})) as { readonly items: ReadonlyArray<Json> }
    expect(list.items.map((item) => item["conversation_id"])).toEqual([id])
  })

  it("refuses a second server on the same data, and a public address without a token", async () => {
    const data = newDirectory()
    await start(data)
    await expect(startProcess(data)).rejects.toThrow(/ended with 6 /)
    await expect(startProcess(newDirectory(), { args: ["--host", "0.0.0.0"] })).rejects.toThrow(/refusing to listen/)
    await expect(startProcess(newDirectory(), { args: ["--port", "70000"] })).rejects.toThrow(/ended with 2 /)
  })

  it("never writes its token into its log", async () => {
    const data = newDirectory()
    const server = await start(data, { args: ["--log", "debug"] })
    const socket = await connect(server)
    await socket.create({ title: "x" })
    await Socket.open(server.url).then((guest) => guest.ask("hello", { protocol: 1, token: "wrong-token-in-the-log" }))
    await fetch(`${server.url}/v1/conversations`, { headers: { authorization: `Bearer ${server.token}x` } })
    await server.end("SIGTERM")
    expect(server.errors()).toContain("conversation.create")
    expect(server.errors()).not.toContain(server.token)
    expect(server.errors()).not.toContain("wrong-token-in-the-log")
  })
})

/** A client that keeps a cursor, is cut off at random, and comes back. */
class Wanderer {
  readonly seen: Array<number> = []
  private readonly random: () => number
  private readonly conversationId: string
  reconnects = 0
  socket: Socket | undefined

  constructor(conversationId: string, random: () => number) {
    this.conversationId = conversationId
    this.random = random
  }

  private get cursor(): number {
    return this.seen.at(-1) ?? 0
  }

  /** Follows until it has the event, however often it is cut off. */
  async follow(server: () => { readonly url: string; readonly token: string }, until: () => number): Promise<void> {
    while (this.cursor < until()) {
      try {
        await this.once(server(), until)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20 + this.random() * 50))
      }
      this.reconnects += 1
    }
  }

  private async once(server: { readonly url: string; readonly token: string }, until: () => number): Promise<void> {
    const socket = await Socket.open(server.url, { handshakeTimeout: 5_000 })
    this.socket = socket
    await socket.hello(server.token)
    const { head } = await socket.ok("subscribe", { conversation_id: this.conversationId, after: this.cursor })
    const enough = 1 + Math.floor(this.random() * 40)
    await socket.until(() => {
      const runes = socket.runes()
      const last = (runes.at(-1)?.["event_id"] as number | undefined) ?? this.cursor
      return socket.closeCode !== undefined || runes.length >= enough || last >= until()
    })
    expect(head).toBeGreaterThanOrEqual(this.cursor)
    for (const rune of socket.runes()) this.seen.push(rune["event_id"] as number)
    socket.raw.terminate()
  }
}

describe("clients that are cut off", () => {
  it("end with exactly the log, over drops and restarts of the server", async () => {
    const clients = count("clients cut off at random", { fast: 200, soak: 500 })
    const random = randomFrom(seedFor("clients cut off"))
    const data = newDirectory()
    let server = await start(data)
    const port = Number(new URL(server.url).port)
    const writer = await connect(server)
    const id = await writer.create()
    let target = Number.POSITIVE_INFINITY
    const wanderers = Array.from({ length: clients }, () => new Wanderer(id, random))
    const followed = wanderers.map((one) =>
      one.follow(
        () => server,
        () => target
      )
    )
    let posts = 0
    let client = writer
    for (const signal of ["SIGTERM", "SIGKILL", "SIGTERM", "none"] as const) {
      for (let at = 0; at < 25; at++) {
        const fields = { conversation_id: id, content: `message ${++posts}`, idempotency_key: `key ${posts}` }
        await client.ok("message.post", fields)
      }
      if (signal === "none") break
      await server.end(signal)
      server = await start(data, { port })
      client = await connect(server)
    }
    const done = await connect(server)
    await done.ok("subscribe", { conversation_id: id, kinds: ["turn.completed"] })
    await done.rune("turn.completed", posts)
    target = (await done.ok("conversation.get", { conversation_id: id }))["last_event_id"] as number
    for (const { socket } of wanderers) socket?.raw.terminate()
    await Promise.all(followed)
    const lines = await fetch(`${server.url}/v1/conversations/${id}/runes`, {
      headers: { authorization: `Bearer ${server.token}` }
    })
    const log = (await lines.text())
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as Json)["event_id"])
    expect(log).toEqual(Array.from({ length: target }, (_, index) => index + 1))
    for (const { seen } of wanderers) expect(seen).toEqual(log)
    reportCount("clients cut off whose runes are the log", wanderers.length)
    reportCount(
      "reconnects of clients that were cut off",
      wanderers.reduce((sum, one) => sum + one.reconnects, 0)
    )
    expect(readFileSync(join(data, "token"), "utf8")).not.toBe("")
  }, 120_000)
})
