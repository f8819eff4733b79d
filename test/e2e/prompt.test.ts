// Goal: a model is told where it is, in the same bytes with every request of a conversation; what changes is told after
// what was said; what is shown is what was sent; planner, worker and critic of a goal are told as well. Method: a real
// server with its tools against a server in the three wire formats whose bodies are compared byte by byte; goals with a
// scripted model that answers only where the project's instructions stand in the prompt.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { RunningServer } from "#src/main/ServeOptions.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, serverKey, startProviderServer } from "../support/provider-server/Server.ts"
import { startTestServer } from "../support/server/graph.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { freely, isContainedHere } from "../support/worlds.ts"

let place = ""
let provider: ProviderServer
let server: RunningServer | undefined
let socket: Socket

const workspace = (): string => join(place, "mono", "packages", "shop")
const home = (): string => join(place, "home")

beforeAll(async () => {
  provider = await startProviderServer()
})
afterAll(() => provider.close())

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-e2e-prompt-"))
  mkdirSync(join(workspace(), "src"), { recursive: true })
  mkdirSync(join(home(), ".config", "echs"), { recursive: true })
})

afterEach(async () => {
  await socket?.close()
  await server?.close()
  server = undefined
  rmSync(place, { recursive: true, force: true })
})

const write = (path: string, text: string): void => writeFileSync(join(place, path), text)

const open = async (scenarios: Json = {}, models: Json = {}): Promise<void> => {
  const dataDirectory = join(place, "data")
  const environment = { variables: { PATH: process.env["PATH"] ?? "" }, homeDirectory: home() }
  const url = provider.url
  server = await startTestServer({
    dataDirectory,
    key: () => serverKey,
    providers: {
      responses: { adapter: "openai-responses", baseUrl: `${url}/v1`, keyVariable: "TEST_KEY" },
      chat: { adapter: "openai-chat", baseUrl: `${url}/v1`, keyVariable: "TEST_KEY" },
      messages: { adapter: "anthropic", baseUrl: url, keyVariable: "TEST_KEY" }
    },
    models: models as never,
    scenarios: scenarios as never,
    environment
  })
  socket = await Socket.open(server.url)
  await socket.hello(server.token)
}

const begin = async (model: string, config: Json = {}): Promise<string> => {
  const id = await socket.create({ model, workspace: workspace(), ...freely, ...config })
  await socket.ok("subscribe", { conversation_id: id, visibility: "internal" })
  return id
}

let turns = 0
const say = async (id: string, content: string): Promise<void> => {
  turns += 1
  await socket.ok("message.post", { conversation_id: id, content })
  await socket.rune("turn.completed", turns)
}

beforeEach(() => {
  turns = 0
})

type Body = Readonly<Record<string, unknown>>

/** The instructions and the messages of a body, whatever the format. */
const partsOf = (body: Body): { readonly system: string; readonly messages: ReadonlyArray<unknown> } => {
  if (Array.isArray(body["system"]))
    return { system: (body["system"] as ReadonlyArray<{ text: string }>)[0]!.text, messages: body["messages"] as never }
  if (typeof body["instructions"] === "string")
    return { system: body["instructions"], messages: body["input"] as never }
  const [first, ...messages] = body["messages"] as ReadonlyArray<{ content: string }>
  return { system: first!.content, messages }
}

/** Marks of what may be kept are moved from request to request; the words under them are not. */
const unmarked = (messages: ReadonlyArray<unknown>): string =>
  JSON.stringify(messages, (key, value) => (key === "cache_control" ? undefined : value))

const call = (name: string, input: Json): Answer => ({
  ...plainAnswer,
  text: "On it.",
  calls: [{ id: `c-${name}`, name, arguments: JSON.stringify(input) }],
  stop: "calls"
})

const bodies = (): ReadonlyArray<ReturnType<typeof partsOf>> =>
  provider.requests.map(({ body }) => partsOf(body as Body))

