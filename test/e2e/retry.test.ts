// Goal: after a turn is over, a person can have the tool or the hook that failed run again, for effects only when that is
// said, and a kill in the middle neither loses nor repeats anything. Method: `echs serve` as a process with its real tools
// and hooks, the command line as people use it, kill -9 and another server on the same directory.
// Verifies: INV-TOOL-TERMINAL, INV-TURN-TERMINAL, INV-HOOKS-NEVER-OVERLAP
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { put } from "../support/extended.ts"
import { type Play, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { freely } from "../support/worlds.ts"

let directory = ""
let running: ServerProcess | undefined
afterEach(async () => {
  await running?.end("SIGKILL")
  rmSync(directory, { recursive: true, force: true })
})

const payload = (rune: Json): Json => rune["payload"] as Json
const done = "seen {{turn}}.{{step}}"

interface Talk {
  readonly data: string
  readonly workspace: string
  readonly id: string
  server: ServerProcess
  socket: Socket
}

const open = async (data: string): Promise<Pick<Talk, "server" | "socket">> => {
  const server = await startProcess(data)
  running = server
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  return { server, socket }
}

const begin = async (play: Play, hooks?: ReadonlyArray<object>): Promise<Talk> => {
  directory = mkdtempSync(join(tmpdir(), "echs-retry-"))
  const data = join(directory, "data")
  const workspace = join(directory, "work")
  mkdirSync(workspace)
  mkdirSync(data, { mode: 0o700 })
  if (hooks !== undefined) put(join(data, "hooks.json"), { hooks })
  const scenario = join(directory, "scenario.json")
  put(scenario, scenarios({ it: [step(1, play), step(2, say(done)), step(3, say(done))] })["it"] as object)
  const opened = await open(data)
  const { socket } = opened
  const id = await socket.create({ workspace, model: `scripted/${scenario}`, ...freely })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  return { data, workspace, id, ...opened }
}

/** Kills the server, starts another on the same data, and follows the conversation from its beginning. */
const killed = async (talk: Talk): Promise<void> => {
  await talk.server.end("SIGKILL")
  Object.assign(talk, await open(talk.data))
  await talk.socket.ok("subscribe", { conversation_id: talk.id })
}

const failedRuns = async ({ id, socket }: Talk): Promise<ReadonlyArray<Json>> => {
  const { agents } = await socket.ok("conversation.get", { conversation_id: id })
  return (agents as ReadonlyArray<{ readonly failed_runs: ReadonlyArray<Json> }>)[0]!.failed_runs
}

const results = ({ socket }: Talk): ReadonlyArray<unknown> =>
  socket
    .runes()
    .filter(({ kind }) => kind === "tool.result")
    .map((rune) => [payload(rune)["call_id"], payload(rune)["status"]])

/** Appends a line each time it runs, and fails until there is a file. */
const flaky = use("bash", { command: "echo ran >> runs; test -e ready" })
const runsOf = ({ workspace }: Talk): number => readFileSync(join(workspace, "runs"), "utf8").split("\n").length - 1

describe("a tool that failed", { timeout: 60_000 }, () => {
  it("runs again when a person says so, and the model is told what came of it", async () => {
    const talk = await begin(flaky)
    const { data, id, socket, workspace } = talk
    await socket.rune("turn.completed")
    expect(await failedRuns(talk)).toEqual([{ id: "call_1", name: "bash", status: "error", needs_repeat_effect: true }])
    const echs = commandOn(data)
    expect(echs(["show", id]).stdout).toContain(`retry: echs retry ${id} call_1 --repeat-effect`)
    const refused = echs(["retry", id, "call_1"])
    expect(refused).toMatchObject({ code: 6, stdout: "" })
    expect(refused.stderr).toContain("bash may have taken effect already: to run it again, set repeat_effect")
    const { code, data: needs } = await socket.error("tool.retry", { conversation_id: id, call_id: "call_1" })
    expect([code, needs]).toEqual(["invalid_state", expect.objectContaining({ needs: "repeat_effect" })])
    expect(runsOf(talk)).toBe(1)
    writeFileSync(join(workspace, "ready"), "")
    expect(echs(["retry", id, "call_1", "--repeat-effect"])).toMatchObject({ code: 0, stdout: "call_1 retried\n" })
    await socket.rune("turn.completed", 2)
    expect(results(talk)).toEqual([
      ["call_1", "error"],
      ["call_2", "success"]
    ])
    expect(runsOf(talk)).toBe(2)
    expect(await failedRuns(talk)).toEqual([])
    const finals = socket.runes().filter(({ kind }) => kind === "turn.assistant_final")
    expect(payload(finals.at(-1)!)["content"]).toBe("seen 1.3")
    expect((await socket.error("tool.retry", { conversation_id: id, call_id: "call_1" })).code).toBe("not_found")
    expect(echs(["tail", id, "--once", "--kind", "turn.started"]).stdout).toContain('"target"')
  })

  it("runs again once where the server is killed just after the answer, and is asked about by nobody", async () => {
    const talk = await begin(use("read_file", { path: "later.txt" }))
    await talk.socket.rune("turn.completed")
    writeFileSync(join(talk.workspace, "later.txt"), "here now\n")
    // It changes nothing, so nothing more has to be said.
    await talk.socket.ok("tool.retry", { conversation_id: talk.id, call_id: "call_1" })
    await killed(talk)
    await talk.socket.rune("turn.completed", 2)
    expect(results(talk)).toEqual([
      ["call_1", "error"],
      ["call_2", "success"]
    ])
  })

  it("of an effect is unknown where the server is killed while it runs again, and never run by itself", async () => {
    const talk = await begin(use("bash", { command: "echo ran >> runs; test -e ready && sleep 60" }))
    await talk.socket.rune("turn.completed")
    writeFileSync(join(talk.workspace, "ready"), "")
    await talk.socket.ok("tool.retry", { conversation_id: talk.id, call_id: "call_1", repeat_effect: true })
    await expect.poll(() => runsOf(talk), { timeout: 20_000 }).toBe(2)
    await killed(talk)
    await talk.socket.rune("turn.completed", 2)
    expect(results(talk)).toEqual([
      ["call_1", "error"],
      ["call_2", "unknown"]
    ])
    expect(runsOf(talk)).toBe(2)
    expect(await failedRuns(talk)).toMatchObject([{ id: "call_2", status: "unknown", needs_repeat_effect: true }])
  })
})

describe("a hook that failed", { timeout: 60_000 }, () => {
  const write = use("write_file", { path: "note.txt", content: "hello\n" })
  const hooks = [
    { name: "first", command: ["sh", "-c", "echo 1 >> order; cat > told.json; test -e ready"] },
    { name: "second", command: ["sh", "-c", "echo 2 >> order"] }
  ]
  const orderOf = ({ workspace }: Talk): string => readFileSync(join(workspace, "order"), "utf8").replaceAll("\n", "")

  it("runs again with those behind it, for the batch it failed for, also in another life of the server", async () => {
    const talk = await begin(write, hooks)
    expect(payload(await talk.socket.rune("turn.error"))).toMatchObject({ error_type: "hook_execution_failed" })
    expect(orderOf(talk)).toBe("1")
    await killed(talk)
    const { data, id, socket, workspace } = talk
    expect(await failedRuns(talk)).toMatchObject([{ id: "hookrun_1", name: "first", needs_repeat_effect: true }])
    expect((await socket.error("hook.retry", { conversation_id: id, hook_run_id: "hookrun_1" })).code).toBe(
      "invalid_state"
    )
    writeFileSync(join(workspace, "ready"), "")
    rmSync(join(workspace, "told.json"))
    const retried = commandOn(data)(["retry", id, "hookrun_1", "--repeat-effect"])
    expect(retried).toMatchObject({ code: 0, stdout: "hookrun_1 retried\n" })
    await socket.rune("turn.completed")
    expect(orderOf(talk)).toBe("112")
    expect(JSON.parse(readFileSync(join(workspace, "told.json"), "utf8"))).toMatchObject({
      hook_name: "first",
      tool_runs: [{ tool_name: "write_file", arguments: { path: "note.txt" } }]
    })
    expect(await failedRuns(talk)).toEqual([])
    expect(existsSync(join(workspace, "note.txt"))).toBe(true)
  })
})
