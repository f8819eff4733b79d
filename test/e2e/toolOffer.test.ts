// Goal: no number, name or schema of tools fails a turn, and what is not offered is said where people look. Method: a
// server with everything people get, MCP servers that offer too much and describe it oddly, tools of a client, and models
// in the three wire formats behind a server that refuses what the real ones refuse.
import { realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { limits as providerLimits } from "#src/provider/ProviderLimits.ts"
import { commandOn } from "../support/cli.ts"
import { follow, node, useExtendedServers } from "../support/extended.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import {
  type ProviderServer,
  serverKey,
  startProviderServer,
  type WireRequest
} from "../support/provider-server/Server.ts"
import type { Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
let models: ProviderServer
beforeAll(async () => {
  models = await startProviderServer()
})
afterAll(() => models.close())

const bad = realpathSync(join(import.meta.dirname, "../support/mcp/badServer.ts"))
const mcp = (mode: string) => ({ command: [node, bad, mode] })
const errorsIn = (socket: Socket): ReadonlyArray<Json> => socket.runes().filter(({ kind }) => kind === "system.error")
const payload = (rune: Json): Json => rune["payload"] as Json

const providers = () =>
  ({
    responses: { adapter: "openai-responses", baseUrl: `${models.url}/v1`, keyVariable: "TEST_KEY" },
    chat: { adapter: "openai-chat", baseUrl: `${models.url}/v1`, keyVariable: "TEST_KEY" },
    messages: { adapter: "anthropic", baseUrl: models.url, keyVariable: "TEST_KEY" }
  }) as const

const toolsIn = ({ body }: WireRequest): ReadonlyArray<Json> => (body as { tools?: ReadonlyArray<Json> }).tools ?? []

const shownOf = (tool: Json): { readonly name: string; readonly schema: Json } => {
  const shown = (tool["function"] ?? tool) as Json
  return { name: String(shown["name"]), schema: (shown["parameters"] ?? shown["input_schema"]) as Json }
}

/** Refuses what the real ones refuse, and otherwise answers. */
const strict = (format: Format, answer: (request: WireRequest) => Answer) =>
  models.respond((request) => {
    const shown = toolsIn(request).map(shownOf)
    const names = new Set(shown.map(({ name }) => name))
    const isRefused =
      shown.length > 128 ||
      names.size < shown.length ||
      shown.some(({ name, schema }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name) || schema["type"] !== "object") ||
      shown.some(({ schema }) => ["anyOf", "oneOf", "allOf"].some((key) => key in schema))
    if (!isRefused) return { body: format.stream(answer(request)) }
    return {
      status: 400,
      headers: { "content-type": "application/json" },
      body: format.errorBody("bad tools", "too_long")
    }
  })

describe.each(formats)("over $name", { timeout: 60_000 }, (format) => {
  const open = (mcpServers: object) =>
    servers.open({ mcpServers, providers: providers(), key: () => serverKey, model: `${format.name}/test-model` })

  it("more tools than a model takes are cut to the first, and what is left out is said, once", async () => {
    strict(format, () => plainAnswer)
    const server = await open({ first: mcp("many"), second: mcp("many") })
    const socket = await server.connect()
    const id = await follow(server, socket)
    const registered = Array.from({ length: 20 }, (_, at) => ({ name: `client_${at}` }))
    await socket.ok("tool.register", { conversation_id: id, tools: registered })
    for (const turn of [1, 2]) {
      await socket.ok("message.post", { conversation_id: id, content: "go" })
      await socket.rune("turn.completed", turn)
    }
    const offered = models.requests.map((request) => toolsIn(request).map((tool) => shownOf(tool).name))
    expect(offered[0]).toHaveLength(providerLimits.toolsMax)
    expect(offered[1]).toEqual(offered[0])
    expect(offered[0]).toEqual(expect.arrayContaining(["read_file", "bash", "spawn_agent", "first__tool_0"]))
    expect(offered[0]!.filter((name) => name.startsWith("second__"))).toEqual([])
    const told = errorsIn(socket).map(payload)
    expect(told.map(({ code }) => code)).toEqual(told.map(() => "tools_left_out"))
    const text = told.map(({ message }) => String(message)).join("\n")
    expect(text).toMatch(/tools beyond the 128 that a model takes: first__tool_\d+/)
    expect(text).toContain("9872 tools of the MCP server first")
    expect(told).toHaveLength(3)
    const { items } = (await socket.ok("attention.list", {})) as { items: ReadonlyArray<Json> }
    expect(JSON.stringify(items)).toContain("tools_left_out")
    expect(server.lines.filter((line) => line.includes("tools_left_out"))).toHaveLength(3)
  })

  it("a schema that is a union is offered, and its call reaches the tool as the tool knows it", async () => {
    const call = { id: "call_1", name: "odd__any", arguments: '{"input":{"pay":"INV-7","to":["a"]}}' }
    strict(format, () =>
      models.requests.length === 1 ? { ...plainAnswer, calls: [call], stop: "calls" } : plainAnswer
    )
    const server = await open({ odd: mcp("unions") })
    const socket = await server.connect()
    const id = await follow(server, socket, { policy: { mode: "full_access" } })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    expect(payload(await socket.rune("tool.call"))).toMatchObject({ arguments: { pay: "INV-7", to: ["a"] } })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({
      status: "success",
      output: '{"pay":"INV-7","to":["a"]}'
    })
    const names = toolsIn(models.requests[0]!).map((tool) => shownOf(tool).name)
    expect(names).toEqual(expect.arrayContaining(["odd__any", "odd__one", "odd__all"]))
    expect(models.requests[1]!.bodyText).toMatch(/input[\\"]*:\{[\\"]*pay/)
    expect(errorsIn(socket)).toEqual([])
  })
})

it("doctor starts the MCP servers of the settings and names what a model could not be offered", {
  timeout: 60_000
}, () => {
  const data = servers.directory()
  writeFileSync(join(data, "config.json"), JSON.stringify({ mcp_servers: { first: mcp("many"), odd: mcp("unions") } }))
  const run = commandOn(data)(["doctor", "--json"])
  expect(run.code).toBe(0)
  const { items } = JSON.parse(run.stdout) as { items: ReadonlyArray<{ name: string; level: string; text: string }> }
  const about = items.filter(({ name }) => name === "tools")
  expect(about[0]).toMatchObject({ level: "notice", text: "128 offered to a model" })
  expect(about.map(({ text }) => text).join("\n")).toMatch(/9872 tools of the MCP server first/)
  expect(about.map(({ text }) => text).join("\n")).toMatch(/beyond the 128 that a model takes: .*odd__any/s)
})
