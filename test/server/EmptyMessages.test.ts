// Goal: a message that says nothing is refused where it is said, by name, and starts nothing. Method: every operation that
// takes words, over WebSocket and HTTP, and the command line, with every kind of nothing.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { startProcess } from "../support/server/Process.ts"
import { useServers } from "../support/server/TestServer.ts"

const servers = useServers()

const nothings: ReadonlyArray<readonly [name: string, content: unknown]> = [
  ["an empty text", ""],
  ["spaces, tabs and line ends", " \t\r\n "],
  ["other white space", "\u00a0\u2003\ufeff"],
  ["no parts", []],
  ["an empty part", [{ type: "text", text: "" }]],
  [
    "parts of white space",
    [
      { type: "text", text: " " },
      { type: "text", text: "\n" }
    ]
  ]
]

describe("a message of", () => {
  it.each(nothings)("%s is refused everywhere, and nothing is written", async (_, content) => {
    const server = await servers.open()
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/echo" })
    const { last_event_id: head, agents } = (await socket.ok("conversation.get", { conversation_id: id })) as {
      last_event_id: number
      agents: ReadonlyArray<{ agent_id: string }>
    }
    const agentId = agents[0]!.agent_id
    const asked = [
      ["message.post", { content }],
      ["message.post", { content, mode: "steer" }],
      ["agent.message", { agent_id: agentId, content }]
    ] as const
    for (const [op, fields] of asked) {
      const { error } = await socket.ask(op, { conversation_id: id, ...fields })
      expect(error).toMatchObject({ code: "bad_request", message: expect.stringContaining("empty") })
    }
    const posted = await fetch(`${server.url}/v1/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
      body: JSON.stringify({ id: "1", op: "message.post", conversation_id: id, content })
    })
    expect(posted.status).toBe(400)
    if (typeof content === "string") {
      const goals = [{ goal: content }, { goal: content, conversation_id: id }]
      for (const goal of goals) expect((await socket.ask("goal.submit", goal)).error?.code).toBe("bad_request")
    }
    expect(await socket.ok("conversation.get", { conversation_id: id })).toMatchObject({ last_event_id: head })
    expect((await socket.ok("conversation.list", {}))["items"]).toHaveLength(1)
  })
})

describe("the command line", { timeout: 60_000 }, () => {
  const data = mkdtempSync(join(tmpdir(), "echs-empty-"))
  let server: Awaited<ReturnType<typeof startProcess>>
  beforeAll(async () => {
    server = await startProcess(data)
  })
  afterAll(async () => {
    await server.end("SIGTERM")
    rmSync(data, { recursive: true, force: true })
  })

  it.each([
    ["send", "--new", ""],
    ["send", "--new", " \n "],
    ["goal", " "]
  ])("echs %s %j %j says so and makes nothing", (...args) => {
    const echs = commandOn(data)
    const run = echs(args)
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("TEXT is empty") })
    expect(JSON.parse(echs(["ls", "--json"]).stdout).items).toEqual([])
  })
})