/** Each request begins with all of the one before it. */
const expectOnePrefix = (): void => {
  const all = bodies()
  for (const [at, body] of all.entries()) {
    if (at === 0) continue
    expect(body.system).toBe(all[at - 1]!.system)
    const before = all[at - 1]!.messages
    expect(unmarked(body.messages.slice(0, before.length))).toBe(unmarked(before))
  }
}

describe.each(formats)("over $name", (format) => {
  const model = `${format.name}/test-model`

  it("begins every request with the same bytes, tells what changed at the end, and shows what was sent", async () => {
    spawnSync("git", ["init", "-q", "-b", "trunk"], { cwd: join(place, "mono") })
    write("home/.config/echs/AGENTS.md", "user-rule-1: be brief\n")
    write("mono/AGENTS.md", "repository-rule-2: use tabs\n")
    write("mono/packages/shop/CLAUDE.md", "workspace-rule-3: prices are in cents\n@docs.md\n")
    write("mono/packages/shop/docs.md", "imported-rule-4: no floats")
    write("mono/packages/shop/src/AGENTS.md", "folder-rule-5: pure functions only\n")
    write("mono/packages/shop/src/price.ts", "export const price = 1\n")
    await open()
    const id = await begin(model, { instructions: "conversation-rule-6" })
    provider.respond((_, index) => ({
      body: format.stream(index === 0 ? call("read_file", { path: "src/price.ts" }) : plainAnswer)
    }))
    const planned = await socket.ok("conversation.prompt", { conversation_id: id })
    expect(planned["sent"]).toBe(false)
    await say(id, "hello")
    const [first, second] = bodies()
    for (const rule of [
      "user-rule-1",
      "repository-rule-2",
      "workspace-rule-3",
      "imported-rule-4",
      "conversation-rule-6"
    ])
      expect(first!.system.split(rule)).toHaveLength(2)
    expect(first!.system).toContain(workspace())
    expect(first!.system).toMatch(/- Date: \d{4}-\d\d-\d\d/u)
    expect(first!.system).toContain("- Git, when you began: branch trunk, without a commit yet, changed files:\n  ??")
    if (isContainedHere()) expect(first!.system).toContain("The workspace is packages/shop/ of its repository.")
    expect(first!.system).not.toContain("folder-rule-5")
    expect(planned["instructions"]).toBe(first!.system)
    // The folder it read in has instructions of its own.
    expect(JSON.stringify(second!.messages.at(-1))).toContain("folder-rule-5")
    write("mono/packages/shop/CLAUDE.md", "workspace-rule-7: prices are in mills\n")
    rmSync(join(place, "mono", "AGENTS.md"))
    await say(id, "go on")
    const third = bodies()[2]!
    const told = JSON.stringify(third.messages)
    expect(told).toContain("workspace-rule-7")
    expect(told).toContain(`hold no more: ${join(place, "mono", "AGENTS.md")}`)
    expect(JSON.stringify(third.messages.at(-1))).toContain("go on")
    await say(id, "and on")
    expectOnePrefix()
    expect(JSON.stringify(bodies()[3]!.messages).split("workspace-rule-7")).toHaveLength(2)
    const shown = await socket.ok("conversation.prompt", { conversation_id: id })
    expect(shown["instructions"]).toBe(first!.system)
    expect((shown["notes"] as ReadonlyArray<Json>).map(({ text }) => String(text)).join("\n")).toContain("rule-7")
    expect(shown["next"]).toBe(null)
    await server!.close()
    await open()
    await socket.ok("subscribe", { conversation_id: id, after: 0, visibility: "internal" })
    await say(id, "after a restart")
    expectOnePrefix()
    expect(bodies()).toHaveLength(5)
  })
})

