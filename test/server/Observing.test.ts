// Goal: whoever looks at a server from outside sees what happens in its conversations: agents that could not be brought up,
// views over server-sent events, spans, counters after a restart, the process log. Method: the real server over HTTP and
// WebSocket, scripted models, a collector of traces.

import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { useExtendedServers } from "../support/extended.ts"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, Gate, tool } from "../support/runtime/tools.ts"
import type { Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const { directory, open } = useServers()
const extended = useExtendedServers()
const payload = (rune: Json): Json => rune["payload"] as Json

const look = {
  scenarios: scenarios({ look: [step(1, use("look", {})), always(say("seen"))] }),
  model: "scripted/look",
  tools: [tool("look", async () => "a view")]
}

/** A conversation with one finished turn. */
const talked = async (
  server: Pick<TestServer, "connect">
): Promise<{ readonly socket: Socket; readonly id: string }> => {
  const socket = await server.connect()
  const id = await socket.create()
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  await socket.rune("turn.completed")
  return { socket, id }
}

describe("an agent that cannot be brought up", () => {
  it.each([
    ["a provider that nobody knows", "nowhere/large", /there is no provider "nowhere"; known: .*scripted/],
    ["a name that is none", "large", /is not a model name: expected provider\/name/],
    ["a model that its provider does not have", "scripted/none", /scenario "none": /]
  ])("fails on record when it is created with %s, and says so to whoever speaks to it", async (_name, model, why) => {
    const socket = await (await open()).connect()
    const id = await socket.create({ model })
    await socket.ok("subscribe", { conversation_id: id })
    const failed = payload(await socket.rune("agent.failed"))
    expect(failed["error"]).toMatchObject({ code: "model_unknown", retryable: false })
    expect(String((failed["error"] as Json)["message"])).toMatch(why)
    const refused = await socket.error("message.post", { conversation_id: id, content: "go" })
    expect(refused).toMatchObject({ code: "invalid_state", data: { state: "failed" } })
    expect(String(refused["message"])).toMatch(why)
    expect((await socket.ok("conversation.get", { conversation_id: id }))["attention"]).toBe("error")
    const { items } = await socket.ok("attention.list", {})
    expect((items as ReadonlyArray<Json>).map(({ type, conversation_id: of }) => [type, of])).toEqual([["notice", id]])
  })

  it("fails when it is spawned, and its conversation goes on", async () => {
    const socket = await (await open()).connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    const { agent_id } = await socket.ok("agent.spawn", { conversation_id: id, role: "worker", model: "nowhere/large" })
    expect(payload(await socket.rune("agent.failed"))).toMatchObject({ agent_id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
  })

  it("fails where its workspace is not there, or is a file", async () => {
    const server = await extended.open()
    const socket = await server.connect()
    for (const workspace of [join(server.workspace, "gone"), "/etc/hostname-of-nobody"]) {
      const id = await socket.create({ workspace, unsafe_workspace: true })
      await socket.ok("subscribe", { conversation_id: id })
      await socket.until(() =>
        socket.runes().some((rune) => rune["conversation_id"] === id && rune["kind"] === "agent.failed")
      )
      const failed = socket.runes().find((rune) => rune["conversation_id"] === id && rune["kind"] === "agent.failed")!
      expect(payload(failed)["error"]).toMatchObject({ code: "workspace_unusable" })
      expect(String((payload(failed)["error"] as Json)["message"])).toContain(`there is no directory ${workspace}`)
    }
  })
})

describe("the limit of a conversation for calls", () => {
  it("holds for tools that name a longer time of their own", async () => {
    const gate = new Gate()
    const server = await open({
      ...look,
      tools: [tool("look", gate.run, { timeout_ms: 600_000 })]
    })
    const socket = await server.connect()
    const id = await socket.create({ limits: { tool_timeout_ms: 50 } })
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ status: "timeout" })
    await socket.rune("turn.completed")
  })
})

describe("the place of a message that waits", () => {
  it("is its place, and not how many wait", async () => {
    const gate = new Gate()
    const server = await open({ ...look, tools: [effectTool("look", gate.run)] })
    const socket = await server.connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await gate.started
    const queued = (content: string, mode = "queue", key = content) =>
      socket.ok("message.post", { conversation_id: id, content, mode, idempotency_key: key })
    expect((await queued("one"))["queued"]).toBe(1)
    expect((await queued("two"))["queued"]).toBe(2)
    // The same message again has the place that it has.
    expect((await queued("one"))["queued"]).toBe(1)
    expect((await queued("now", "steer"))["queued"]).toBe(1)
    expect((await queued("two"))["queued"]).toBe(3)
    gate.end("done")
    await socket.rune("turn.interrupted")
  })
})

describe("server-sent events", () => {
  const eventsOf = async (server: TestServer, path: string, until: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${server.token}`, ...headers }
    })
    if (response.status !== 200) return { status: response.status, blocks: [] }
    const reader = response.body!.getReader()
    let text = ""
    while (!text.includes(`event: ${until}`)) {
      const { done, value } = await reader.read()
      if (done) break
      text += new TextDecoder().decode(value, { stream: true })
    }
    await reader.cancel()
    return { status: 200, blocks: text.split("\n\n").filter((block) => block !== "") }
  }

  it.each(["state_events", "agent_events"])(
    "honor the view %s, and resume without a repeated or missing event",
    async (view) => {
      const server = await open(look)
      const { id, socket } = await talked(server)
      const { sub } = await socket.ok("subscribe", { conversation_id: id, view })
      await socket.until(() => socket.pushed.some((frame) => frame["sub"] === sub && "caught_up" in frame))
      const expected = socket.pushed.flatMap((frame) =>
        "event" in frame && frame["sub"] === sub ? [frame["event"]] : []
      )
      expect(expected.length).toBeGreaterThan(3)
      const path = `/v1/conversations/${id}/events?view=${view}`
      const { blocks } = await eventsOf(server, path, "caught_up")
      const isEvent = (block: string): boolean => block.includes(`event: ${view.slice(0, -1)}\n`)
      const dataOf = (block: string): unknown => JSON.parse(/data: (.*)/.exec(block)![1]!)
      expect(blocks.filter(isEvent).map(dataOf)).toEqual(expected)
      expect(blocks.some((block) => block.includes("event: rune"))).toBe(false)
      // Cut anywhere, the rest begins behind the last id that was seen.
      for (const [at, block] of blocks.filter(isEvent).entries()) {
        const cursor = /^id: (\d+)/.exec(block)?.[1]
        if (cursor === undefined) continue
        const rest = await eventsOf(server, path, "caught_up", { "last-event-id": cursor })
        expect(rest.blocks.filter(isEvent).map(dataOf)).toEqual(expected.slice(at + 1))
      }
    }
  )

  it("refuse a view that does not exist", async () => {
    const server = await open()
    const { id } = await talked(server)
    expect((await eventsOf(server, `/v1/conversations/${id}/events?view=dreams`, "x")).status).toBe(400)
  })
})

describe("spans", () => {
  it("of tools and hooks carry their run and their name", async () => {
    const spans: Array<{ readonly name: string; readonly attributes: ReadonlyArray<Json> }> = []
    const collector = createServer((request, response) => {
      let body = ""
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString()
      })
      request.on("end", () => {
        for (const { scopeSpans } of (
          JSON.parse(body) as { resourceSpans: ReadonlyArray<{ scopeSpans: ReadonlyArray<{ spans: typeof spans }> }> }
        ).resourceSpans)
          for (const scope of scopeSpans) spans.push(...scope.spans)
        response.end("{}")
      })
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    try {
      const hooks = {
        choose: () => [
          {
            hook_name: "lint",
            failure_policy: { type: "warn_continue" },
            timeout_ms: 1000,
            effect_class: "pure"
          } as const
        ],
        run: () => Effect.succeed({ status: "succeeded" } as const)
      }
      const server = await open({
        ...look,
        tools: [effectTool("look", async () => "seen")],
        hooks,
        otlpEndpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
      })
      const { id, socket } = await talked(server)
      const { sub } = await socket.ok("subscribe", { conversation_id: id, view: "state_events" })
      await socket.until(() => socket.pushed.some((frame) => frame["sub"] === sub && "caught_up" in frame))
      const events = socket.pushed.flatMap((frame) => ("event" in frame ? [frame["event"] as Json] : []))
      const runOf = (type: string) => events.find((event) => event["type"] === type)?.["runId"]
      await server.close()
      const attributes = (name: string) => spans.find((span) => span.name === name)?.attributes
      const text = (key: string, value: unknown) => ({ key, value: { stringValue: value } })
      expect(attributes("execute_tool look")).toEqual(
        expect.arrayContaining([text("run_id", runOf("tool_lifecycle")), text("tool_name", "look")])
      )
      expect(attributes("hook lint")).toEqual(
        expect.arrayContaining([text("run_id", runOf("hook_lifecycle")), text("hook_name", "lint")])
      )
    } finally {
      collector.close()
    }
  })
})

describe("counters of state changes", () => {
  const transitions = async (server: TestServer): Promise<ReadonlyArray<string>> => {
    const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } })
    return (await response.text()).split("\n").filter((line) => line.startsWith("agent_state_transitions_total{"))
  }

  it("count the same turn the same whether or not the server was restarted before it", async () => {
    const dataDirectory = directory()
    const echo = { model: "scripted/echo", dataDirectory }
    const first = await open(echo)
    const { id } = await talked(first)
    const before = await transitions(first)
    await first.close()
    const second = await open(echo)
    expect(await transitions(second)).toEqual([])
    const socket = await second.connect()
    await socket.ok("subscribe", { conversation_id: id, after: "tail" })
    await socket.ok("message.post", { conversation_id: id, content: "again" })
    await socket.rune("turn.completed")
    const after = await transitions(second)
    const ofTurn = (lines: ReadonlyArray<string>) => lines.filter((line) => !/from="(Idle|Starting)"/.test(line)).sort()
    expect(ofTurn(before)).toEqual(
      expect.arrayContaining(['agent_state_transitions_total{from="Ready",to="CallingLlm"} 1'])
    )
    expect(ofTurn(after)).toEqual(ofTurn(before))
  })
})

describe("the log of the process", () => {
  it("tells changes of state, runs with their duration, and errors, and no arguments", async () => {
    const server = await open({
      ...look,
      scenarios: scenarios({ look: [step(1, use("look", { secret_word: "xyzzy" })), always(say("seen"))] })
    })
    const { id, socket } = await talked(server)
    await socket.error("conversation.resume", { conversation_id: id })
    const entries = server.lines.map((line) => JSON.parse(line) as Json)
    const of = (message: string) => entries.filter((entry) => entry["message"] === message)
    expect(of("state changed")).toContainEqual(
      expect.objectContaining({
        session_id: id,
        from: "Ready",
        to: "CallingLlm",
        reason: "user_input",
        stream_id: "turn_1"
      })
    )
    const run = {
      session_id: id,
      stream_id: "turn_1",
      tool_name: "look",
      attempt: 1,
      run_id: expect.stringMatching(/^toolrun_/)
    }
    expect(of("tool started")).toEqual([expect.objectContaining(run)])
    expect(of("tool completed")).toEqual([
      expect.objectContaining({ ...run, status: "Succeeded", duration_ms: expect.any(Number) })
    ])
    expect(of("session changed")).toContainEqual(expect.objectContaining({ from: "created", to: "active" }))
    expect(server.lines.join("\n")).not.toContain("xyzzy")
  })

  it("names errors by their code", async () => {
    const server = await open()
    const socket = await server.connect()
    const id = await socket.create({ model: "nowhere/large" })
    await socket.ok("subscribe", { conversation_id: id })
    await socket.rune("agent.failed")
    const entries = server.lines.map((line) => JSON.parse(line) as Json)
    expect(entries).toContainEqual(
      expect.objectContaining({ level: "warn", message: "session error", session_id: id, error_code: "model_unknown" })
    )
  })
})

describe("an operation that does not fit", () => {
  it("is refused with the design's name for it, and counted under it", async () => {
    const server = await open()
    const { id, socket } = await talked(server)
    const wrong = await socket.error("conversation.resume", { conversation_id: id })
    expect(wrong).toMatchObject({ code: "invalid_state", data: { session_error: "state_transition_invalid" } })
    const missing = await socket.error("conversation.get", { conversation_id: "conv_0000000000000000" })
    expect(missing).toMatchObject({ code: "not_found", data: { session_error: "session_not_found" } })
    const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } })
    const text = await response.text()
    for (const code of ["state_transition_invalid", "session_not_found"])
      expect(text).toContain(`session_errors_total{code="${code}"} 1`)
  })
})
