// Goal: what an MCP server asks a person ends with the call that asked, in every way a call can end, and an answer to what
// is gone is told so; an answer has to fit the form that the server asked for, and can be given again. Method: a server of
// our own that asks what the call says, as a real process; a running server, and one in a process of its own that is killed.
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { follow, put, useExtendedServers } from "../support/extended.ts"
import { command } from "../support/mcp/host.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
let place = ""
let running: ServerProcess | undefined
afterEach(async () => {
  await running?.end("SIGKILL")
  running = undefined
  if (place !== "") rmSync(place, { recursive: true, force: true })
})

const payload = (rune: Json): Json => rune["payload"] as Json
const mcpServers = { bad: { command: command("asks") } }
const play = (input: Json) => [step(1, use("bad__act", input)), step(2, say("done"))]

const inboxOf = async (socket: Socket, id: unknown): Promise<ReadonlyArray<Json>> =>
  (await socket.ok("approval.list", { conversation_id: id }))["items"] as ReadonlyArray<Json>

/** Nothing of it is left in any list of what waits for a person. */
const expectNoGhost = async (socket: Socket, id: unknown): Promise<void> => {
  expect(await inboxOf(socket, id)).toEqual([])
  expect((await socket.ok("approval.list"))["items"]).toEqual([])
  const { items } = (await socket.ok("attention.list")) as { items: ReadonlyArray<Json> }
  expect(items.filter(({ type }) => type === "approval" || type === "question")).toEqual([])
  expect(await socket.ok("conversation.get", { conversation_id: id })).toMatchObject({ pending_approvals: [] })
}

const answerTo = (id: unknown, { arguments_hash, call_id }: Json, given?: unknown): Json => ({
  conversation_id: id,
  call_id,
  scope: "once",
  arguments_hash,
  ...(given === undefined ? {} : { arguments: given })
})

const begin = async (input: Json) => {
  const server = await servers.open({ mcpServers, scenarios: scenarios({ it: play(input) }) })
  const socket = await server.connect()
  const id = await follow(server, socket, { model: "scripted/it", policy: { mode: "full_access" } })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  if (input["leaves"] !== "at_once") await socket.rune("tool.approval_requested")
  return { id, socket, leave: () => put(join(server.workspace, "leave"), "") }
}

const resultsOf = (socket: Socket): Readonly<Record<string, Json>> => {
  const results = socket.runes().filter(({ kind }) => kind === "tool.result")
  return Object.fromEntries(results.map((rune) => [String(payload(rune)["call_id"]), payload(rune)]))
}

describe("a question of an MCP server", { timeout: 60_000 }, () => {
  it.each([
    ["with_a_result", "success"],
    ["with_an_error", "error"],
    ["for_good", "unknown"]
  ])("ends with its call when the server leaves %s", async (leaves, status) => {
    const { id, leave, socket } = await begin({ leaves })
    expect(await inboxOf(socket, id)).toHaveLength(1)
    leave()
    await socket.rune("turn.completed")
    const results = resultsOf(socket)
    expect(results["call_1"]).toMatchObject({ status })
    expect(results["call_1.question_1_1"]).toMatchObject({ status: "cancelled" })
    await expectNoGhost(socket, id)
  })

  it("is not asked, or ends, when its call is over at once", async () => {
    const { id, socket } = await begin({ leaves: "at_once" })
    await socket.rune("turn.completed")
    const results = resultsOf(socket)
    expect(results["call_1"]).toMatchObject({ status: "success", output: "never mind" })
    const asked = socket.runes().filter(({ kind }) => kind === "tool.call").length - 1
    expect(Object.values(results).filter(({ status }) => status === "cancelled")).toHaveLength(asked)
    await expectNoGhost(socket, id)
  })

  it("ends with the turn that is interrupted", async () => {
    const { id, socket } = await begin({})
    await socket.ok("turn.interrupt", { conversation_id: id })
    await socket.rune("turn.interrupted")
    expect(resultsOf(socket)["call_1.question_1_1"]).toMatchObject({ status: "cancelled" })
    await expectNoGhost(socket, id)
  })

  it.each(["SIGKILL", "SIGTERM"] as const)("ends with the server that is ended by %s", async (signal) => {
    place = realpathSync(mkdtempSync(join(tmpdir(), "echs-question-")))
    const data = join(place, "data")
    const workspace = join(place, "work")
    const scenario = join(place, "scenario.json")
    put(join(workspace, "readme"), "")
    put(join(data, "config.json"), { mcp_servers: mcpServers })
    put(scenario, scenarios({ it: play({}) })["it"] as object)
    running = await startProcess(data)
    const first = await Socket.open(running.url)
    await first.hello(running.token)
    const model = `scripted/${scenario}`
    const id = await first.create({ workspace, model, policy: { mode: "full_access" } })
    await first.ok("subscribe", { conversation_id: id })
    await first.ok("message.post", { conversation_id: id, content: "go" })
    await first.rune("tool.approval_requested")
    const [asked] = await inboxOf(first, id)
    await running.end(signal)
    running = await startProcess(data)
    const socket = await Socket.open(running.url)
    await socket.hello(running.token)
    await socket.ok("subscribe", { conversation_id: id, after: 0 })
    await socket.rune("turn.completed")
    expect(resultsOf(socket)).toMatchObject({
      call_1: { status: "unknown" },
      "call_1.question_1_1": { status: "cancelled" }
    })
    await expectNoGhost(socket, id)
    const late = await socket.error("approval.approve", answerTo(id, asked!, { who: "Ada" }))
    expect(late).toMatchObject({ code: "already_decided", data: { decision: { decision: "cancelled" } } })
    expect(late.message).toContain("nobody waits for an answer any more")
    expect(socket.runes().filter(({ kind }) => kind === "tool.approved")).toEqual([])
  })
})

