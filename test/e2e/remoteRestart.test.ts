// Goal: what a client runs keeps its outcome whatever happens to the server: it runs once, its result is on record once,
// and whoever sends a result late or again is answered with the first. Method: `echs serve` as a process that is killed or
// stopped in every phase of a call, the published client; plain sockets and servers in this process for the answers.
// Verifies: INV-TOOL-TERMINAL
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { type AnyRune, Client } from "#src/client/Client.ts"
import { count, reportCount } from "../support/counts.ts"
import { follow, put, useExtendedServers } from "../support/extended.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import type { Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
let place = ""
let running: ServerProcess | undefined
afterEach(async () => {
  await running?.end("SIGKILL")
  running = undefined
  if (place !== "") rmSync(place, { recursive: true, force: true })
})

const payload = (rune: Json | AnyRune | undefined): Json => (rune?.["payload"] ?? {}) as Json
const pay = { name: "pay", description: "pays an invoice", parameters: { type: "object" } }
const pays = scenarios({ it: [step(1, use("pay", { invoice: 7 })), step(2, say("done"))] })

const phases = ["while it runs", "as it answers", "after it has answered"] as const

interface Paid {
  readonly runs: Array<string>
  /** Resolves when the tool has been started so many times. */
  readonly started: (times: number) => Promise<void>
  readonly end: (output: string) => void
}

/** The tool of a client that ends when the test says so. */
const payer = (): Paid & { readonly run: (input: unknown, call: { readonly callId: string }) => Promise<string> } => {
  const runs: Array<string> = []
  let wake = (): void => undefined
  let finish: (output: string) => void = () => undefined
  return {
    runs,
    run: (_input, { callId }) => {
      runs.push(callId)
      wake()
      return new Promise((resolve) => {
        finish = resolve
      })
    },
    started: async (times) => {
      while (runs.length < times)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    },
    end: (output) => finish(output)
  }
}

describe("a call that a client runs, and a server that ends", { timeout: 120_000 }, () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "by %s, in every phase: it ran once and has its own result",
    async (signal) => {
      const ends = count(`servers ended by ${signal} under a client's call`, { fast: 3, soak: 30 })
      place = mkdtempSync(join(tmpdir(), "echs-remote-"))
      const data = join(place, "data")
      const scenario = join(place, "scenario.json")
      put(scenario, pays["it"] as object)
      running = await startProcess(data)
      const connect = (): Promise<Client> =>
        Client.connect({ endpoint: async () => ({ url: running!.url, token: running!.token }), random: () => 0 })
      const client = await connect()
      const watcher = await connect()
      const policy = { mode: "full_access" } as const
      const { conversation_id: id } = await client.call("conversation.create", {
        model: `scripted/${scenario}`,
        policy
      })
      const runes: Array<AnyRune> = []
      let heard = (): void => undefined
      const tail = (async () => {
        for await (const item of watcher.tail(id, { after: 0 })) {
          if ("rune" in item) runes.push(item.rune)
          heard()
        }
      })()
      const of = (kind: string): ReadonlyArray<AnyRune> => runes.filter((rune) => rune.kind === kind)
      const until = async (kind: string, times: number): Promise<void> => {
        while (of(kind).length < times)
          await new Promise<void>((resolve) => {
            heard = resolve
          })
      }
      const paid = payer()
      const registered = await client.tools.register(id, [{ ...pay, run: paid.run }])
      for (let call = 1; call <= ends; call += 1) {
        await client.call("message.post", { conversation_id: id, content: "pay" })
        await paid.started(call)
        const phase = phases[call % phases.length]
        if (phase !== "while it runs") paid.end(`receipt ${call}`)
        if (phase === "after it has answered") await until("tool.result", call)
        await running.end(signal)
        running = await startProcess(data)
        paid.end(`receipt ${call}`)
        await until("turn.completed", call)
      }
      expect(of("tool.result").map((rune) => payload(rune))).toEqual(
        Array.from({ length: ends }, (_, index) =>
          expect.objectContaining({ status: "success", output: `receipt ${index + 1}` })
        )
      )
      expect(new Set(paid.runs).size).toBe(ends)
      expect(paid.runs).toHaveLength(ends)
      reportCount(`servers ended by ${signal} under a client's call`, ends)
      await client.call("conversation.close", { conversation_id: id })
      await registered.close()
      await watcher.close()
      await client.close()
      await tail.catch(() => undefined)
    }
  )
})

const begin = async (options: Parameters<typeof servers.open>[0] = {}, spec: Json = pay) => {
  const dataDirectory = servers.directory()
  const workspace = servers.directory()
  const server = await servers.open({ scenarios: pays, dataDirectory, ...options }, workspace)
  const socket = await server.connect()
  const id = await follow(server, socket, { model: "scripted/it", policy: { mode: "full_access" } })
  await socket.ok("tool.register", { conversation_id: id, tools: [spec] })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  const call_id = String(payload(await socket.rune("tool.started"))["call_id"])
  const restart = async (): Promise<Socket> => {
    await server.close()
    const next = await servers.open({ scenarios: pays, dataDirectory, ...options }, workspace)
    return next.connect()
  }
  return { id, answer: { conversation_id: id, call_id }, restart, server, socket }
}

