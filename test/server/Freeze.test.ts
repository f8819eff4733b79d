// Goal: no operation of the protocol, in whatever condition its conversation or the log is, keeps the server from
// answering others. Method: a server in a process of its own, whose disk fails on command; every operation twice against
// each condition, and the health check after each.
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { errorCodes } from "#src/wire/Codes.ts"
import { type OperationName, operationNames } from "#src/wire/Operations.ts"
import { reportCount } from "../support/counts.ts"
import type { FaultCommand } from "../support/server/faultServer.ts"
import { type Json, Socket } from "../support/server/Socket.ts"

const script = join(import.meta.dirname, "..", "support", "server", "faultServer.ts")
const children: Array<{ readonly child: ChildProcess; readonly directory: string }> = []

afterEach(async () => {
  for (const { child, directory } of children.splice(0)) {
    const ended = once(child, "exit")
    child.kill("SIGKILL")
    await ended
    rmSync(directory, { recursive: true, force: true })
  }
})

interface FaultServer {
  readonly url: string
  readonly token: string
  readonly workspace: string
  readonly tell: (command: FaultCommand) => Promise<void>
  readonly connect: () => Promise<Socket>
  /** What a load balancer asks; never answered by a server that is frozen. */
  readonly health: () => Promise<Json>
  readonly errors: () => string
}

const open = async (): Promise<FaultServer> => {
  const directory = mkdtempSync(join(tmpdir(), "echs-freeze-"))
  const env = { ...process.env, NODE_OPTIONS: "" }
  const workspace = join(directory, "workspace")
  mkdirSync(workspace)
  const child = fork(script, [join(directory, "data")], {
    env,
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"]
  })
  children.push({ child, directory })
  let errors = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors += text
  })
  const [{ token, url }] = (await once(child, "message")) as [{ readonly url: string; readonly token: string }]
  return {
    url,
    token,
    workspace,
    errors: () => errors,
    tell: async (command) => {
      const done = once(child, "message")
      child.send(command)
      await done
    },
    connect: async () => {
      const socket = await Socket.open(url)
      await socket.hello(token)
      return socket
    },
    health: async () => (await fetch(`${url}/healthz`)).json() as Promise<Json>
  }
}

// Running it twice is harmless, so that a call of it is begun again whenever the conversation is read again.
const tool = {
  name: "look_up",
  description: "looks a word up",
  parameters: { type: "object" },
  mutating: false,
  effect_class: "pure"
}
const payload = (rune: Json): Json => rune["payload"] as Json

interface Scene {
  readonly server: FaultServer
  readonly socket: Socket
  /** The conversation that is asked about. */
  readonly id: string
  readonly agentId: string
  readonly callId: string
  /** Another one, quiet and healthy as far as the log lets it be. */
  readonly other: string
}

/** A conversation in the middle of a turn, which waits for the result of a tool that this client runs. */
const setScene = async (): Promise<Scene> => {
  const server = await open()
  const socket = await server.connect()
  const other = await socket.create()
  const created = await socket.ok("conversation.create", {
    model: "scripted/remote",
    policy: { mode: "full_access" },
    workspace: server.workspace
  })
  const id = String(created["conversation_id"])
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("tool.register", { conversation_id: id, tools: [tool] })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  const callId = String(payload(await socket.rune("tool.started"))["call_id"])
  return { server, socket, id, agentId: String(created["root_agent_id"]), callId, other }
}

const hash = "0".repeat(64)

/** What each operation is asked with; also that they are all there is checked by the compiler. */
const fieldsFor = ({ agentId, callId, id }: Scene): Readonly<Record<OperationName, Json>> => {
  const conversation = { conversation_id: id }
  const plan = { ...conversation, plan_id: "plan_00000000" }
  const task = { ...plan, task_id: "a" }
  return {
    "conversation.create": {},
    "conversation.list": {},
    "conversation.get": conversation,
    "conversation.prompt": conversation,
    "conversation.pause": conversation,
    "conversation.resume": conversation,
    "conversation.unsuspend": conversation,
    "conversation.fork": { ...conversation, at_event_id: 3 },
    "message.post": { ...conversation, content: "more" },
    "goal.submit": { ...conversation, goal: "a goal" },
    "goal.demo": {},
    "plan.approve": plan,
    "plan.reject": plan,
    "goal.resume": plan,
    "plan.cancel": plan,
    "plan.task.add": { ...task, title: "a", instructions: "do a", evidence: [{ type: "file", path: "a" }] },
    "plan.task.edit": { ...task, title: "b" },
    "plan.task.drop": task,
    "plan.task.retry": task,
    "plan.task.reassign": task,
    "plan.task.reorder": task,
    "plan.task.steer": { ...task, content: "look" },
    "approval.list": {},
    "approval.approve": { ...conversation, call_id: callId, scope: "once", arguments_hash: hash },
    "approval.deny": { ...conversation, call_id: callId },
    "checkpoint.list": conversation,
    "checkpoint.preview": conversation,
    "checkpoint.restore": { ...conversation, what: "files" },
    "agent.spawn": { ...conversation, role: "helper" },
    "agent.message": { ...conversation, agent_id: agentId, content: "hello" },
    "agent.list": conversation,
    "budget.set": { ...conversation, tokens: 1_000_000 },
    subscribe: { ...conversation, after: 0 },
    unsubscribe: { sub: "s1" },
    "attention.subscribe": {},
    "attention.list": {},
    "tool.register": { ...conversation, tools: [tool] },
    "tool.result": { ...conversation, call_id: callId, output: "a sign" },
    "tool.retry": { ...conversation, call_id: callId },
    "hook.retry": { ...conversation, hook_run_id: "hook_00000000" },
    "harness.launch": { harness: "generic", command: ["true"], workspace: "/" },
    "harness.attach": conversation,
    "harness.list": {},
    "harness.send": { ...conversation, content: "x" },
    "harness.interrupt": conversation,
    "terminal.attach": conversation,
    "terminal.input": { sub: "s1", data: "eA==" },
    "terminal.resize": { sub: "s1", columns: 80, rows: 24 },
    "policy.get": {},
    "policy.test": {},
    "policy.set": { policy: {}, revision: hash },
    "grant.list": {},
    "grant.revoke": { ...conversation, grant_event_id: 1 },
    stats: conversation,
    "token.list": {},
    "token.create": { name: "guest", role: "viewer" },
    "token.remove": { name: "guest" },
    "server.info": {},
    "server.fibers": {},
    "server.stop": {},
    // Those that end something come last.
    "turn.interrupt": conversation,
    "turn.retry": conversation,
    "agent.kill": { ...conversation, agent_id: agentId },
    "conversation.close": conversation,
    "conversation.archive": conversation,
    "conversation.restore": conversation
  }
}

