// Goal: with the tools of a real server, a batch keeps its rules: results in the order of the calls, readers side by side,
// writers one after the other, one result each; arguments, edits by an approver and long outputs go the whole way.
// Method: a server with the assembled tools, with its real sandbox and without one, a scripted model, a plain client.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { RunningServer } from "#src/main/ServeOptions.ts"
import { startTestServer, withTools } from "../support/server/graph.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { conversationWith, memoryBlobs, rootAgent } from "../support/tool/ToolPlace.ts"
import { freely, useWorld, type World, worlds } from "../support/worlds.ts"

let place = ""
let server: RunningServer | undefined
let searchPath = process.env["PATH"] ?? ""
const workspace = (): string => join(place, "workspace")

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-e2e-tools-"))
  mkdirSync(workspace())
})

afterEach(async () => {
  await server?.close()
  server = undefined
  rmSync(place, { recursive: true, force: true })
})

const enter = (world: World): void => {
  const path = useWorld(world)
  beforeEach(() => {
    searchPath = path()
  })
}

type Call = readonly [tool: string, input: Json]

/** A model that asks for these calls at once, and then says what it was told last. */
const scenarioOf = (calls: ReadonlyArray<Call>) => ({
  name: "batch",
  replies: [
    { when: { step: 1 }, play: calls.map(([tool, input]) => ({ tool, arguments: input })) },
    { play: [{ text: "told: {{output}}" }] }
  ]
})

const open = async (calls: ReadonlyArray<Call>): Promise<Socket> => {
  const dataDirectory = join(place, "data")
  const environment = { variables: { ...process.env, PATH: searchPath }, homeDirectory: homedir() }
  server = await startTestServer({
    dataDirectory,
    scenarios: { batch: scenarioOf(calls) as never },
    environment
  })
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  return socket
}

interface Turn {
  readonly socket: Socket
  readonly id: string
  readonly of: (kind: string) => ReadonlyArray<Json>
}

const begin = async (calls: ReadonlyArray<Call>, config: Json = {}): Promise<Turn> => {
  const socket = await open(calls)
  const id = await socket.create({ model: "scripted/batch", workspace: workspace(), ...config })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  const of = (kind: string): ReadonlyArray<Json> =>
    socket
      .runes()
      .filter((rune) => rune["kind"] === kind)
      .map((rune) => ({ ...(rune["payload"] as Json), event_id: rune["event_id"] }))
  return { socket, id, of }
}