describe("the prompt", () => {
  it("is short where there is nothing to tell", async () => {
    await open({ plain: { name: "plain", replies: [{ play: [{ text: "ok" }] }] } })
    const id = await begin("scripted/plain")
    await say(id, "hello")
    const { instructions, parts, sent } = await socket.ok("conversation.prompt", { conversation_id: id })
    expect(sent).toBe(true)
    expect((parts as ReadonlyArray<Json>).map(({ name }) => name)).toEqual(["environment", "date"])
    expect(String(instructions).length).toBeLessThan(1600)
  })

  it("is counted: what the files take is part of the input that a call reserves and is charged for", async () => {
    const plain = { name: "plain", replies: [{ play: [{ text: "ok" }] }] }
    const used = async (id: string): Promise<number> => {
      await say(id, "hello")
      const { usage } = await socket.ok("conversation.get", { conversation_id: id })
      return (usage as { input_tokens: number }).input_tokens
    }
    await open({ plain })
    const without = await used(await begin("scripted/plain"))
    write("mono/packages/shop/AGENTS.md", "a rule of forty characters, more or less\n".repeat(300))
    const withFiles = await used(await begin("scripted/plain"))
    expect(withFiles - without).toBeGreaterThan((300 * 40) / 5)
  })

  it("is told to planner, worker and critic of a goal", async () => {
    write("mono/packages/shop/AGENTS.md", "project-rule-8: write done.txt\n")
    const instructions = "project-rule-8"
    const evidence = [{ type: "file", path: "done.txt" }]
    const plan = { tasks: [{ id: "one", title: "one", instructions: "write it", depends_on: [], evidence }] }
    const team = {
      name: "team",
      replies: [
        { when: { role: "orchestrator", instructions, step: 1 }, play: [{ tool: "submit_plan", arguments: plan }] },
        {
          when: { role: "worker", instructions, step: 1 },
          play: [{ tool: "write_file", arguments: { path: "done.txt", content: "x" } }]
        },
        { when: { role: "worker", instructions }, play: [{ text: "done" }] },
        {
          when: { role: "critic", instructions, step: 1 },
          play: [{ tool: "submit_review", arguments: { verdict: "pass", findings: [] } }]
        },
        { play: [{ text: "I was told nothing" }] }
      ]
    }
    await open({ team })
    const { conversation_id: id } = await socket.ok("goal.submit", {
      goal: "done.txt is there",
      model: "scripted/team",
      workspace: workspace(),
      auto_start: true,
      ...freely
    })
    await socket.ok("subscribe", { conversation_id: id, visibility: "internal" })
    await socket.rune("plan.goal_met")
    const told = socket.runes().filter(({ kind }) => kind === "agent.instructed")
    expect(new Set(told.map(({ agent_id }) => agent_id)).size).toBe(3)
  })

  it("is told again when a summary took the place of what was told", async () => {
    write("mono/packages/shop/AGENTS.md", "old-rule-9\n")
    const format = formats.find(({ name }) => name === "chat")!
    await open({}, { "chat/test-model": { contextTokens: 6000, maxOutputTokens: 200 } })
    const id = await begin("chat/test-model")
    provider.respond(() => ({ body: format.stream({ ...plainAnswer, text: "fine ".repeat(300) }) }))
    await say(id, "one")
    write("mono/packages/shop/AGENTS.md", "new-rule-9\n")
    await say(id, "two")
    let compacted = 0
    for (let turn = 0; turn < 30 && compacted === 0; turn += 1) {
      await say(id, `more ${turn}`)
      compacted = socket.runes().filter(({ kind }) => kind === "turn.compacted").length
    }
    expect(compacted).toBeGreaterThan(0)
    for (let turn = 0; turn < 3; turn += 1) await say(id, `again ${turn}`)
    const asked = provider.requests.filter(({ bodyText }) => !bodyText.includes("Sum up the conversation"))
    for (const { bodyText } of asked.slice(1)) expect(bodyText.split("new-rule-9")).toHaveLength(2)
    for (const { bodyText } of asked) expect(bodyText.split("old-rule-9")).toHaveLength(2)
  })
})
