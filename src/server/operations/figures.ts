// Figures of a conversation or of the server, now and within a window of time.

import * as Effect from "effect/Effect"
import { attempt } from "../../conversation/Attempt.ts"
import { summaryOf } from "../../conversation/Summary.ts"
import { valueAt } from "../../rune/Elements.ts"
import { limits } from "../../wire/WireLimits.ts"
import { CurrentOperation, type Handler, tell } from "./CurrentOperation.ts"
import { BadRequest } from "./OperationErrors.ts"

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `15m`, `24h` or `7d`, in milliseconds. */
const windowMs = (window: string): Effect.Effect<number, BadRequest> => {
  const [, count = "0", unit = "s"] = /^([1-9][0-9]{0,8})([smhd])$/.exec(window) ?? []
  const ms = Number(count) * valueAt(unitMs, unit)
  if (ms > 0 && ms <= limits.windowMsMax) return Effect.succeed(ms)
  return Effect.fail(new BadRequest("window must be a number followed by s, m, h or d, at most 31 days"))
}

export const stats: Handler<"stats"> = ({ conversation_id: id, window }) =>
  Effect.gen(function* () {
    const { conversationStore, conversations, figures, nowMs } = yield* CurrentOperation
    const sinceMs = window === undefined ? undefined : nowMs() - (yield* windowMs(window))
    const within =
      sinceMs === undefined ? {} : { window: yield* attempt(() => conversationStore.figuresSince(sinceMs, id)) }
    if (id === undefined) return { ...figures(), providers: conversations.circuits(), ...within }
    const { agents_alive, cost_usd, last_event_id, tool_calls, turns, usage } = yield* tell(id, summaryOf)
    return { agents_alive, cost_usd, last_event_id, tool_calls, turns, usage, ...within }
  })
