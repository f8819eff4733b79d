// Goal: a turn becomes one trace with a span for each model call and tool, and a collector that fails costs nothing but
// the spans. Method: runes of a real turn over a real server, a collector on a real port.

import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterEach, describe, expect, it } from "vitest"
import { Traces } from "#src/server/telemetry/Traces.ts"
import { exampleRune } from "../../support/runeExamples.ts"
import { always, say, scenarios, step, use } from "../../support/runtime/scenarios.ts"
import { effectTool, tool } from "../../support/runtime/tools.ts"
import { startProcess } from "../../support/server/Process.ts"
import { Socket } from "../../support/server/Socket.ts"
import { useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()
const collectors: Array<ReturnType<typeof createServer>> = []

afterEach(() => {
  for (const collector of collectors.splice(0)) {
    collector.closeAllConnections()
    collector.close()
  }
})

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: unknown }>
  readonly status: { readonly code: number }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const piece of request) text += String(piece)
  return text
}

const collect = async () => {
  const spans: Array<Span> = []
  const collector = createServer(async (request, response) => {
    const { resourceSpans } = JSON.parse(await bodyOf(request))
    spans.push(...resourceSpans[0].scopeSpans[0].spans)
    response.end("{}")
  })
  collectors.push(collector)
  await once(collector.listen(0, "127.0.0.1"), "listening")
  return { spans, endpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}` }
}

describe("traces", () => {
  it("are one a turn, with spans for model calls and tools under the names of the conventions", async () => {
    const { endpoint, spans } = await collect()
    const server = await open({
      otlpEndpoint: endpoint,
      scenarios: scenarios({ look: [step(1, use("look", {})), always(say("seen"))] }),
      model: "scripted/look",
      tools: [tool("look", async () => "a view")]
    })
    const socket = await server.connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    await server.close()
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    expect(spans.map(({ name }) => name).sort()).toEqual([
      "chat look",
      "chat look",
      "execute_tool look",
      "invoke_agent"
    ])
    const root = spans.find(({ name }) => name === "invoke_agent")!
    expect(root.parentSpanId).toBeUndefined()
    for (const span of spans) if (span !== root) expect(span.parentSpanId).toBe(root.spanId)
    const call = spans.find(({ name }) => name.startsWith("execute_tool"))!
    expect(call.attributes).toContainEqual({ key: "gen_ai.tool.name", value: { stringValue: "look" } })
    expect(call.attributes).toContainEqual({ key: "gen_ai.conversation.id", value: { stringValue: id } })
    expect(call.status.code).toBe(1)
  })

  it("hold the hooks of a turn beside its model calls and its tools, under the same root", async () => {
    const { endpoint, spans } = await collect()
    const hook = { failure_policy: { type: "warn_continue" }, timeout_ms: 1000, effect_class: "pure" } as const
    const server = await open({
      otlpEndpoint: endpoint,
      scenarios: scenarios({ write: [step(1, use("write", {})), always(say("done"))] }),
      model: "scripted/write",
      tools: [effectTool("write", async () => "written")],
      hooks: {
        choose: () => ["lint", "test"].map((hook_name) => ({ hook_name, ...hook })),
        run: (_state, { hook_name }) => Effect.succeed({ status: hook_name === "lint" ? "succeeded" : "failed" })
      }
    })
    const socket = await server.connect()
    const id = await socket.create()
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } })
    expect(await metrics.text()).toMatch(/^hook_run_duration_ms_count 2$/m)
    await server.close()
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    const root = spans.find(({ name }) => name === "invoke_agent")!
    const below = spans.filter((span) => span !== root)
    expect(below.map(({ name }) => name).sort()).toEqual([
      "chat write",
      "chat write",
      "execute_tool write",
      "hook lint",
      "hook test"
    ])
    for (const span of below) expect(span.parentSpanId).toBe(root.spanId)
    const codes = ["hook lint", "hook test"].map((name) => spans.find((span) => span.name === name)?.status.code)
    expect(codes).toEqual([1, 2])
  })

  it("keep their root when the server is killed in the middle of a turn", async () => {
    const { endpoint, spans } = await collect()
    const place = mkdtempSync(join(tmpdir(), "echs-traces-"))
    const data = join(place, "data")
    const replies = [always(say("a long answer ".repeat(20), { chunk_chars: 4, delay_ms: 10 }))]
    writeFileSync(join(place, "slow.json"), JSON.stringify({ name: "slow", replies }))
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
    const first = await startProcess(data, { env })
    const socket = await Socket.open(first.url)
    await socket.hello(first.token)
    const id = await socket.create({ model: `scripted/${join(place, "slow.json")}` })
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.assistant_delta")
    const begun = socket.runes().find(({ kind }) => kind === "turn.started")!
    await first.end("SIGKILL")
    expect(spans.filter(({ name }) => name === "invoke_agent")).toEqual([])
    const second = await startProcess(data, { env })
    try {
      await expect.poll(() => spans.filter(({ name }) => name === "invoke_agent"), { timeout: 30_000 }).toHaveLength(1)
      const root = spans.find(({ name }) => name === "invoke_agent")!
      expect(root.startTimeUnixNano).toBe(`${String(begun["ts_ms"])}000000`)
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
      const below = spans.filter((span) => span !== root)
      expect(below.length).toBeGreaterThan(0)
      for (const span of below) expect(span.parentSpanId).toBe(root.spanId)
    } finally {
      await second.end("SIGKILL")
      rmSync(place, { recursive: true, force: true })
    }
  }, 60_000)

  it("that cannot be delivered are dropped, counted and reported", async () => {
    const failures: Array<unknown> = []
    const traces = new Traces({
      endpoint: "http://127.0.0.1:9",
      version: "0",
      onFailure: (error) => failures.push(error),
      send: () => Promise.reject(new Error("nobody there"))
    })
    const started = { ...exampleRune("turn.started"), conversation_id: "conv_00000001", turn_id: "turn_7" }
    const completed = { ...exampleRune("turn.completed"), conversation_id: "conv_00000001", turn_id: "turn_7" }
    traces.notice([started, completed] as never)
    await traces.close()
    expect(traces.dropped).toBe(1)
    expect(failures).toHaveLength(1)
  })
})
