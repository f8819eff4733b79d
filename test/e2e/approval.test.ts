// Goal: a question waits for its answer whatever happens to the server, is answered once, and what was allowed for longer
// holds for that and nothing else. Method: real server processes with the built-in tools, killed and started again;
// scripted models; plain sockets and the command as people run it.
// Verifies: G5, G6
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { count, reportCount } from "../support/counts.ts"
import { always, type ReplySpec, say, use } from "../support/runtime/scenarios.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { isContainedHere } from "../support/worlds.ts"

let place = ""
let data = ""
let workspace = ""
let model = ""
let server: ServerProcess
const sockets: Array<Socket> = []

/** A turn whose first model call, for an input that begins with the word, uses the tool. */
const onWord = (word: string, tool: string, args: object): ReplySpec => ({
  when: { input: `^${word}`, step: 1 },
  play: [use(tool, args)]
})

const replies: ReadonlyArray<ReplySpec> = [
  onWord("count", "bash", { command: "echo ran >> count.txt" }),
  onWord("list", "bash", { command: "ls  -a" }),
  onWord("other", "bash", { command: "ls -a; rm -f x" }),
  {
    when: { input: "^twice", step: 1 },
    play: [use("bash", { command: "ls -d" }), use("bash", { command: "ls  '-d'" }), use("bash", { command: "ls -r" })]
  },
  onWord("plain", "bash", { command: "ls -l" }),
  onWord("write", "write_file", { path: "a.txt", content: "one\n" }),
  onWord("again", "write_file", { path: "b.txt", content: "two\n" }),
  onWord("outside", "write_file", { path: "../c.txt", content: "no\n" }),
  onWord("question", "ask_user", { question: "Which color?", options: ["red", "blue"] }),
  onWord("cheat", "ask_user", { question: "Which color?", answer: "mine" }),
  always(say("done"))
]

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-approval-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  mkdirSync(workspace)
  const scenario = join(place, "scenario.json")
  writeFileSync(scenario, JSON.stringify({ name: "approval", replies }))
  model = `scripted/${scenario}`
  server = await startProcess(data)
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) await socket.close()
})
afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

const connect = async (): Promise<Socket> => {
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  sockets.push(socket)
  return socket
}

const create = (socket: Socket, more: Json = {}): Promise<string> => socket.create({ model, workspace, ...more })

/** Says something and waits until a call of it is asked about. */
const asked = async (socket: Socket, id: string, word: string, times = 1): Promise<Json> => {
  const { sub } = await socket.ok("subscribe", { conversation_id: id, after: "tail" })
  await socket.ok("message.post", { conversation_id: id, content: word })
  const found = () => socket.runes(sub).filter((rune) => rune["kind"] === "tool.approval_requested")
  await socket.until(() => found().length >= times)
  const { items } = await socket.ok("approval.list", { conversation_id: id })
  return (items as ReadonlyArray<Json>)[0]!
}

/** Says something and waits for the end of the turn; tells what was asked and how the calls ended. */
const said = async (socket: Socket, id: string, word: string) => {
  const { sub } = await socket.ok("subscribe", { conversation_id: id, after: "tail" })
  await socket.ok("message.post", { conversation_id: id, content: word })
  return ended(socket, sub)
}

const ended = async (socket: Socket, sub: unknown) => {
  const of = (kind: string) => socket.runes(sub).filter((rune) => rune["kind"] === kind)
  await socket.until(() => of("turn.completed").length + of("tool.approval_requested").length > 0)
  return {
    questions: of("tool.approval_requested").length,
    results: of("tool.result").map((rune) => rune["payload"] as Json)
  }
}

const waitForEnd = async (socket: Socket, id: string): Promise<ReadonlyArray<Json>> => {
  const { sub } = await socket.ok("subscribe", { conversation_id: id, after: 0 })
  await socket.until(() => socket.runes(sub).some((rune) => rune["kind"] === "turn.completed"))
  return socket.runes(sub)
}

