// What a server tells of itself: metrics, the log of state events, and traces where the settings name a collector. Each
// follows durable notices for as long as the scope is open; finished traces are sent at its end.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { describeError, ServerLog } from "../../contract/ServerLog.ts"
import { ServerMetrics } from "./Metrics.ts"
import { StateEvents } from "./StateEvents.ts"
import { stateLog } from "./StateLog.ts"
import { Traces } from "./Traces.ts"

export interface TelemetryOptions {
  readonly version: string
  /** The base address of an OTLP collector; without it nothing is sent. */
  readonly otlpEndpoint?: string | undefined
}

const sendTraces = Effect.fnUntraced(function* (endpoint: string, version: string) {
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

const traces = ({ otlpEndpoint, version }: TelemetryOptions): Layer.Layer<never, never, ServerLog | DurableNotices> =>
  otlpEndpoint === undefined ? Layer.empty : Layer.effectDiscard(sendTraces(otlpEndpoint, version))

export const layer = (options: TelemetryOptions): Layer.Layer<ServerMetrics, never, ServerLog | DurableNotices> =>
  Layer.mergeAll(ServerMetrics.layer, stateLog, traces(options)).pipe(Layer.provide(StateEvents.layer))
