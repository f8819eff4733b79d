// Goal: a collector gets the metrics and the log of a server where the settings say so, nothing unasked, and none of its
// secrets. Method: a real server, and a collector on a real port that speaks OTLP over HTTP.
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import { afterEach, describe, expect, it } from "vitest"
import { makeLog } from "#src/server/telemetry/Log.ts"
import { logs } from "#src/server/telemetry/OtlpExport.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()
const collectors: Array<ReturnType<typeof createServer>> = []

afterEach(() => {
  for (const collector of collectors.splice(0)) {
    collector.closeAllConnections()
    collector.close()
  }
})

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const piece of request) text += String(piece)
  return text
}

const collect = async (status = 200) => {
  const bodies: Array<{ readonly path: string; readonly body: string }> = []
  const collector = createServer(async (request, response) => {
    bodies.push({ path: request.url ?? "", body: await bodyOf(request) })
    response.writeHead(status, { "content-type": "application/json" }).end("{}")
  })
  collectors.push(collector)
  await once(collector.listen(0, "127.0.0.1"), "listening")
  const at = (path: string) => bodies.filter((one) => one.path === path).map(({ body }) => JSON.parse(body))
  return { bodies, at, otlpEndpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}/` }
}

interface Metric {
  readonly name: string
  readonly sum?: { readonly dataPoints: ReadonlyArray<{ readonly asDouble?: number; readonly asInt?: unknown }> }
  readonly histogram?: { readonly dataPoints: ReadonlyArray<{ readonly count: unknown }> }
}

interface LogRecord {
  readonly severityText: string
  readonly body: { readonly stringValue?: string }
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: unknown }>
}

const resource = { key: "service.name", value: { stringValue: "echs" } }

/** A server that was asked for something, and has ended. */
const lived = async (options: Parameters<typeof open>[0]): Promise<void> => {
  const server = await open({ logLevel: "debug", ...options })
  const socket = await server.connect()
  await socket.create()
  await server.close()
}

describe("a collector", () => {
  it("gets the counters and the durations of a server", async () => {
    const { at, bodies, otlpEndpoint } = await collect()
    await lived({ otlpEndpoint, otlpSignals: ["metrics"] })
    expect(new Set(bodies.map(({ path }) => path))).toEqual(new Set(["/v1/metrics"]))
    const metrics = at("/v1/metrics").flatMap(({ resourceMetrics }) => {
      expect(resourceMetrics[0].resource.attributes).toContainEqual(resource)
      return resourceMetrics[0].scopeMetrics[0].metrics as ReadonlyArray<Metric>
    })
    const most = (name: string, valueOf: (metric: Metric) => unknown): number =>
      Math.max(0, ...metrics.filter((one) => one.name === name).map((one) => Number(valueOf(one))))
    expect(most("runes_total", ({ sum }) => sum?.dataPoints[0]?.asDouble)).toBeGreaterThan(0)
    expect(most("operation_duration_ms", ({ histogram }) => histogram?.dataPoints[0]?.count)).toBeGreaterThan(0)
  })

  it("gets the lines of the log with their level and fields, as they are written", async () => {
    const { at, bodies, otlpEndpoint } = await collect()
    const lines: Array<string> = []
    await lived({ otlpEndpoint, otlpSignals: ["logs"], writeLine: (line) => void lines.push(line) })
    expect(new Set(bodies.map(({ path }) => path))).toEqual(new Set(["/v1/logs"]))
    const all = at("/v1/logs").flatMap(({ resourceLogs }) => {
      expect(resourceLogs[0].resource.attributes).toContainEqual(resource)
      return resourceLogs[0].scopeLogs[0].logRecords as ReadonlyArray<LogRecord>
    })
    const written = lines.map((line) => JSON.parse(line) as { readonly level: string; readonly message: string })
    expect(written.length).toBeGreaterThan(0)
    // Batches may come in another order than their lines were written.
    expect(all.map(({ body, severityText }) => `${severityText.toLowerCase()} ${body.stringValue}`).sort()).toEqual(
      written.map(({ level, message }) => `${level} ${message}`).sort()
    )
    const operation = all.find(({ attributes }) => attributes.some(({ key }) => key === "op"))
    expect(operation?.attributes).toContainEqual({ key: "op", value: { stringValue: "conversation.create" } })
  })

  it("gets neither where the settings name only its address", async () => {
    const { bodies, otlpEndpoint } = await collect()
    await lived({ otlpEndpoint })
    expect(bodies.filter(({ path }) => path !== "/v1/traces")).toEqual([])
  })

  it("that refuses everything keeps nobody from working or from ending", async () => {
    const { bodies, otlpEndpoint } = await collect(400)
    await lived({ otlpEndpoint, otlpSignals: ["metrics", "logs"] })
    expect(bodies.length).toBeGreaterThan(0)
  })
})

it("more lines than the limit are dropped until there is room again", async () => {
  const { at, otlpEndpoint: endpoint } = await collect()
  const sending = Effect.map(logs({ endpoint, version: "test" }), (send) => {
    for (let line = 0; line < 2 * limits.otlpLinesMax; line++) send("info", `line ${line}`, {})
  })
  await Effect.runPromise(Effect.scoped(sending))
  const records = at("/v1/logs").flatMap(({ resourceLogs }) => resourceLogs[0].scopeLogs[0].logRecords)
  expect(records.length).toBeGreaterThan(0)
  expect(records.length).toBeLessThanOrEqual(limits.otlpLinesMax)
})

it("a line is sent without what is left out of it", () => {
  const sent: Array<unknown> = []
  const log = makeLog({
    level: "info",
    nowMs: () => 0,
    writeLine: () => undefined,
    send: (...told) => void sent.push(told)
  })
  log.write("warn", "refused", { token: "0123456789abcdef", of: { ticket: "t", op: "stats" } })
  log.write("debug", "not at this level")
  expect(sent).toEqual([["warn", "refused", { token: "[left out]", of: { ticket: "[left out]", op: "stats" } }]])
})
