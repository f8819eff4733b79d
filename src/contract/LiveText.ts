// Text of a model as it arrives, before it is durable: turns tell it, the server shows it to those who asked. Best effort
// and synchronous, because every delta passes through it (decision 0025).
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Channel } from "./Channel.ts"
import { describeError, ServerLog } from "./ServerLog.ts"

export interface LiveText {
  readonly conversation_id: string
  readonly agent_id: string
  readonly turn_id: string
  readonly request_id: string
  /** Characters of the answer before this text. */
  readonly offset: number
  readonly text: string
}

export class LiveTexts extends Context.Service<LiveTexts, Channel<readonly [live: LiveText]>>()("echs/LiveTexts") {
  static readonly layer: Layer.Layer<LiveTexts, never, ServerLog> = Layer.effect(
    LiveTexts,
    Effect.map(
      ServerLog,
      (log) =>
        new Channel((listener, error) =>
          log.write("error", "a listener of live text failed", { listener, cause: describeError(error) })
        )
    )
  )
}
