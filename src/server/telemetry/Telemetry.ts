// What a server tells of itself: metrics, the log of state events, and traces where the settings name a collector. Each
// follows durable notices for as long as the scope is open; finished traces are sent at its end.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { describeError, ServerLog } from "../../contract/ServerLog.ts"
import { ServerMetrics } from "./Metrics.ts"
import type { OtlpPlace } from "./OtlpPlace.ts"
import { StateEvents } from "./StateEvents.ts"
import { stateLog } from "./StateLog.ts"
import { Traces } from "./Traces.ts"

export interface TelemetryOptions {
  readonly version: string
  /** The base address of an OTLP collector; without it nothing is sent. */
  readonly otlpEndpoint?: string | undefined
  readonly otlpSignals?: ReadonlyArray<OtlpSignal> | undefined
}

const sendTraces = Effect.fnUntraced(function* ({ endpoint, version }: OtlpPlace) {
  const log = yield* ServerLog
  const onFailure = (error: unknown): void =>
    log.write("warn", "traces could not be delivered", { cause: describeError(error) })
  const traces = yield* Effect.acquireRelease(
    Effect.sync(() => new Traces({ endpoint, version, onFailure })),
    (opened) => Effect.promise(() => opened.close())
  )
  yield* DurableNotices.listen({
    name: "traces",
    appended: (_conversationId, runes) => traces.notice(runes),
    loaded: (state) => traces.resume(state)
  })
})

const traces = (options: TelemetryOptions): Layer.Layer<never, never, ServerLog | DurableNotices> => {
  const collector = collectorOf(options, "traces")
  return collector === undefined ? Layer.empty : Layer.effectDiscard(sendTraces(collector))
}

/** What is sent to the collector, where there is one. */
export type OtlpSignal = "traces" | "metrics" | "logs"

/** The collector, where it is to get this signal. Traces, unless the settings say otherwise. */
export const collectorOf = (
  { otlpEndpoint: endpoint, otlpSignals = ["traces"], version }: TelemetryOptions,
  signal: OtlpSignal
): OtlpPlace | undefined => (endpoint !== undefined && otlpSignals.includes(signal) ? { endpoint, version } : undefined)

const sentMetrics = (options: TelemetryOptions): Layer.Layer<never, never, ServerMetrics> => {
  const collector = collectorOf(options, "metrics")
  if (collector === undefined) return Layer.empty
  return Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./OtlpExport.ts")),
      ({ metrics }) => metrics(collector)
    )
  )
}

export const layer = (options: TelemetryOptions): Layer.Layer<ServerMetrics, never, ServerLog | DurableNotices> =>
  Layer.mergeAll(stateLog, traces(options), sentMetrics(options)).pipe(
    Layer.provideMerge(ServerMetrics.layer),
    Layer.provide(StateEvents.layer)
  )
