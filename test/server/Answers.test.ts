// Goal: the published schemas are enough to write a client by: every operation is described, what they let through is
// taken, and what comes back is what they say. Method: a client made of schemas/ and of nothing else asks a real server, with
// its tools and hooks, for every operation there is; requests and answers are checked by an independent validator.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type ExtendedServer, put, useExtendedServers } from "../support/extended.ts"
import { fail, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { mustMatch, schemaCheck } from "../support/server/answers.ts"
import { startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"

interface Operation {
  readonly mutates: boolean
  readonly role: string
  readonly request: string
  readonly answer: string
}

const table: Readonly<Record<string, Operation>> = JSON.parse(
  readFileSync(join(import.meta.dirname, "..", "..", "schemas", "operations.json"), "utf8")
)

/** A client that a generator would make: one function per operation, which checks both ways. */
const clientOf = (socket: Socket) => {
  const answered = new Set<string>()
  const call = async (op: string, fields: Json = {}): Promise<Json> => {
    mustMatch(table[op]!.request, { id: "1", op, ...fields })
    const ok = await socket.ok(op, fields)
    mustMatch(table[op]!.answer, ok)
    answered.add(op)
    return ok
  }
  return { answered, call, socket }
}
type Client = ReturnType<typeof clientOf>

const servers = useExtendedServers()
const write = use("write_file", { path: "note.txt", content: "hello\n" })
const hook = {
  name: "flaky",
  command: ["sh", "-c", "test -e seen && exit 0; touch seen; exit 1"],
  failure_policy: { type: "retry", max_attempts: 2, delay_ms: 600_000 }
}
const played = scenarios({
  write: [step(1, write), step(2, say("done"))],
  lookup: [step(1, use("lookup", { word: "x" })), step(2, say("done"))],
  looking: [step(1, say("let me see"), use("no_such_tool")), step(2, say("done"))],
  broken: [{ play: [fail("invalid_request")] }],
  stalled: [{ play: [say("wait"), { stall: true }] }]
})

const open = async (): Promise<{ readonly client: Client; readonly server: ExtendedServer }> => {
  const dataDirectory = servers.directory()
  put(join(dataDirectory, "hooks.json"), { hooks: [hook] })
  const server = await servers.open({ dataDirectory, scenarios: played })
  return { client: clientOf(await server.connect()), server }
}

const begin = async ({ call }: Client, fields: Json): Promise<Json> => {
  const { conversation_id } = await call("conversation.create", fields)
  await call("subscribe", { conversation_id })
  return { conversation_id }
}

/** Resolves when the conversation has a rune of the kind. */
const rune = async ({ socket }: Client, { conversation_id: id }: Json, kind: string, nth = 1): Promise<Json> => {
  const found = () => socket.runes().filter((one) => one["conversation_id"] === id && one["kind"] === kind)[nth - 1]
  await socket.until(() => found() !== undefined)
  return found()!["payload"] as Json
}

const lives = async (client: Client): Promise<void> => {
  const { call } = client
  const id = await begin(client, { title: "one", labels: { a: "b" } })
  await call("message.post", { ...id, content: "hello" })
  await rune(client, id, "turn.completed")
  await call("conversation.pause", { ...id, reason: "lunch" })
  await call("conversation.resume", id)
  await call("conversation.fork", { ...id, at_event_id: 2 })
  await call("budget.set", { ...id, tokens: 10_000 })
  const { agent_id } = await call("agent.spawn", { ...id, role: "worker", name: "digger" })
  await call("agent.message", { ...id, agent_id, content: "dig" })
  await call("agent.list", id)
  await call("agent.kill", { ...id, agent_id, force: true })
  await call("conversation.get", id)
  await call("conversation.prompt", id)
  for (const window of [{}, { window: "1h" }]) {
    await call("stats", window)
    await call("stats", { ...id, ...window })
  }
  await call("conversation.close", id)
  await rune(client, id, "session.closed")
  await call("conversation.archive", id)
  await call("conversation.list", { limit: 1 })
  await call("conversation.restore", id)
}

const turns = async (client: Client): Promise<void> => {
  const { call } = client
  const stalled = await begin(client, { model: "scripted/stalled" })
  await call("message.post", { ...stalled, content: "go" })
  await call("message.post", { ...stalled, content: "and then" })
  await call("conversation.get", stalled)
  await call("turn.interrupt", stalled)
  const broken = await begin(client, { model: "scripted/broken" })
  await call("message.post", { ...broken, content: "go" })
  await rune(client, broken, "turn.error")
  await call("conversation.get", broken)
  await call("turn.retry", broken)
  const poor = await begin(client, { model: "scripted/looking", budget: { tokens: 5 } })
  await call("message.post", { ...poor, content: "go" })
  await rune(client, poor, "session.suspended")
  await call("conversation.get", poor)
  await call("conversation.unsuspend", poor)
  await rune(client, poor, "session.suspended", 2)
  await call("budget.set", { ...poor, tokens: 1_000_000 })
}

const questions = async (client: Client, workspace: string): Promise<void> => {
  const { call } = client
  await call("attention.subscribe")
  for (const answer of ["approval.approve", "approval.deny"]) {
    const id = await begin(client, { model: "scripted/write", workspace })
    await call("message.post", { ...id, content: "go" })
    const { call_id } = await rune(client, id, "tool.approval_requested")
    await call("attention.list")
    await call("approval.list")
    const { items } = await call("approval.list", id)
    const { arguments_hash } = (items as ReadonlyArray<Json>)[0]!
    const isYes = answer === "approval.approve"
    await call(answer, { ...id, call_id, ...(isYes ? { scope: "once", arguments_hash } : {}) })
    if (!isYes) continue
    await rune(client, id, "turn.retry_scheduled")
    await call("conversation.get", id)
    const { hook_run_id } = await rune(client, id, "hook.started")
    await call("hook.retry", { ...id, hook_run_id })
    await rune(client, id, "turn.completed")
  }
}

const permissions = async (client: Client, workspace: string): Promise<void> => {
  const { call } = client
  const id = await begin(client, { model: "scripted/write", workspace })
  await call("message.post", { ...id, content: "go" })
  const { call_id } = await rune(client, id, "tool.approval_requested")
  const { items } = await call("approval.list", id)
  const { arguments_hash } = (items as ReadonlyArray<Json>)[0]!
  await call("approval.approve", { ...id, call_id, scope: "session", arguments_hash })
  const { items: grants } = await call("grant.list")
  const [{ event_id } = {}] = grants as ReadonlyArray<Json>
  await call("grant.revoke", { ...id, grant_event_id: event_id })
  const { revision } = await call("policy.get")
  await call("policy.test", { policy: { rules: [{ decision: "deny", tool: "write_file" }] } })
  await call("policy.set", { policy: { rules: [] }, revision })
}

const plans = async (client: Client, workspace: string): Promise<void> => {
  const { call } = client
  // A goal that goes on may be over before it is cancelled: each is answered once, while its plan waits.
  for (const answer of ["plan.approve", "plan.reject", "plan.cancel"]) {
    const goal = { goal: "write a letter", workspace, model: "scripted/goal-success", auto_start: false }
    const { conversation_id, plan_id } = await call("goal.submit", goal)
    await call("subscribe", { conversation_id })
    await rune(client, { conversation_id }, "plan.created")
    await call("attention.list")
    await call("conversation.get", { conversation_id })
    await call("conversation.pause", { conversation_id })
    await call("goal.resume", { conversation_id, plan_id })
    await call(answer, { conversation_id, plan_id, ...(answer === "plan.cancel" ? {} : { revision: 1 }) })
    await call("conversation.get", { conversation_id })
  }
}

/** Workers that never end by themselves: each change finds one at work. */
const tasks = async (client: Client, workspace: string): Promise<void> => {
  const { call } = client
  const { conversation_id, plan_id } = await call("goal.submit", {
    ...{ goal: "never ends", workspace, model: "scripted/goal-endless", auto_start: false }
  })
  await call("subscribe", { conversation_id })
  await rune(client, { conversation_id }, "plan.created")
  await call("plan.approve", { conversation_id, plan_id })
  const { task_id } = await rune(client, { conversation_id }, "plan.task_started")
  const of = { conversation_id, plan_id, task_id }
  await call("plan.task.steer", { ...of, content: "hurry" })
  await call("plan.task.reassign", { ...of, reason: "too slow" })
  await call("plan.task.edit", { ...of, title: "another title" })
  const evidence = [{ type: "file", path: "more.txt" }]
  await call("plan.task.add", { ...of, task_id: "more", title: "more", instructions: "write more.txt", evidence })
  await call("plan.task.reorder", { ...of, task_id: "more", before: task_id, priority: "high" })
  await call("plan.task.drop", { ...of, task_id: "more" })
  await call("plan.task.retry", { ...of, task_id: "more", reason: "needed after all" })
  await call("conversation.get", { conversation_id })
  await call("plan.cancel", { conversation_id, plan_id })
}

const ownTools = async (client: Client): Promise<void> => {
  const { call } = client
  const id = await begin(client, { model: "scripted/lookup", policy: { mode: "full_access" } })
  const parameters = { type: "object", properties: { word: { type: "string" } } }
  const tools = [{ name: "lookup", description: "looks a word up", parameters }]
  await call("tool.register", { ...id, tools })
  await call("message.post", { ...id, content: "go" })
  const { call_id } = await rune(client, id, "tool.started")
  const again = await call("tool.register", { ...id, tools })
  expect(again).toMatchObject({ open: [{ call_id }], waiting: [{ call_id, attempt: 1 }] })
  await call("tool.result", { ...id, call_id, output: "a letter" })
  await rune(client, id, "turn.completed")
}

const forAdmins = ["token.list", "token.create", "token.remove", "server.stop", "server.fibers"]

describe("a client made of the schemas", { timeout: 60_000 }, () => {
  it("can ask for every operation, and every answer is what they say", async () => {
    const { client, server } = await open()
    await lives(client)
    await turns(client)
    await questions(client, server.workspace)
    await permissions(client, server.workspace)
    await plans(client, server.workspace)
    await tasks(client, server.workspace)
    await ownTools(client)
    const { sub } = await client.call("subscribe", { conversation_id: "*", after: "tail" })
    await client.call("unsubscribe", { sub })
    await client.call("harness.list")
    const { conversation_id: demo } = await client.call("goal.demo")
    await client.call("conversation.close", { conversation_id: demo })
    await client.call("server.info")
    // Outside agents are programs that test/e2e/outsideAgents.test.ts starts, and a tool waits for its retry too short a
    // time to be asked for. Checkpoints need a workspace that a turn changes: test/e2e/chatTerminal.test.ts goes back.
    expect(Object.keys(table).filter((op) => !client.answered.has(op))).toEqual([
      "tool.retry",
      "checkpoint.list",
      "checkpoint.preview",
      "checkpoint.restore",
      "harness.launch",
      "harness.attach",
      "harness.send",
      "harness.interrupt",
      "terminal.attach",
      "terminal.input",
      "terminal.resize",
      ...forAdmins
    ])
  })

  it("can ask a server of its own for what administers it", async () => {
    const server = await startProcess(servers.directory())
    try {
      const socket = await Socket.open(server.url)
      await socket.hello(server.token)
      const { answered, call } = clientOf(socket)
      await call("token.create", { name: "vera", role: "viewer" })
      await call("token.list")
      await call("token.remove", { name: "vera" })
      await call("server.fibers")
      await call("server.stop", { reason: "the test is over" })
      expect([...answered].toSorted()).toEqual(forAdmins.toSorted())
    } finally {
      await server.end("SIGKILL")
    }
  })

  it("is told of a field that is missing, wrong or unknown before the server is", () => {
    const isRequest = schemaCheck(table["conversation.fork"]!.request)
    const request = { id: "1", op: "conversation.fork", conversation_id: "conv_00000000", at_event_id: 1 }
    expect(isRequest(request)).toBe(true)
    for (const wrong of [{ at_event_id: "1" }, { at_event_id: undefined }, { to: 5 }, { conversation_id: "../x" }])
      expect(isRequest(JSON.parse(JSON.stringify({ ...request, ...wrong })))).toBe(false)
  })
})
