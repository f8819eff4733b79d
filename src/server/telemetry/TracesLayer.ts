// Sends traces for as long as the scope is open, where the settings name a collector; what is finished is sent at its end.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { describeError, ServerLog } from "../../contract/ServerLog.ts"
import { Traces } from "./Traces.ts"

export interface TracesLayerOptions {
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

export const layer = ({
  otlpEndpoint,
  version
}: TracesLayerOptions): Layer.Layer<never, never, ServerLog | DurableNotices> =>
  otlpEndpoint === undefined ? Layer.empty : Layer.effectDiscard(sendTraces(otlpEndpoint, version))
