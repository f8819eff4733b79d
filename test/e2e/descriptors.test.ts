// Goal: nobody takes the descriptors away that the log needs, and a moment without any is waited out. Method: a real
// server under a real limit, sockets that never say hello, and a limit that is lowered while the server works.
// Verifies: G1
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { connect, type Socket as NetSocket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { Socket } from "../support/server/Socket.ts"

const DESCRIPTORS = 200
/** Three hundred new sockets a second: many more than places for those who say nothing, few enough to leave a CPU to others. */
const AGAIN_AFTER_MS = 2_000

const prlimit = {
  name: "prlimit, as root",
  isThere: () => process.getuid?.() === 0 && spawnSync("prlimit", ["--nofile"]).status === 0,
  remedy: "apt-get install util-linux, and run the tests as root"
} as const

const cleanUp: Array<() => unknown> = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

const start = async (): Promise<{
  readonly server: ServerProcess
  readonly directory: string
  readonly pid: number
}> => {
  const directory = mkdtempSync(join(tmpdir(), "echs-descriptors-"))
  cleanUp.push(() => rmSync(directory, { recursive: true, force: true }))
  const server = await startProcess(directory, { descriptors: DESCRIPTORS })
  cleanUp.push(() => server.end("SIGKILL"))
  const { pid } = JSON.parse(readFileSync(join(directory, "server.json"), "utf8")) as { readonly pid: number }
  return { server, directory, pid }
}

const hello = async (server: ServerProcess): Promise<Socket> => {
  const socket = await Socket.open(server.url)
  cleanUp.push(() => socket.raw.terminate())
  await socket.hello(server.token)
  return socket
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

const healthOf = async (server: ServerProcess): Promise<unknown> => (await fetch(`${server.url}/healthz`)).json()

/** A socket that says nothing, or says that it wants to be a WebSocket and then nothing; it is opened again when closed. */
const silent = (url: URL): (() => void) => {
  let isOver = false
  let current: NetSocket | WebSocket | undefined
  let opened = 0
  const open = (): void => {
    if (isOver) return
    const again = (): void => void setTimeout(open, AGAIN_AFTER_MS).unref()
    if (opened++ % 2 === 0) {
      current = connect(Number(url.port), url.hostname)
      current.on("error", () => undefined)
      current.on("close", again)
    } else {
      current = new WebSocket(`ws://${url.host}/ws`)
      current.on("error", () => undefined)
      current.on("close", again)
    }
  }
  open()
  return () => {
    isOver = true
    if (current instanceof WebSocket) current.terminate()
    else current?.destroy()
  }
}

describe("sockets that never say hello", () => {
  it("take no descriptor that the log or those who say hello need", async () => {
    const { pid, server } = await start()
    const first = await hello(server)
    const url = new URL(server.url)
    const flood = Array.from({ length: 3 * DESCRIPTORS }, () => silent(url))
    cleanUp.push(() => {
      for (const stop of flood) stop()
    })
    let runes = 0
    let most = 0
    for (let round = 0; round < 20; round++) {
      const id = await first.create()
      await first.ok("subscribe", { conversation_id: id })
      await first.ok("message.post", { conversation_id: id, content: `hello ${round}` })
      await first.rune("turn.completed", round + 1)
      most = Math.max(most, descriptorsOf(pid))
      runes = first.runes().length
    }
    // One who comes in the middle of it gets in.
    const second = await retried(() => hello(server))
    expect((await second.ok("conversation.list", { limit: 200 }))["items"]).toHaveLength(20)
    expect(await retried(() => healthOf(server))).toMatchObject({ status: "ok" })
    expect(most).toBeLessThan(DESCRIPTORS)
    expect(server.errors()).not.toMatch(/EMFILE|writes no more|read-only/)
    expect(runes).toBeGreaterThan(20)
    reportCount("descriptors in use under a flood of silent sockets, of 200", most)
  })
})

/** A connection may be closed in a flood before it could say anything; whoever means it tries again. */
const retried = async <A>(attempt: () => Promise<A>): Promise<A> => {
  for (let left = 200; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0) throw error
    }
  }
}

describe("a moment without descriptors", () => {
  it("is answered with busy or waited out, and needs no restart", async (context) => {
    requirePart(context, prlimit)
    const { directory, pid, server } = await start()
    const socket = await hello(server)
    const limit = (soft: number): void => {
      const { stderr, status } = spawnSync("prlimit", [`--pid=${pid}`, `--nofile=${soft}:${DESCRIPTORS}`])
      expect(status, String(stderr)).toBe(0)
    }
    const known = await socket.create()
    await socket.ok("subscribe", { conversation_id: known })
    const large = "x".repeat(200_000)
    let acknowledged = 0
    let refused = 0
    for (let moment = 0; moment < 3; moment++) {
      limit(3)
      for (let post = 0; post < 12; post++) {
        const answers = await Promise.all([
          socket.ask("conversation.create"),
          socket.ask("message.post", { conversation_id: known, content: large }),
          socket.ask("conversation.get", { conversation_id: known })
        ])
        for (const { error } of answers) {
          if (error === undefined) acknowledged += 1
          else {
            expect(error).toMatchObject({ code: "busy" })
            refused += 1
          }
        }
      }
      limit(DESCRIPTORS)
      const id = await socket.create()
      await socket.ok("message.post", { conversation_id: id, content: "and on it goes" })
      expect(await healthOf(server)).toMatchObject({ status: "ok" })
    }
    expect(acknowledged).toBeGreaterThan(0)
    expect(server.errors()).not.toMatch(/writes no more|read-only/)
    reportCount("answers while no file could be opened", acknowledged + refused)
    const { items } = (await socket.ok("conversation.list", { limit: 200 })) as { items: ReadonlyArray<unknown> }
    await server.end("SIGKILL")
    const again = await startProcess(directory)
    cleanUp.push(() => again.end("SIGKILL"))
    const after = await (await hello(again)).ok("conversation.list", { limit: 200 })
    expect(after["items"]).toHaveLength(items.length)
  })
})
