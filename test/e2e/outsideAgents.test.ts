/**
 * Goal: a program that behaves as Claude Code did when it was recorded, started by `echs run` in a real terminal, is in the
 * log, the inbox and the list like any agent: approved, denied and edited by the CLI, answered in its own format, alive
 * when the server is killed, gone when it is gone. Sessions are recordings; endpoints, shim, holder and server are real.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { Client } from "#src/client/Client.ts"
import { readState } from "#src/harness/holder/HolderFiles.ts"
import { OutsideWorld, waiting } from "../support/harness/OutsideWorld.ts"
import { parts, requirePart } from "../support/require.ts"

const fixtures = join(import.meta.dirname, "../fixtures/harness/claude")
const fake = join(import.meta.dirname, "../support/harness/fakeClaude.ts")
const fakeCodex = join(import.meta.dirname, "../support/harness/fakeCodex.ts")
class World extends OutsideWorld {
  constructor() {
    super()
    this.install("claude", fake)
    this.install("codex", fakeCodex)
  }

  /** Starts a recorded session in the background; returns its conversation. */
  run(session: string, after = "0"): string {
    return this.detached(["claude"], { FAKE_SESSION: join(fixtures, `${session}.hooks.jsonl`), FAKE_AFTER: after })
  }
}

let world: World | undefined

beforeEach((context) => requirePart(context, parts.pty))

const open = async (): Promise<World> => {
  world = new World()
  await world.serve()
  return world
}

afterEach(async () => {
  await world?.close()
  world = undefined
})

const whole = "idle thinking tool_use waiting_for_permission tool_use thinking idle exited"

