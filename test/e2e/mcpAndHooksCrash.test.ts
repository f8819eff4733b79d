// Goal: a server that is killed in the middle of a hook or of a call of an MCP server leaves no process behind, and goes on
// as the class of the work says. Method: `echs serve` as a process, kill -9, and another on the same directory. A sandbox dies
// with its server; where there is none, the next server ends what the last one left.
// Verifies: INV-TOOL-TERMINAL, INV-TURN-TERMINAL
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { node, put } from "../support/extended.ts"
import { type Play, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { isContainedHere } from "../support/worlds.ts"

const packages = join(import.meta.dirname, "../../node_modules")
const everything = realpathSync(join(packages, "@modelcontextprotocol/server-everything/dist/index.js"))

let directory = ""
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const payload = (rune: Json): Json => rune["payload"] as Json

const connect = async (server: { readonly url: string; readonly token: string }): Promise<Socket> => {
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  return socket
}

/** Processes that work in the directory. */
const workingIn = (path: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/u.test(pid) &&
        realpathSync(`/proc/${pid}/cwd`) === path &&
        readFileSync(`/proc/${pid}/cmdline`).length > 0
      )
    } catch {
      return false
    }
  })

const begin = async (play: Play, files: Readonly<Record<string, object>>) => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "echs-crash-")))
  const data = join(directory, "data")
  const workspace = join(directory, "work")
  put(join(workspace, "readme"), "")
  for (const [name, content] of Object.entries(files)) put(join(data, name), content)
  const scenario = join(directory, "scenario.json")
  put(scenario, scenarios({ it: [step(1, play), step(2, say("done"))] })["it"] as object)
  const server = await startProcess(data)
  const socket = await connect(server)
  const model = `scripted/${scenario}`
  const id = await socket.create({ workspace, model, policy: { mode: "full_access" } })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  return { data, workspace, server, socket, id }
}

/** Kills the server; a sandbox takes what runs in it along. Says what ran, for where there is no sandbox. */
const kill = async (server: ServerProcess, workspace: string): Promise<ReadonlyArray<string>> => {
  const before = workingIn(workspace)
  expect(before).not.toEqual([])
  await server.end("SIGKILL")
  if (isContainedHere()) await allGone(before, workspace)
  return before
}

const allGone = (pids: ReadonlyArray<string>, workspace: string): Promise<void> =>
  expect.poll(() => workingIn(workspace).filter((pid) => pids.includes(pid)), { timeout: 5_000 }).toEqual([])

const again = async (data: string, id: string) => {
  const server = await startProcess(data)
  const socket = await connect(server)
  await socket.ok("subscribe", { conversation_id: id })
  return { server, socket }
}

describe("a server that is killed", { timeout: 60_000 }, () => {
  it("in the middle of a call of an MCP server leaves none behind, and runs again what may be run again", async () => {
    const slow = use("everything__trigger-long-running-operation", { duration: 4, steps: 8 })
    const { data, id, server, socket, workspace } = await begin(slow, {
      "config.json": { mcp_servers: { everything: { command: [node, everything, "stdio"], readable: [packages] } } }
    })
    await socket.rune("tool.progress")
    const before = await kill(server, workspace)
    const next = await again(data, id)
    await allGone(before, workspace)
    const result = payload(await next.socket.rune("tool.result"))
    expect(result).toMatchObject({ status: "success" })
    expect(payload(await next.socket.rune("tool.started", 2))).toMatchObject({ attempt: 2 })
    await next.socket.rune("turn.completed")
    expect(next.socket.runes().filter(({ kind }) => kind === "tool.result")).toHaveLength(1)
    await next.server.end("SIGTERM")
    await expect.poll(() => workingIn(workspace), { timeout: 5_000 }).toEqual([])
  })

  it("in the middle of a hook leaves none behind, says that its outcome is unknown, and the turn goes on", async () => {
    const write = use("write_file", { path: "a.txt", content: "a" })
    const hook = { name: "slow", command: ["sh", "-c", "touch began; sleep 60; touch ended"] }
    const { data, id, server, socket, workspace } = await begin(write, { "hooks.json": { hooks: [hook] } })
    await socket.rune("hook.started")
    await expect.poll(() => existsSync(join(workspace, "began")), { timeout: 10_000 }).toBe(true)
    const before = await kill(server, workspace)
    const next = await again(data, id)
    await allGone(before, workspace)
    expect(payload(await next.socket.rune("hook.completed"))).toMatchObject({
      status: "canceled",
      error: { code: "hook_outcome_unknown" }
    })
    await next.socket.rune("turn.completed")
    expect(next.socket.runes().filter(({ kind }) => kind === "hook.started")).toHaveLength(1)
    await next.server.end("SIGTERM")
  })

  it("in the middle of a hook that may run twice runs it again", async () => {
    const write = use("write_file", { path: "a.txt", content: "a" })
    const script = "test -e began && { cat > told.json; exit 0; }; touch began; sleep 60"
    const hook = { name: "again", command: ["sh", "-c", script], effect_class: "idempotent" }
    const { data, id, server, socket, workspace } = await begin(write, { "hooks.json": { hooks: [hook] } })
    await socket.rune("hook.started")
    await expect.poll(() => existsSync(join(workspace, "began")), { timeout: 10_000 }).toBe(true)
    const before = await kill(server, workspace)
    const next = await again(data, id)
    await allGone(before, workspace)
    expect(payload(await next.socket.rune("hook.completed"))).toMatchObject({ status: "succeeded" })
    await next.socket.rune("turn.completed")
    expect(payload(await next.socket.rune("hook.started", 2))).toMatchObject({ attempt: 2 })
    // What this life of the server has not seen itself, the transcript knows.
    expect(JSON.parse(readFileSync(join(workspace, "told.json"), "utf8"))).toMatchObject({
      attempt: 2,
      tool_runs: [{ tool_name: "write_file", status: "success", arguments: { path: "a.txt" } }]
    })
    await next.server.end("SIGTERM")
  })
})