const answerOf = (item: Json, more: Json = {}): Json => ({
  conversation_id: item["conversation_id"],
  call_id: item["call_id"],
  scope: "once",
  arguments_hash: item["arguments_hash"],
  ...more
})

const echs = (args: ReadonlyArray<string>) => commandOn(data, { cwd: workspace })(args)
const json = (args: ReadonlyArray<string>) => {
  const run = echs([...args, "--json"])
  expect(run.code, `${args.join(" ")}: ${run.stderr}`).toBe(0)
  return JSON.parse(run.stdout)
}

const lines = (name: string): number =>
  existsSync(join(workspace, name)) ? readFileSync(join(workspace, name), "utf8").split("\n").length - 1 : 0

describe("a question", () => {
  it("outlives kill −9, is answered by another client after the restart, and the call runs once", async () => {
    const rounds = count("approvals across kill −9", { fast: 10, soak: 200 })
    for (let round = 1; round <= rounds; round++) {
      const before = lines("count.txt")
      const first = await connect()
      const id = await create(first)
      const item = await asked(first, id, "count")
      await server.end("SIGKILL")
      server = await startProcess(data)
      const second = await connect()
      const { items } = await second.ok("approval.list", {})
      const waiting = (items as ReadonlyArray<Json>).find((one) => one["conversation_id"] === id)
      expect(waiting).toEqual(item)
      expect(lines("count.txt")).toBe(before)
      await second.ok("approval.approve", answerOf(item))
      const runes = await waitForEnd(second, id)
      expect(runes.filter((rune) => rune["kind"] === "tool.started")).toHaveLength(1)
      expect(runes.filter((rune) => rune["kind"] === "tool.result")).toHaveLength(1)
      expect(lines("count.txt")).toBe(before + 1)
      expect((await second.error("approval.approve", answerOf(item))).code).toBe("already_decided")
    }
    reportCount("approvals across kill −9, one execution each", rounds)
  })

  it("answered just before kill −9 has one result, and its call ran once at most", async () => {
    const rounds = count("kills just after an approval", { fast: 8, soak: 200 })
    const random = randomFrom(seedFor("kills just after an approval"))
    const ends: Record<string, number> = {}
    for (let round = 1; round <= rounds; round++) {
      const before = lines("count.txt")
      const first = await connect()
      const id = await create(first)
      const item = await asked(first, id, "count")
      // Not waited for: whether the answer was taken is for the log to say.
      void first.ask("approval.approve", answerOf(item)).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, random() * 25))
      await server.end("SIGKILL")
      server = await startProcess(data)
      const second = await connect()
      const { items } = await second.ok("approval.list", { conversation_id: id })
      if ((items as ReadonlyArray<Json>).length > 0) await second.ok("approval.approve", answerOf(item))
      const runes = await waitForEnd(second, id)
      const results = runes.filter((rune) => rune["kind"] === "tool.result").map((rune) => rune["payload"] as Json)
      expect(results).toHaveLength(1)
      expect(runes.filter((rune) => rune["kind"] === "tool.approved")).toHaveLength(1)
      const status = String(results[0]?.["status"])
      const ran = lines("count.txt") - before
      expect(ran).toBeLessThanOrEqual(1)
      if (status === "success") expect(ran).toBe(1)
      expect(["success", "unknown"]).toContain(status)
      ends[status] = (ends[status] ?? 0) + 1
    }
    for (const [status, number] of Object.entries(ends)) reportCount(`kills just after an approval: ${status}`, number)
  })

  it("says what exactly would run, where, with which reach, and what allowing it for longer means", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "list")
    expect(item).toMatchObject({
      tool_name: "bash",
      arguments: { command: "ls  -a" },
      shown_as: { detail: "ls  -a", workspace, roots: [workspace], network: false },
      policy_reason: expect.stringContaining(isContainedHere() ? "auto" : "no sandbox"),
      agent_names: ["root"]
    })
    const inbox = echs(["approve"]).stdout
    for (const part of [id, "call_1", "ls  -a", workspace, "without the network", "root"]) expect(inbox).toContain(part)
    expect(echs(["approve", "call_999"])).toMatchObject({ code: 2, stderr: expect.stringContaining("call_999") })
    const call = echs(["deny", "call_1", "--json"])
    const waiting = json(["approve"]).items.filter((one: Json) => one["call_id"] === "call_1")
    expect(call.code).toBe(waiting.length === 0 ? 0 : 2)
    if (call.code === 2) await socket.ok("approval.deny", { conversation_id: id, call_id: item["call_id"] })
    const edit = await asked(socket, id, "write")
    expect((edit["shown_as"] as Json)["diff"]).toContain("+one")
    await socket.ok("approval.deny", { conversation_id: id, call_id: edit["call_id"], interrupt: true })
  })

  it("that nobody answers in time has one result, and may also wait for ever", async () => {
    const socket = await connect()
    const id = await create(socket, { limits: { approval_timeout_ms: 50 } })
    const item = await asked(socket, id, "list").catch(() => undefined)
    const runes = await waitForEnd(socket, id)
    const results = runes.filter((rune) => rune["kind"] === "tool.result").map((rune) => rune["payload"] as Json)
    expect(results).toMatchObject([{ status: "timeout", error: { code: "approval_timeout" } }])
    if (item !== undefined) {
      const late = await socket.error("approval.approve", answerOf(item))
      expect(late).toMatchObject({ code: "already_decided", data: { decision: { decision: "expired" } } })
    }
    expect(json(["audit", id]).items).toMatchObject([{ decision: "expired", result: "timeout", sandbox: null }])
    // Without a limit a question waits as long as its conversation.
    for (const config of [{ limits: { approval_timeout_ms: 0 } }, {}])
      expect((await asked(socket, await create(socket, config), "list"))["expires_ms"]).toBeNull()
    const limited = await asked(socket, await create(socket, { limits: { approval_timeout_ms: 600_000 } }), "list")
    expect(Number(limited["expires_ms"]) - Number(limited["asked_ms"])).toBeGreaterThan(500_000)
  })

  it("is answered for the arguments that were shown, and for no others", async () => {
    const socket = await connect()
    const rules = [{ decision: "deny", tool: "bash", command: ["rm", "**"], reason: "no removals" }]
    const id = await create(socket, { policy: { rules } })
    const item = await asked(socket, id, "list")
    const stale = await socket.error("approval.approve", answerOf(item, { arguments_hash: "0".repeat(64) }))
    expect(stale).toMatchObject({ code: "bad_request", data: { arguments_hash: item["arguments_hash"] } })
    const wrong = await socket.error("approval.approve", answerOf(item, { arguments: { command: 7 } }))
    expect(wrong.code).toBe("bad_request")
    const denied = await socket.error("approval.approve", answerOf(item, { arguments: { command: "rm -r src" } }))
    expect(denied).toMatchObject({ code: "invalid_state", message: expect.stringContaining("no removals") })
    for (const [command, learns] of [["ls > x", "rule"]] as const) {
      const edit = answerOf(item, { arguments: { command }, scope: learns })
      expect((await socket.error("approval.approve", edit)).code).toBe("bad_request")
    }
    await socket.ok("approval.approve", answerOf(item, { arguments: { command: "echo edited > e.txt" } }))
    await waitForEnd(socket, id)
    expect(readFileSync(join(workspace, "e.txt"), "utf8")).toBe("edited\n")
    const [entry] = json(["audit", id]).items
    expect(entry).toMatchObject({
      decision: "approved",
      by: "local",
      channel: "websocket",
      scope: "once",
      arguments: { command: "echo edited > e.txt" },
      asked_arguments: { command: "ls  -a" },
      network: false,
      result: "success"
    })
    expect(entry.sandbox).toMatch(/^(bubblewrap|limits_only|none)/)
  })

  it("of a sub-agent is in the same inbox, with the way from the root", async () => {
    const socket = await connect()
    const id = await create(socket)
    const { agent_id: child } = await socket.ok("agent.spawn", { conversation_id: id, role: "worker", name: "digger" })
    await socket.ok("subscribe", { conversation_id: id, after: "tail" })
    await socket.ok("agent.message", { conversation_id: id, agent_id: child, content: "list" })
    await socket.rune("tool.approval_requested")
    const { items } = await socket.ok("approval.list", {})
    const item = (items as ReadonlyArray<Json>).find((one) => one["conversation_id"] === id)
    expect(item).toMatchObject({ agent_id: child, agent_names: ["root", "digger"] })
    expect((item!["agent_path"] as ReadonlyArray<string>).at(-1)).toBe(child)
    expect(echs(["approve"]).stdout).toContain("root › digger")
    await socket.ok("approval.approve", answerOf(item!))
    await socket.rune("turn.completed")
  })
})