const form = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 2, maxLength: 10 },
    age: { type: "integer", minimum: 18 },
    share: { type: "number", maximum: 1 },
    agreed: { type: "boolean" },
    friend: { type: "string", enum: ["Ada", "Grace"], default: "Ada" },
    titled: { type: "string", oneOf: [{ const: "a", title: "A" }] },
    several: { type: "array", items: { type: "string", enum: ["x", "y"] }, maxItems: 1 },
    mail: { type: "string", format: "email" },
    page: { type: "string", format: "uri" },
    day: { type: "string", format: "date" },
    moment: { type: "string", format: "date-time" },
    trap: { type: "string", pattern: "^(a+)+$" }
  },
  required: ["name", "agreed"]
}
const good = { name: "Ada", agreed: true }
const wrong: ReadonlyArray<readonly [unknown, RegExp]> = [
  [undefined, /name is missing/],
  [{}, /name is missing/],
  [{ name: "Ada" }, /agreed is missing/],
  ["Ada", /object/],
  [[], /object/],
  [{ ...good, name: 7 }, /name must be string/],
  [{ ...good, name: "A" }, /name .*2 characters/],
  [{ ...good, name: "A".repeat(11) }, /name .*10 characters/],
  [{ ...good, name: null }, /name must be string/],
  [{ ...good, age: 17 }, /age must be >= 18/],
  [{ ...good, age: 18.5 }, /age must be integer/],
  [{ ...good, age: "18" }, /age must be integer/],
  [{ ...good, share: 1.1 }, /share must be <= 1/],
  [{ ...good, agreed: "yes" }, /agreed must be boolean/],
  [{ ...good, friend: "Bob" }, /friend must be one of "Ada", "Grace"/],
  [{ ...good, titled: "b" }, /titled/],
  [{ ...good, several: ["x", "y"] }, /several .*1 item/],
  [{ ...good, several: ["z"] }, /several.0 must be one of/],
  [{ ...good, mail: "ada" }, /mail is no email/],
  [{ ...good, mail: "ada@" }, /mail is no email/],
  [{ ...good, page: "nowhere" }, /page is no uri/],
  [{ ...good, day: "2026-02-30" }, /day is no date/],
  [{ ...good, day: "tomorrow" }, /day is no date/],
  [{ ...good, moment: "2026-02-03" }, /moment is no date-time/]
]
const right = {
  ...good,
  age: 18,
  share: 0.5,
  friend: "Grace",
  titled: "a",
  several: ["y"],
  mail: "ada@example.org",
  page: "https://example.org/ada",
  day: "2026-02-28",
  moment: "2026-02-28T12:00:00Z",
  // Patterns are the server's to check: this one takes for ever.
  trap: `${"a".repeat(60)}!`
}

describe("an answer", { timeout: 60_000 }, () => {
  it("that does not fit the form is refused with the reason, and can be given again", async () => {
    const { id, socket } = await begin({ asked: form })
    const [asked] = await inboxOf(socket, id)
    expect(String(JSON.stringify(asked!["shown_as"]))).toContain("required: name, agreed")
    for (const [given, reason] of wrong) {
      const refused = await socket.error("approval.approve", answerTo(id, asked!, given))
      expect(refused, JSON.stringify(given)).toMatchObject({
        code: "bad_request",
        message: expect.stringMatching(reason)
      })
    }
    expect(await inboxOf(socket, id)).toHaveLength(1)
    await socket.ok("approval.approve", answerTo(id, asked!, right))
    await socket.rune("turn.completed")
    expect(JSON.parse(String(resultsOf(socket)["call_1"]?.["output"]))).toEqual({ action: "accept", content: right })
  })

  it("is the defaults of the form where they are enough", async () => {
    const { id, socket } = await begin({ asked: { ...form, required: ["friend"] } })
    const [asked] = await inboxOf(socket, id)
    await socket.ok("approval.approve", answerTo(id, asked!))
    await socket.rune("turn.completed")
    const { output } = resultsOf(socket)["call_1"] ?? {}
    expect(JSON.parse(String(output))).toEqual({ action: "accept", content: { friend: "Ada" } })
  })

  it("may also be a no", async () => {
    const { id, socket } = await begin({ asked: form })
    const [asked] = await inboxOf(socket, id)
    await socket.ok("approval.deny", { conversation_id: id, call_id: asked!["call_id"] })
    await socket.rune("turn.completed")
    expect(JSON.parse(String(resultsOf(socket)["call_1"]?.["output"]))).toEqual({ action: "decline" })
  })
})