/** Asks for each operation twice, and for health after each; returns the codes it met. */
const askAll = async (scene: Scene, before: () => Promise<unknown> = async () => undefined) => {
  const { server, socket } = scene
  const codes = new Map<string, number>()
  const fields = fieldsFor(scene)
  expect(Object.keys(fields).sort()).toEqual([...operationNames].sort())
  for (const op of Object.keys(fields) as ReadonlyArray<OperationName>) {
    for (let time = 1; time <= 2; time++) {
      await before()
      const { error } = await socket.ask(op, fields[op])
      const code = error?.code ?? "ok"
      expect(["ok", ...Object.keys(errorCodes)], `${op}: ${JSON.stringify(error)}`).toContain(code)
      expect(code, `${op}: ${JSON.stringify(error)}\n${server.errors()}`).not.toBe("internal")
      codes.set(code, (codes.get(code) ?? 0) + 1)
      expect(await server.health(), op).toHaveProperty("status")
    }
  }
  reportCount("operations answered in a bad condition, with health after each", operationNames.length * 2)
  return codes
}

describe("the server answers every operation, and others meanwhile", { timeout: 120_000 }, () => {
  it("when the conversation is well", async () => {
    const codes = await askAll(await setScene())
    expect(codes.get("ok")).toBeGreaterThan(20)
  })

  it("when the conversation has left memory", async () => {
    const scene = await setScene()
    const { other, socket } = scene
    const codes = await askAll(scene, () => socket.ask("conversation.get", { conversation_id: other }))
    expect(codes.get("ok")).toBeGreaterThan(20)
  })

  it("when the work was stopped because the log refused a write", async () => {
    const scene = await setScene()
    const { callId, id, server, socket } = scene
    await server.tell({ fault: "ENOSPC" })
    const result = { conversation_id: id, call_id: callId, output: "a sign" }
    expect((await socket.error("tool.result", result)).code).toMatch(/read_only|busy/)
    // A client that repeats it, as it should.
    for (let time = 0; time < 20; time++) {
      await socket.ask("tool.result", result)
      expect(await server.health()).toHaveProperty("status")
    }
    const codes = await askAll(scene)
    expect(codes.get("read_only")).toBeGreaterThan(0)
  })

  it("when the log is poisoned", async () => {
    const scene = await setScene()
    await scene.server.tell({ fault: "EIO" })
    const codes = await askAll(scene)
    expect(codes.get("read_only")).toBeGreaterThan(10)
    for (const method of ["GET", "HEAD"]) {
      expect((await fetch(`${scene.server.url}/healthz`, { method })).status, method).toBe(503)
    }
    expect(await scene.server.health()).toMatchObject({ status: "read_only" })
  })

  it("when the conversation is closed while its tool runs", async () => {
    const scene = await setScene()
    await scene.socket.ok("conversation.close", { conversation_id: scene.id })
    const codes = await askAll(scene)
    expect(codes.get("invalid_state")).toBeGreaterThan(5)
  })

  it("when the server itself is stopping", async () => {
    const scene = await setScene()
    const { server, socket } = scene
    await server.tell({ close: true })
    // The door is shut, but whoever is inside is still answered.
    while ((await socket.ask("conversation.get", { conversation_id: scene.id })).error?.code !== "busy");
    for (const [op, fields] of Object.entries(fieldsFor(scene))) {
      const { error } = await socket.ask(op, fields)
      expect(error?.code ?? "ok", `${op}: ${JSON.stringify(error)}`).not.toBe("internal")
    }
  })

  it("when a slow reader of everything has a cursor far beyond the head", async () => {
    const { id, other, server, socket } = await setScene()
    const slow = await server.connect()
    const cursors = { [other]: 1_000_000, [id]: 1_000_000 }
    await slow.ok("subscribe", { conversation_id: "*", after: 0, cursors })
    slow.raw.pause()
    const follower = await server.connect()
    await follower.ok("subscribe", { conversation_id: "*", after: 0 })
    for (const one of [id, other]) await socket.ok("message.post", { conversation_id: one, content: "hello" })
    await follower.rune("turn.completed")
    expect(await server.health()).toMatchObject({ status: "ok" })
    slow.raw.resume()
    await slow.until(() => slow.pushed.filter((frame) => "error" in frame).length === 2)
    const told = slow.pushed.filter((frame) => "error" in frame).map((frame) => frame["conversation_id"])
    expect(told.sort()).toEqual([id, other].sort())
  })
})