describe("a permission for longer", () => {
  it("for the conversation holds for the same command, and not for one that begins like it", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "list")
    if (!(item["choices"] as ReadonlyArray<string>).includes("session")) {
      // Without a sandbox nothing can be allowed for longer: that is the rule, and it is tested without one.
      expect(item["choices"]).toEqual(["once"])
      return
    }
    await socket.ok("approval.approve", answerOf(item, { scope: "session" }))
    await waitForEnd(socket, id)
    expect(await said(socket, id, "list")).toMatchObject({ questions: 0, results: [{ status: "success" }] })
    const { items } = json(["audit", id])
    expect(items[0]).toMatchObject({ decision: "approved", scope: "session", rule: { command: ["ls", "-a"] } })
    expect(items[1]).toMatchObject({
      decision: "allowed by policy",
      by: "policy",
      reason: expect.stringContaining("a person")
    })
    expect((await said(socket, id, "other")).questions).toBe(1)
    await socket.ok("approval.deny", { conversation_id: id, call_id: "call_3" })
    const elsewhere = await create(socket)
    expect((await said(socket, elsewhere, "list")).questions).toBe(1)
  })

  it("answers what already waits and is covered, and leaves the rest to be asked", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "twice", 3)
    if (!(item["choices"] as ReadonlyArray<string>).includes("session")) return
    await socket.ok("approval.approve", answerOf(item, { scope: "session" }))
    const { items } = await socket.ok("approval.list", { conversation_id: id })
    expect(items).toMatchObject([{ arguments: { command: "ls -r" } }])
    await socket.ok("approval.approve", answerOf((items as ReadonlyArray<Json>)[0]!))
    await waitForEnd(socket, id)
    const audited: ReadonlyArray<Json> = json(["audit", id]).items
    expect(audited.map(({ by, decision, scope }) => [decision, scope, by])).toEqual([
      ["approved", "session", "local"],
      ["approved", "once", "local"],
      ["approved", "once", "local"]
    ])
  })

  it("for files covers the workspace by the same tool", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "write")
    await socket.ok("approval.approve", answerOf(item, { scope: "session" }))
    await waitForEnd(socket, id)
    expect(await said(socket, id, "again")).toMatchObject({ questions: 0, results: [{ status: "success" }] })
    expect((await said(socket, id, "outside")).questions).toBe(1)
    expect(readFileSync(join(workspace, "b.txt"), "utf8")).toBe("two\n")
  })

  it("for good is in the rune, in the server's file, and outlives the server", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "write")
    const answer = answerOf(item, { scope: "rule", idempotency_key: "for good" })
    const first = await socket.ok("approval.approve", answer)
    expect(first).toMatchObject({ learnt: true })
    expect(await socket.ok("approval.approve", answer)).toEqual(first)
    const approved = (await waitForEnd(socket, id)).find((rune) => rune["kind"] === "tool.approved")
    const rule = { decision: "allow", tool: "write_file", path: [join(workspace, "a.txt")], workspace }
    expect(approved?.["payload"]).toMatchObject({ scope: "rule", rule })
    const file = JSON.parse(readFileSync(join(data, "policy.json"), "utf8"))
    expect(file.learnt).toMatchObject([{ ...rule, reason: "allowed for good by local" }])
    await server.end("SIGKILL")
    server = await startProcess(data)
    const next = await connect()
    expect((await said(next, await create(next), "write")).questions).toBe(0)
    expect((await said(next, await create(next), "again")).questions).toBe(1)
    const other = join(place, "other")
    mkdirSync(other)
    expect((await said(next, await next.create({ model, workspace: other }), "write")).questions).toBe(1)
  })

  it("is refused where it was not offered", async () => {
    const socket = await connect()
    const id = await create(socket)
    const item = await asked(socket, id, "count")
    expect(item["choices"]).toEqual(["once"])
    const error = await socket.error("approval.approve", answerOf(item, { scope: "session" }))
    expect(error).toMatchObject({ code: "bad_request", data: { choices: ["once"] } })
  })
})