describe("echs run claude", { timeout: 120_000 }, () => {
  it("puts a call that the agent asks about into the inbox; approved by the CLI, it runs, and all of it is on record", async () => {
    const here = await open()
    const id = here.run("tty-perm-hook-late", "7")
    await here.untilAsked()
    const [item] = await here.items("approval.list")
    expect(item).toMatchObject({ conversation_id: id, tool_name: "Bash", arguments: { command: "touch b.txt" } })
    const approved = here.echs()(["approve", id, String(item!["call_id"])])
    expect(approved).toMatchObject({ code: 0 })
    await here.untilClosed(id)
    expect(await here.states(id)).toBe(whole)
    const runes = await here.runes(id)
    const ofCall = runes.filter(({ kind }) => kind.startsWith("tool.")).map(({ kind }) => kind)
    expect(ofCall).toEqual(["tool.call", "tool.approval_requested", "tool.approved", "tool.started", "tool.result"])
    expect(runes.find(({ kind }) => kind === "harness.detached")?.payload).toMatchObject({ exit_code: 7 })
    expect(readdirSync(join(here.data, "harness"))).toEqual([])
    expect(here.echs()(["verify"])).toMatchObject({ code: 0 })
  })

  it("answers in the format of the agent: denied with the reason, allowed with edited input", async () => {
    const here = await open()
    const first = here.run("p-perm-deny", "stay")
    await here.untilAsked()
    expect(here.echs()(["deny", first, "--reason", "not on a Friday"])).toMatchObject({ code: 0 })
    const sent = (conversation: string) => expect.poll(() => here.screenOf(conversation), waiting)
    await sent(first).toContain('"behavior":"deny","message":"not on a Friday"')
    const second = here.run("p-perm-edit", "stay")
    await here.untilAsked()
    const [item] = await here.items("approval.list")
    const edited = JSON.stringify({ command: "true" })
    expect(here.echs()(["approve", second, String(item!["call_id"]), "--arguments", edited])).toMatchObject({ code: 0 })
    await sent(second).toContain('"behavior":"allow","updatedInput":{"command":"true"}')
  })

  it("settles a question that was answered in the agent's own dialog by what is seen", async () => {
    const here = await open()
    const id = here.run("tty-perm-hook-late", "stay")
    await here.untilAsked()
    const post = JSON.parse(
      readFileSync(join(fixtures, "tty-perm-hook-late.hooks.jsonl"), "utf8")
        .split("\n")
        .find((line) => line.includes('"PostToolUse"')) ?? ""
    )
    const { token } = here.agentFile(id)
    const response = await fetch(`${here.server!.url}/hooks/claude`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(post)
    })
    expect(response.status).toBe(200)
    await expect.poll(async () => (await here.items("approval.list")).length, waiting).toBe(0)
    const approved = (await here.runes(id)).find(({ kind }) => kind === "tool.approved")
    expect(approved?.payload).toMatchObject({ approver: "terminal", channel: "agent" })
    await expect.poll(() => here.screenOf(id), waiting).toContain("ANSWER {}")
  })

  it("survives a server that is killed: the agent lives, what it reported meanwhile is heard once and in order", async () => {
    const here = await open()
    const id = here.run("tty-text", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking idle exited")
    const [before] = await here.items("harness.list")
    await here.server!.end("SIGKILL")
    const shim = join(here.data, "harness", id, "hook.sh")
    for (const [name, body] of [
      ["UserPromptSubmit", { prompt_id: "late", prompt: "while you were away" }],
      ["Stop", { prompt_id: "late", background_tasks: [] }]
    ] as const)
      expect(spawnSync("/bin/sh", [shim, name], { input: JSON.stringify(body) }).status).toBe(0)
    await here.serve()
    await expect.poll(async () => (await here.items("harness.list"))[0]?.["attached"], waiting).toBe(true)
    expect((await here.items("harness.list"))[0]).toMatchObject({ pid: before!["pid"] })
    const heard = async () =>
      (await here.runes(id)).filter(({ payload }) => JSON.stringify(payload).includes("while you were away")).length
    await expect.poll(heard, waiting).toBe(1)
    await expect.poll(() => readdirSync(join(here.data, "harness", id, "spool")), waiting).toEqual([])
  })

  it("is closed at once when the agent is killed", async () => {
    const here = await open()
    const id = here.run("tty-kill9", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking")
    const [{ pid } = { pid: 0 }] = await here.items("harness.list")
    process.kill(Number(pid), "SIGKILL")
    await here.untilClosed(id)
    const detached = (await here.runes(id)).find(({ kind }) => kind === "harness.detached")
    expect(detached?.payload).toMatchObject({ signal: "SIGKILL" })
  })

  it("takes text that is sent to it, and shows it as delivered when the agent reports it", async () => {
    const here = await open()
    const id = here.run("tty-kill9", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking")
    expect(here.echs()(["send", id, "and now the tests"])).toMatchObject({ code: 0 })
    const prompts = async () => (await here.runes(id)).map(({ payload }) => JSON.stringify(payload)).join("\n")
    await expect.poll(prompts, waiting).toContain('"type":"user_prompt","text":"and now the tests"')
  })
})

/** Resolves with the code of the refusal, or with what a client was told. */
const knock = (address: string, token?: string): Promise<string> =>
  new Promise((resolve) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const socket = new WebSocket(address, { headers })
    socket.on("error", ({ message }) => resolve(message))
    socket.on("open", () => {
      resolve("open")
      socket.close()
    })
  })

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("echs send", { timeout: 120_000 }, () => {
  it("keeps a text that the agent cannot take yet, also when the server is killed, and hands it over once", async () => {
    const here = await open()
    const id = here.run("tty-perm-hook-late", "stay")
    await here.untilAsked()
    expect(here.echs()(["send", id, "for later"])).toMatchObject({ code: 0 })
    const queue = join(here.data, "harness", id, "inputs.json")
    expect(JSON.parse(readFileSync(queue, "utf8"))).toEqual(["for later"])
    await here.server?.end("SIGKILL")
    await here.serve()
    const handed = async () =>
      (await here.runes(id)).filter(({ payload }) =>
        JSON.stringify(payload).includes('"user_prompt","text":"for later"')
      )
    await expect.poll(async () => (await handed()).length, waiting).toBe(1)
    await expect.poll(() => existsSync(queue), waiting).toBe(false)
  })
})

describe("echs run codex", { timeout: 120_000 }, () => {
  const companionOf = (here: World, id: string) => readState(join(here.data, "harness", id))!.companion!

  it("follows the app-server beside the terminal: states, questions, tokens; both end together", async () => {
    const here = await open()
    const id = here.detached(["codex"])
    await expect.poll(() => here.states(id), waiting).toBe("idle")
    const { address, pid } = companionOf(here, id)
    await expect.poll(() => here.screenOf(id), waiting).toContain(`CONNECTED ${address}`)
    expect(await knock(address)).toContain("401")
    expect(await knock(address, here.server!.token)).toContain("401")
    expect(here.echs()(["send", id, "say:3"])).toMatchObject({ code: 0 })
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking idle")
    expect(here.echs()(["send", id, "run it"])).toMatchObject({ code: 0 })
    await here.untilAsked()
    const [item] = await here.items("approval.list")
    expect(item).toMatchObject({ tool_name: "shell", arguments: { command: "'touch /home/user/work/acc.txt'" } })
    const edited = ["approve", id, String(item!["call_id"]), "--arguments", '{"command":"true"}']
    expect(here.echs()(edited).stderr).toContain("the arguments of a call of codex cannot be changed")
    // The question outlives the server that asked it.
    await here.server!.end("SIGKILL")
    await here.serve()
    await here.untilAsked()
    await expect.poll(() => here.echs()(["approve", id]).code, waiting).toBe(0)
    await expect.poll(async () => (await here.states(id)).endsWith("thinking idle"), waiting).toBe(true)
    const { usage } = await here.rpc("conversation.get", { conversation_id: id })
    expect(usage).toMatchObject({ input_tokens: 30, output_tokens: 20 })
    process.kill(readState(join(here.data, "harness", id))!.holderPid, "SIGKILL")
    await here.untilClosed(id)
    await expect.poll(() => isAlive(pid), waiting).toBe(false)
    expect(here.echs()(["verify"])).toMatchObject({ code: 0 })
  })

  it("runs by itself where no app-server comes up, watched by what it says in its terminal", async () => {
    const here = await open()
    const id = here.detached(["codex"], { FAKE_NO_SERVER: "1" })
    await expect.poll(async () => (await here.states(id)).split(" ").at(-1), waiting).toBe("idle")
    await expect.poll(() => here.screenOf(id), waiting).toContain("ALONE")
    expect(readState(join(here.data, "harness", id))?.companion).toBeUndefined()
  })
})

describe("the endpoints of outside agents", { timeout: 120_000 }, () => {
  it("refuse broken, huge, packed and unauthorized bodies, and keep working", async () => {
    const here = await open()
    const id = here.run("tty-kill9", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking")
    const { token } = here.agentFile(id)
    const post = async (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) => {
      const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers }
      const response = await fetch(`${here.server!.url}${path}`, {
        method: "POST",
        headers: all,
        body: body as BodyInit
      })
      return response.status
    }
    expect(await post("/hooks/claude", "{")).toBe(400)
    expect(await post("/hooks/claude", "[]")).toBe(400)
    expect(await post("/hooks/claude", "{}", { authorization: "Bearer 0000000000000000000" })).toBe(401)
    expect(await post("/hooks/claude", "{}", { authorization: `Bearer ${here.server!.token}` })).toBe(401)
    expect(await post("/hooks/claude", JSON.stringify({ hook_event_name: "Unheard", x: 1 }))).toBe(200)
    expect(await post("/v1/logs", gzipSync(Buffer.alloc(20_000_000)), { "content-encoding": "gzip" })).toBe(413)
    expect(await post("/v1/logs", "\u0001", { "content-type": "application/x-protobuf" })).toBe(400)
    expect(await post("/v1/metrics", "{}")).toBe(200)
    const huge = await post("/hooks/claude", "x".repeat(5_000_000)).catch(() => "cut off")
    expect([429, 413, 400, "cut off"]).toContain(huge)
    expect(await post("/hooks/claude", JSON.stringify({ hook_event_name: "Stop" }))).toBe(200)
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking idle")
  })

  it("mask the secrets of the server in what is reported", async () => {
    const here = await open()
    const id = here.run("tty-kill9", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking")
    const secret = here.server!.token
    const response = await fetch(`${here.server!.url}/hooks/claude`, {
      method: "POST",
      headers: { authorization: `Bearer ${here.agentFile(id).token}`, "content-type": "application/json" },
      body: JSON.stringify({ hook_event_name: "UserPromptSubmit", prompt: `use ${secret} here` })
    })
    expect(response.status).toBe(200)
    const told = async () => (await here.runes(id)).map(({ payload }) => JSON.stringify(payload)).join("\n")
    await expect.poll(told, waiting).toContain("use [secret] here")
    expect(await told()).not.toContain(secret)
  })

  it("count tokens once, whatever comes twice", async () => {
    const here = await open()
    const id = here.run("tty-kill9", "stay")
    await expect.poll(() => here.states(id), waiting).toBe("idle thinking")
    const { token } = here.agentFile(id)
    const attributes = [
      { key: "event.name", value: { stringValue: "api_request" } },
      { key: "session.id", value: { stringValue: "s" } },
      { key: "event.sequence", value: { intValue: 4 } },
      { key: "input_tokens", value: { intValue: 100 } },
      { key: "output_tokens", value: { intValue: 7 } },
      { key: "cost_usd", value: { doubleValue: 0.25 } }
    ]
    const body = JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes }, { attributes }] }] }] })
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    for (let sent = 0; sent < 2; sent += 1)
      expect((await fetch(`${here.server!.url}/v1/logs`, { method: "POST", headers, body })).status).toBe(200)
    const { usage } = await here.rpc("conversation.get", { conversation_id: id })
    expect(usage).toMatchObject({ input_tokens: 100, output_tokens: 7, usd: 0.25 })
  })
})

