// Metrics and log lines for an OTLP collector, by effect's exporters: in batches, with three retries; a collector that does
// not take them is left alone for a minute, and what came meanwhile is dropped. Loaded only where the settings ask for it.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type { Severity } from "effect/LogLevel"
import * as Metric from "effect/Metric"
import * as OtlpExporter from "effect/observability/OtlpExporter"
import * as OtlpLogger from "effect/observability/OtlpLogger"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import type { LogLevel } from "../../contract/ServerLog.ts"
import { limits } from "../../wire/WireLimits.ts"
import { ServerMetrics } from "./Metrics.ts"
import type { OtlpPlace, SendRecord } from "./OtlpPlace.ts"

const silent = Effect.suspend(() => Effect.die(new Error("the collector does not answer")))

/** A collector that never answers must not gather requests: it is one that does not take them. */
const client = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(
    HttpClient.HttpClient,
    HttpClient.transformResponse(Effect.timeoutOrElse({ duration: limits.tracesWithinMs, orElse: () => silent }))
  )
).pipe(Layer.provide(FetchHttpClient.layer))

const parts = Layer.mergeAll(client, OtlpSerialization.layerJson, OtlpExporter.layerFlusher)

const optionsOf = ({ endpoint, version }: OtlpPlace, signal: "logs" | "metrics") => ({
  url: `${endpoint.replace(/\/+$/, "")}/v1/${signal}`,
  resource: { serviceName: "echs", serviceVersion: version },
  exportInterval: limits.otlpEveryMs,
  shutdownTimeout: limits.tracesWithinMs
})

/** Sends what the server has counted, as it is in its own registry. */
export const metrics = (place: OtlpPlace): Layer.Layer<never, never, ServerMetrics> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { counted } = (yield* ServerMetrics).read([])
      const registry = Context.get(counted, Metric.MetricRegistry)
      yield* Effect.provideService(OtlpMetrics.make(optionsOf(place, "metrics")), Metric.MetricRegistry, registry)
    })
  ).pipe(Layer.provide(parts))

const severities: Readonly<Record<LogLevel, Severity>> = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" }

/** Takes lines of the log until the scope ends; the last ones are sent then. */
export const logs = Effect.fnUntraced(function* (place: OtlpPlace) {
  const built = yield* Layer.build(parts)
  const logger = yield* Effect.provideContext(OtlpLogger.make(optionsOf(place, "logs")), built)
  const run = Effect.runSyncWith(
    Context.make(References.CurrentLoggers, new Set([logger])).pipe(Context.add(References.MinimumLogLevel, "Debug"))
  )
  let room: number = limits.otlpLinesMax
  const refill = Effect.sync(() => {
    room = limits.otlpLinesMax
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(limits.otlpEveryMs), refill)))
  const send: SendRecord = (level, message, fields) => {
    // What the exporter holds while the collector is slow has no bound of its own.
    if (room === 0) return
    room -= 1
    run(Effect.annotateLogs(Effect.logWithLevel(severities[level])(message), fields))
  }
  return send
}) satisfies (place: OtlpPlace) => Effect.Effect<SendRecord, never, Scope.Scope>