describe("the rules of a server", () => {
  it("are noticed when they change; a file that cannot be read asks about everything", async () => {
    const path = join(data, "policy.json")
    const before = existsSync(path) ? readFileSync(path, "utf8") : undefined
    const socket = await connect()
    const full = { policy: { mode: "full_access" } }
    const expectQuestions = async (questions: number) =>
      expect(await said(socket, await create(socket, full), "write")).toMatchObject({ questions })
    try {
      await expectQuestions(0)
      writeFileSync(path, "{ not json")
      await expectQuestions(1)
      const item = await asked(socket, await create(socket, full), "again")
      expect(await socket.ok("approval.approve", answerOf(item, { scope: "rule" }))).toMatchObject({ learnt: false })
      expect(readFileSync(path, "utf8")).toBe("{ not json")
      await expect.poll(server.errors, { timeout: 10_000 }).toContain("a permanent permission was not saved")
      writeFileSync(path, JSON.stringify({ rules: [{ decision: "permit", tool: "*" }] }))
      await expectQuestions(1)
      writeFileSync(path, JSON.stringify({ rules: [{ decision: "deny", tool: "write_file", reason: "not here" }] }))
      expect((await said(socket, await create(socket, full), "write")).results[0]).toMatchObject({
        status: "denied",
        error: { message: expect.stringContaining("not here") }
      })
    } finally {
      if (before === undefined) rmSync(path)
      else writeFileSync(path, before)
    }
  })

  it("and those of a conversation are refused when they are none", async () => {
    const socket = await connect()
    const policy = {
      rules: [
        { decision: "allow", tool: "bash" },
        { decision: "allow", command: "git status" }
      ]
    }
    const error = await socket.error("conversation.create", { model, workspace, policy })
    expect(error).toMatchObject({ code: "bad_request", message: expect.stringMatching(/^rule 2 of the policy: /) })
  })
})