describe("echs run with any program", { timeout: 120_000 }, () => {
  it("passes bytes, size and exit code through, and says what is missing", async () => {
    const here = await open()
    const run = here.echs()(["run", "sh", "-c", "stty size; printf '\\303\\244'; exit 9"])
    expect(run).toEqual({ code: 9, stdout: "24 80\r\nä", stderr: "" })
    expect(here.echs()(["run", "sh", "-c", "kill -9 $$"]).code).toBe(137)
    const missing = here.echs()(["run", "no-such-program"])
    expect(missing).toMatchObject({ code: 1, stderr: "echs run: no-such-program: there is no such program\n" })
    expect(here.echs()(["run", "sh", "--help"]).stdout).not.toContain("usage: echs run")
  })

  it("is seen and typed in over the wire: the screen first, one typist, the end at last", async () => {
    const here = await open()
    const { stdout } = here.echs()([
      "run",
      "--detach",
      "--json",
      "sh",
      "-c",
      "echo ready; read line; echo got $line; exit 5"
    ])
    const { conversation_id: id } = JSON.parse(stdout) as { readonly conversation_id: string }
    const client = await Client.connect({ endpoint: here.server! })
    const typist = client.terminal(id, { columns: 100, rows: 30 })
    const viewer = client.terminal(id, { watch: true })
    const seen = { typist: "", viewer: "" }
    const there = Promise.withResolvers<void>()
    const watching = (async () => {
      for await (const item of viewer) {
        if ("output" in item) seen.viewer += Buffer.from(item.output).toString("utf8")
        if (!("attached" in item)) continue
        await expect(viewer.input(Buffer.from("no"))).rejects.toThrow("only watches")
        there.resolve()
      }
    })()
    await there.promise
    const items: Array<unknown> = []
    for await (const item of typist) {
      if ("output" in item) {
        const before = seen.typist
        seen.typist += Buffer.from(item.output).toString("utf8")
        if (!before.includes("ready") && seen.typist.includes("ready"))
          expect(await typist.input(Buffer.from("hello\r"))).toBe(true)
      } else items.push(item)
    }
    await watching
    expect(items).toEqual([
      { attached: { role: "typist", columns: 100, rows: 30 } },
      { ended: { exit_code: 5, signal: null } }
    ])
    expect(seen.typist).toContain("got hello")
    expect(seen.viewer).toContain("got hello")
    await client.close()
    await here.untilClosed(id)
  })

  it("loses nothing of a program that prints more than anybody reads at once", async () => {
    const here = await open()
    const { code, stdout } = here.echs()(["run", "sh", "-c", "head -c 600000 /dev/zero | tr '\\0' x; echo; echo end"])
    expect([code, stdout.length, stdout.slice(-5)]).toEqual([0, 600_007, "end\r\n"])
  })
})
