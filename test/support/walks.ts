// A program that takes the four walks of docs/ARCHITECTURE.md on a real server and prints, as JSON, which source files had a
// function called on each. What V8 counted is believed, not what anybody remembers of the code.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileTools } from "./autonomy/fileTools.ts"
import { always, say, scenarios, step, use } from "./runtime/scenarios.ts"
import { effectTool } from "./runtime/tools.ts"
import { openServer, type TestServer } from "./server/TestServer.ts"

const top = new URL("../../", import.meta.url).href
const session = new Session()
session.connect()
await session.post("Profiler.enable")
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })

/** The files of which a function was called since the last time. */
const calledFiles = async (): Promise<ReadonlyArray<string>> => {
  const { result } = await session.post("Profiler.takePreciseCoverage")
  const ours = result.filter(({ url }) => url.startsWith(`${top}src/`) || url.startsWith(`${top}runelog/`))
  // The function that begins the file is the module itself.
  const called = ours.filter(({ functions }) =>
    functions.some(({ ranges: [range] }) => range !== undefined && range.startOffset > 0 && range.count > 0)
  )
  return called.map(({ url }) => url.slice(top.length)).sort()
}

const directory = mkdtempSync(join(tmpdir(), "echs-walks-"))
const workspace = join(directory, "workspace")
mkdirSync(workspace)

const open = (): Promise<TestServer> =>
  openServer(directory, {
    scenarios: scenarios({ act: [step(1, use("act", { how: "well" })), always(say("done"))] }),
    tools: [effectTool("act", async () => "done", { approval: "ask" }), ...fileTools]
  })

const messagePost = async (server: TestServer): Promise<ReadonlyArray<string>> => {
  const socket = await server.connect()
  const id = await socket.create({ title: "talk" })
  await socket.ok("subscribe", { conversation_id: id })
  await calledFiles()
  await socket.ok("message.post", { conversation_id: id, content: "hello" })
  await socket.rune("turn.completed")
  return calledFiles()
}

const asked = async (server: TestServer) => {
  const socket = await server.connect()
  const id = await socket.create({ model: "scripted/act" })
  await socket.ok("subscribe", { conversation_id: id })
  await calledFiles()
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  await socket.rune("tool.approval_requested")
  const { items } = await socket.ok("approval.list")
  const item = (items as ReadonlyArray<Record<string, string>>).find(({ conversation_id }) => conversation_id === id)
  return { socket, item: item as Record<string, string> }
}

const approval = async (server: TestServer): Promise<ReadonlyArray<string>> => {
  const { item, socket } = await asked(server)
  const { arguments_hash, call_id, conversation_id } = item
  await socket.ok("approval.approve", { conversation_id, call_id, arguments_hash, scope: "once" })
  await socket.rune("turn.completed")
  return calledFiles()
}

const goal = async (server: TestServer): Promise<ReadonlyArray<string>> => {
  const socket = await server.connect()
  await calledFiles()
  const model = "scripted/goal-critique"
  const submitted = await socket.ok("goal.submit", { goal: "Write a letter", model, workspace })
  await socket.ok("subscribe", { conversation_id: submitted["conversation_id"], after: 0 })
  await socket.rune("plan.goal_met")
  return calledFiles()
}

/** A question waits over the stop; the next server finds it, and the answer goes through. */
const restart = async (server: TestServer): Promise<ReadonlyArray<string>> => {
  const { item } = await asked(server)
  await server.close()
  await calledFiles()
  const next = await open()
  await next.recovered
  const socket = await next.connect()
  const { arguments_hash, call_id, conversation_id } = item
  await socket.ok("subscribe", { conversation_id })
  await socket.ok("approval.approve", { conversation_id, call_id, arguments_hash, scope: "once" })
  await socket.rune("turn.completed")
  const files = await calledFiles()
  await next.close()
  return files
}

const server = await open()
const walks = {
  "message.post": await messagePost(server),
  "A tool call with an approval": await approval(server),
  "A goal": await goal(server),
  "A restart": await restart(server)
}
rmSync(directory, { recursive: true, force: true })
process.stdout.write(`${JSON.stringify(walks)}\n`)
process.exit(0)