describe("ask_user", () => {
  it("waits in the inbox, is answered or declined, and cannot be answered by the model", async () => {
    const socket = await connect()
    const id = await create(socket, { policy: { mode: "full_access" } })
    const item = await asked(socket, id, "question")
    expect(item).toMatchObject({ tool_name: "ask_user", choices: ["once"], shown_as: { title: "Which color?" } })
    expect((await socket.error("approval.approve", answerOf(item))).code).toBe("bad_request")
    expect(echs(["approve", id])).toMatchObject({ code: 2 })
    expect(echs(["approve", id, "--answer", "blue"]).code).toBe(0)
    const runes = await waitForEnd(socket, id)
    expect(runes.find((rune) => rune["kind"] === "tool.result")?.["payload"]).toMatchObject({
      status: "success",
      output: "blue"
    })
    const second = await create(socket)
    await asked(socket, second, "question")
    expect(echs(["deny", second, "--reason", "no opinion"]).code).toBe(0)
    const declined = (await waitForEnd(socket, second)).find((rune) => rune["kind"] === "tool.result")
    expect(declined?.["payload"]).toMatchObject({ status: "denied", error: { message: "no opinion" } })
    const third = await create(socket)
    const cheat = await asked(socket, third, "cheat")
    await socket.ok("approval.approve", answerOf(cheat, { arguments: { question: "Which color?", answer: "red" } }))
    const result = (await waitForEnd(socket, third)).find((rune) => rune["kind"] === "tool.result")
    expect(result?.["payload"]).toMatchObject({ status: "error", error: { code: "invalid_arguments" } })
  })
})

