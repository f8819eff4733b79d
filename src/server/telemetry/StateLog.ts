// What happens in conversations, in the log of the server: changes of state, runs of tools and hooks with their duration,
// errors, and how outside agents ended. Names and figures only: what was said, and with which arguments, is not for it.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { listening } from "../../contract/Channel.ts"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { type Log, ServerLog } from "../../contract/ServerLog.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { type SeenEvent, StateEvents } from "./StateEvents.ts"

type Fields = Readonly<Record<string, unknown>>

const given = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null))

const placeOf = (rune: AnyRune, agentId: string | undefined): Fields => ({
  session_id: rune.conversation_id,
  agent_id: agentId,
  stream_id: rune.turn_id
})

const runOf = ({ attempt, errorCode, hookName, runId, status, toolName }: SeenEvent, { payload }: AnyRune): Fields => {
  const { duration_ms: durationMs } = payload as { readonly duration_ms?: unknown }
  const isOver = status !== "Queued" && status !== "Running"
  const end = isOver ? { status, duration_ms: durationMs, error_code: errorCode } : {}
  return { run_id: runId, tool_name: toolName, hook_name: hookName, attempt, ...end }
}

const wordOf: Readonly<Record<string, string>> = { Running: "started", Queued: "queued" }

/** What the people of a conversation are told by the server itself, whoever runs it is told as well. */
const ownWords = ({ kind, payload }: AnyRune): Fields =>
  kind === "system.error" ? { error_message: (payload as { readonly message?: unknown }).message } : {}

/** Writes one state event down. */
export const logEvent = (log: Pick<Log, "write">, event: SeenEvent, rune: AnyRune): void => {
  const place = placeOf(rune, event.agentId)
  const { code, detail, from, reason, retryable, status = "", to, type } = event
  switch (type) {
    case "state_changed":
    case "session_changed":
      log.write("info", type.replace("_", " "), given({ ...place, from, to, reason }))
      break
    case "tool_lifecycle":
    case "hook_lifecycle": {
      const what = type === "tool_lifecycle" ? "tool" : "hook"
      const level = status === "Queued" ? "debug" : "info"
      log.write(level, `${what} ${wordOf[status] ?? "completed"}`, given({ ...place, ...runOf(event, rune) }))
      break
    }
    case "session_error":
      log.write("warn", "session error", given({ ...place, error_code: code, detail, retryable, ...ownWords(rune) }))
      break
  }
}

/** Writes down how an outside agent ended. */
export const logExit = (log: Pick<Log, "write">, rune: AnyRune): void => {
  if (rune.kind !== "harness.detached") return
  const { exit_code: exitCode, reason } = rune.payload as { readonly exit_code?: unknown; readonly reason?: unknown }
  log.write("info", "harness exited", given({ ...placeOf(rune, rune.agent_id), exit_code: exitCode, reason }))
}

/** Writes them down for as long as the scope is open. */
export const stateLog: Layer.Layer<never, never, ServerLog | DurableNotices | StateEvents> = Layer.effectDiscard(
  Effect.gen(function* () {
    const log = yield* ServerLog
    const events = yield* StateEvents
    yield* listening(() => events.add("log", (event, rune) => logEvent(log, event, rune)))
    yield* DurableNotices.listen({
      name: "log",
      appended: (_conversationId, runes) => {
        for (const rune of runes) logExit(log, rune)
      }
    })
  })
)