/** The same result is taken as often as it comes; another one is told how the call ended. */
const expectFirst = async (socket: Socket, answer: Json, outcome: Json): Promise<void> => {
  for (const more of [{ output: "another" }, { status: "error" }]) {
    const refused = await socket.error("tool.result", { ...answer, ...more })
    expect(refused).toMatchObject({ code: "already_decided", data: { outcome } })
  }
}

it("is answered by nobody else when the server has started again", { timeout: 60_000 }, async () => {
  const dataDirectory = servers.directory()
  const ada = "ada-ada-ada-ada-ada-ada"
  const options = { scenarios: pays, dataDirectory, tokens: [{ name: "ada", role: "operator" as const, token: ada }] }
  const first = await servers.open(options)
  const owner = await first.connect()
  const id = await follow(first, owner, { model: "scripted/it", policy: { mode: "full_access" } })
  await owner.ok("tool.register", { conversation_id: id, tools: [pay] })
  await owner.ok("message.post", { conversation_id: id, content: "pay" })
  const call_id = payload(await owner.rune("tool.started"))["call_id"]
  await first.close()
  const second = await servers.open(options)
  const stranger = await second.connect(ada)
  const refused = await stranger.error("tool.register", { conversation_id: id, tools: [pay] })
  expect(refused).toMatchObject({ code: "invalid_state" })
  expect(refused.message).toMatch(/^pay: call_1 waits for a result of a client of /)
  expect((await stranger.error("tool.result", { conversation_id: id, call_id, output: "not mine" })).code).toBe(
    "invalid_state"
  )
  const back = await second.connect()
  await back.ok("subscribe", { conversation_id: id })
  await back.ok("tool.register", { conversation_id: id, tools: [pay] })
  await back.ok("tool.result", { conversation_id: id, call_id, output: "mine" })
  await back.rune("turn.completed")
  // Its name is free again once nothing of it waits.
  await back.ok("tool.register", { conversation_id: id, tools: [] })
  await stranger.ok("tool.register", { conversation_id: id, tools: [pay] })
})

describe("a result that comes again", { timeout: 60_000 }, () => {
  it.each([
    ["a word", "paid"],
    ["nothing", ""],
    ["more than a result holds", "paid ".repeat(30_000)],
    ["what the server keeps secret", "paid with sk-test-0123456789abcdef0123456789"],
    ["half a character", "paid \ud83d"]
  ])("with %s is answered like the first, also after a restart; another one with the first", async (_what, output) => {
    const variables = { OPENAI_API_KEY: "sk-test-0123456789abcdef0123456789" }
    const { answer, restart, socket } = await begin({ variables })
    const mine = { ...answer, output }
    const first = await socket.ok("tool.result", mine)
    const rune = await socket.rune("tool.result")
    expect(first).toEqual({ event_id: rune["event_id"] })
    const { status, output: kept } = payload(rune)
    const outcome = { status, output: kept, event_id: rune["event_id"] }
    expect(await socket.ok("tool.result", mine)).toEqual(first)
    await expectFirst(socket, mine, outcome)
    await socket.rune("turn.completed")
    const again = await restart()
    // Nothing is registered on this connection: there is nothing left to answer for.
    expect(await again.ok("tool.result", mine)).toEqual(first)
    await expectFirst(again, mine, outcome)
    expect((await again.error("tool.result", { ...mine, call_id: "call_99" })).code).toBe("not_found")
  })

  it("of a failure is answered like the first", async () => {
    const { answer, restart, socket } = await begin()
    const failed = { ...answer, status: "error", output: "no funds" }
    const first = await socket.ok("tool.result", failed)
    await socket.rune("turn.completed")
    const again = await restart()
    expect(await again.ok("tool.result", failed)).toEqual(first)
    const refused = await again.error("tool.result", { ...failed, status: "success" })
    expect(refused).toMatchObject({
      code: "already_decided",
      data: { outcome: { status: "error", output: "no funds" } }
    })
  })
})

describe("a result that comes too late", { timeout: 60_000 }, () => {
  it("is told that the call took too long, also after a restart", async () => {
    const { answer, restart, socket } = await begin({}, { ...pay, timeout_ms: 100 })
    await socket.rune("tool.result")
    const outcome = { status: "timeout", error: { code: "tool_timeout" } }
    await expectFirst(socket, answer, outcome)
    await socket.rune("turn.completed")
    await expectFirst(await restart(), answer, outcome)
  })

  it("is told that its client was gone for too long, also after a restart", async () => {
    const { answer, id, restart, server, socket } = await begin({ returnWithinMs: 100 })
    const watcher = await server.connect()
    await watcher.ok("subscribe", { conversation_id: id, after: 0 })
    await socket.close()
    await watcher.rune("turn.completed")
    const outcome = { status: "unknown", error: { code: "client_gone" } }
    await expectFirst(watcher, answer, outcome)
    await expectFirst(await restart(), answer, outcome)
  })

  it("is told that the turn was interrupted", async () => {
    const { answer, id, restart, socket } = await begin()
    await socket.ok("turn.interrupt", { conversation_id: id })
    await socket.rune("turn.interrupted")
    await expectFirst(socket, answer, { status: "cancelled" })
    await expectFirst(await restart(), answer, { status: "cancelled" })
  })
})