describe("a policy on the past", () => {
  it("lists what it would have blocked, asked and let run", async () => {
    const socket = await connect()
    const id = await create(socket, { policy: { mode: "full_access" } })
    await said(socket, id, "again")
    const other = await create(socket)
    const item = await asked(socket, other, "again")
    await socket.ok("approval.approve", answerOf(item))
    await waitForEnd(socket, other)
    const file = join(place, "new-policy.json")
    const test = (policy: object, ...args: ReadonlyArray<string>) => {
      writeFileSync(file, JSON.stringify(policy))
      const run = echs(["policy", "test", file, ...args, "--json"])
      return { code: run.code, ...JSON.parse(run.stdout || "{}") }
    }
    const strict = test({ mode: "auto", rules: [{ decision: "deny", tool: "write_file", path: "b.txt" }] }, id, other)
    expect(strict).toMatchObject({
      code: 1,
      conversations: 2,
      calls: 2,
      counts: { blocked: 2, asked: 0, let_run: 0, same: 0 }
    })
    expect(strict.items).toMatchObject([
      { conversation_id: id, happened: "ran", would: "deny", change: "blocked" },
      { conversation_id: other, happened: "approved", would: "deny", change: "blocked" }
    ])
    expect(test({ mode: "auto" }, id)).toMatchObject({ code: 0, counts: { asked: 1, blocked: 0 } })
    expect(test({ mode: "full_access" }, other)).toMatchObject({ code: 0, counts: { let_run: 1 } })
    expect(test({ mode: "full_access" }, id)).toMatchObject({ code: 0, items: [], counts: { same: 1 } })
    const all = test({ mode: "read_only" })
    expect(all.conversations).toBeGreaterThan(10)
    expect(all.code).toBe(1)
    reportCount("recorded calls put to a new policy", all.calls)
    expect(test({ rules: [{ decision: "allow" }] })).toMatchObject({ code: 2 })
    expect(echs(["policy", "check", file])).toMatchObject({ code: 2, stderr: expect.stringContaining("rule 1") })
    expect(echs(["policy"])).toMatchObject({ code: 2 })
  })
})

describe("without a sandbox", () => {
  it("every command is asked about one by one, also with full access and a rule, and the audit says what held it", async () => {
    const programs = join(place, "programs")
    mkdirSync(programs)
    for (const name of ["bash", "sh", "ls", "cat"]) symlinkSync(join("/bin", name), join(programs, name))
    const bare = join(place, "bare")
    const other = await startProcess(bare, { env: { PATH: programs } })
    const socket = await Socket.open(other.url)
    try {
      await socket.hello(other.token)
      const policy = { mode: "full_access", rules: [{ decision: "allow", tool: "bash" }] }
      const id = await create(socket, { policy })
      const item = await asked(socket, id, "list")
      expect(item).toMatchObject({ choices: ["once"], policy_reason: expect.stringContaining("no sandbox") })
      expect((await socket.error("approval.approve", answerOf(item, { scope: "session" }))).code).toBe("bad_request")
      await socket.ok("approval.approve", answerOf(item))
      const started = (await waitForEnd(socket, id)).find((rune) => rune["kind"] === "tool.started")
      expect(started?.["payload"]).toMatchObject({ sandbox: { level: expect.stringMatching(/^(limits_only|none)$/) } })
      expect(await said(socket, id, "list")).toMatchObject({ questions: 1 })
      const meant = {
        mode: "auto",
        rules: [{ decision: "allow", tool: "bash", command: ["ls", "-a"], uncontained: true }]
      }
      expect(await said(socket, await create(socket, { policy: meant }), "list")).toMatchObject({ questions: 0 })
    } finally {
      await socket.close()
      await other.end("SIGKILL")
    }
  })
})