describe.each(worlds)("a batch of calls, $name", (world) => {
  enter(world)

  it("has one result each, in the order of the calls, each seeing what the writers before it did", async () => {
    writeFileSync(join(workspace(), "a.txt"), "one\n")
    const calls: ReadonlyArray<Call> = [
      ["read_file", { path: "a.txt" }],
      ["write_file", { path: "a.txt", content: "two\n" }],
      ["read_file", { path: "a.txt" }],
      ["edit_file", { path: "a.txt", old_text: "two", new_text: "three" }],
      ["bash", { command: "cat a.txt; echo four >> a.txt" }],
      ["grep", { pattern: "^(three|four)$" }],
      ["read_file", { path: "missing" }],
      ["list_files", {}],
      ["no_such_tool", {}],
      ["apply_patch", { patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-three\n+five\n four\n" }]
    ]
    const { of, socket } = await begin(calls, freely)
    await socket.rune("turn.completed")
    const results = new Map(of("tool.result").map((result) => [result["call_id"], result]))
    const ids = of("tool.call").map((call) => call["call_id"])
    expect(ids).toHaveLength(calls.length)
    expect(of("tool.result")).toHaveLength(calls.length)
    const told = (id: unknown): unknown => {
      const result = results.get(id)
      return result?.["output"] ?? (result?.["error"] as Json | undefined)?.["code"]
    }
    expect(ids.map(told)).toEqual([
      "one\n",
      "a.txt: 4 bytes written",
      "two\n",
      "a.txt: changed at line 1",
      "three\n",
      "a.txt:1:three\na.txt:2:four",
      "file_error",
      "a.txt",
      "unknown_tool",
      "changed a.txt"
    ])
    expect(readFileSync(join(workspace(), "a.txt"), "utf8")).toBe("five\nfour\n")
    const finished = of("turn.tools_finished")[0]?.["summaries"] as ReadonlyArray<Json>
    expect(finished.map((one) => one["call_id"])).toEqual(ids)
  })

  it("runs readers side by side, and writers one after the other", async () => {
    for (let index = 0; index < 400; index += 1) writeFileSync(join(workspace(), `${index}.txt`), "needle\n".repeat(50))
    const reads: ReadonlyArray<Call> = Array.from({ length: 4 }, () => ["grep", { pattern: "needle", limit: 500 }])
    const writes: ReadonlyArray<Call> = Array.from({ length: 3 }, () => [
      "bash",
      { command: "echo x >> order; sleep 0.05" }
    ])
    const { of, socket } = await begin([...reads, ...writes], freely)
    await socket.rune("turn.completed")
    const startOf = new Map(of("tool.started").map((one) => [one["call_id"], one["event_id"] as number]))
    const endOf = new Map(of("tool.result").map((one) => [one["call_id"], one["event_id"] as number]))
    const ids = of("tool.call").map((one) => one["call_id"])
    const readIds = ids.slice(0, 4)
    // All readers had started before the first of them was done.
    expect(Math.max(...readIds.map((id) => startOf.get(id)!))).toBeLessThan(
      Math.min(...readIds.map((id) => endOf.get(id)!))
    )
    const order = ids.slice(3)
    for (const [index, id] of order.slice(1).entries())
      expect(startOf.get(id)!).toBeGreaterThan(endOf.get(order[index])!)
  })
})

describe.each(worlds)("a question, $name", (world) => {
  enter(world)

  it("shows the difference, and a yes with other arguments runs those and no others", async () => {
    writeFileSync(join(workspace(), "a.txt"), "one\n")
    const { id, of, socket } = await begin([["write_file", { path: "a.txt", content: "two\n" }]])
    await socket.rune("tool.approval_requested")
    const asked = of("tool.approval_requested")[0]!
    expect(asked["shown_as"]).toEqual({
      title: "write a.txt",
      diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
      workspace: workspace(),
      roots: [workspace()],
      network: false
    })
    const { arguments_hash, call_id } = of("tool.call")[0]!
    const changed = { path: "b.txt", content: "three\n" }
    const answer = { conversation_id: id, call_id, arguments_hash, scope: "once", arguments: changed }
    await socket.ok("approval.approve", answer)
    await socket.rune("turn.completed")
    expect(readFileSync(join(workspace(), "a.txt"), "utf8")).toBe("one\n")
    expect(readFileSync(join(workspace(), "b.txt"), "utf8")).toBe("three\n")
  })

  it("is not asked for arguments that do not fit", async () => {
    const { of, socket } = await begin([["write_file", { path: 7 }]])
    await socket.rune("turn.completed")
    expect(of("tool.approval_requested")).toEqual([])
    expect(of("tool.started")).toEqual([])
    expect(of("tool.result")[0]).toMatchObject({
      status: "error",
      error: {
        code: "invalid_arguments",
        message: "write_file: the arguments: content is missing; path must be string"
      }
    })
  })
})

describe.each(worlds)("a long output, $name", (world) => {
  enter(world)

  it("is kept whole, and can be read by the name its result gives", async () => {
    const { of, socket } = await begin([["bash", { command: "seq 1 100000" }]], freely)
    await socket.rune("turn.completed")
    const result = of("tool.result")[0]!
    const blob = result["output_blob"] as { readonly sha256: string; readonly bytes: number }
    expect(blob.bytes).toBe(588_895)
    const output = result["output"] as string
    expect(output.startsWith("1\n2\n3\n")).toBe(true)
    expect(output).toContain("100000\n")
    expect(output).toContain(`read_file "blob:${blob.sha256}"`)
    expect(output.length).toBeLessThan(65_536)
    expect(existsSync(join(place, "data", "blobs", blob.sha256.slice(0, 2), blob.sha256))).toBe(true)
    await server?.close()
    const path = `blob:${blob.sha256}`
    const again = await begin([["read_file", { path, offset: 50_000, limit: 2 }]])
    await again.socket.rune("turn.completed")
    expect(again.of("tool.result")[0]?.["output"]).toBe(
      "50000\n50001\n… up to line 50001 of 100000; offset 50002 goes on …\n"
    )
  })
})

describe.each(worlds)("a shell session, $name", (world) => {
  enter(world)

  it("stays between calls, and ends with its conversation", async () => {
    const { id, socket } = await begin([["bash", { session: "s", command: "sleep 86473 & echo started" }]], freely)
    await socket.rune("turn.completed")
    const running = (): string => spawnSync("pgrep", ["-f", "sleep 86473"], { encoding: "utf8" }).stdout
    expect(running()).not.toBe("")
    await socket.ok("conversation.close", { conversation_id: id, reason: "done" })
    await expect.poll(running, { timeout: 5_000 }).toBe("")
  })
})

describe.each(worlds)("a command that the server ends because it stops itself, $name", (world) => {
  enter(world)

  it.each([{}, { session: "s" }])("is cancelled, and what it printed is kept %j", async (where) => {
    const command = "echo begun; trap 'echo bye; exit 3' TERM; sleep 86474 & wait"
    const { id, socket } = await begin([["bash", { command, timeout_ms: 60_000, ...where }]], freely)
    await socket.rune("tool.progress")
    await server?.close()
    const next = await open([])
    await next.ok("subscribe", { conversation_id: id })
    await next.rune("turn.completed")
    const results = next.runes().flatMap(({ kind, payload }) => (kind === "tool.result" ? [payload as Json] : []))
    expect(results).toHaveLength(1)
    expect(results[0]).toMatchObject({ status: "cancelled" })
    expect(results[0]?.["output"]).toContain("begun")
    // The model is asked once the server is back, not while it stops.
    expect(next.runes().filter(({ kind }) => kind === "response.started").length).toBeLessThanOrEqual(2)
  })
})

describe.each(worlds)("an agent that is given tools, $name", (world) => {
  enter(world)

  it("sees and may call only those", async () => {
    const calls: ReadonlyArray<Call> = [
      ["write_file", { path: "a", content: "" }],
      ["list_files", {}]
    ]
    const { of, socket } = await begin(calls, { ...freely, tools: ["list_files"] })
    await socket.rune("turn.completed")
    expect(
      of("tool.result")
        .map((one) => (one["error"] as Json | undefined)?.["code"] ?? one["output"])
        .sort()
    ).toEqual(["(empty)", "unknown_tool"])
  })
})

describe("the documents", () => {
  it("list every tool that comes with the server, and no other", async () => {
    const dataDirectory = join(place, "data")
    const environment = { variables: process.env, homeDirectory: homedir() }
    const offered = await withTools({ dataDirectory, environment }, memoryBlobs(), (tools) =>
      tools.describe(conversationWith({ workspace: workspace() }), rootAgent).map(({ name }) => name)
    )
    const all = readFileSync(join(import.meta.dirname, "..", "..", "docs", "TOOLS.md"), "utf8")
    // Behind this come those that only agents of a goal have.
    const page = all.slice(0, all.indexOf("Agents that pursue a goal"))
    const listed = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
    expect(listed.sort()).toEqual([...offered].sort())
  })
})
