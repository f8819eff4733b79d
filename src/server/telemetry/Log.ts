// What the server says of itself: one JSON object a line. Arguments of requests are left out unless debugging was asked
// for, and credentials always.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Log, type LogLevel, ServerLog } from "../../contract/ServerLog.ts"
import type { OtlpPlace, SendRecord } from "./OtlpPlace.ts"

export const logLevels: ReadonlyArray<LogLevel> = ["debug", "info", "warn", "error"]

const secretNames = /^(token|ticket|authorization|api_key|password|secret)$/i

const withoutSecrets = (key: string, value: unknown): unknown => (secretNames.test(key) ? "[left out]" : value)

/** A log over a sink of lines. */
export const makeLog = (options: {
  readonly level: LogLevel
  readonly nowMs: () => number
  readonly writeLine: (line: string) => void
  readonly send?: SendRecord
}): Log => ({
  level: options.level,
  write: (level, message, fields) => {
    if (logLevels.indexOf(level) < logLevels.indexOf(options.level)) return
    const entry = { time: new Date(options.nowMs()).toISOString(), level, message, ...fields }
    const line = JSON.stringify(entry, withoutSecrets)
    options.writeLine(line)
    if (options.send === undefined) return
    const { level: _level, message: _message, time: _time, ...told } = JSON.parse(line) as Record<string, unknown>
    options.send(level, message, told)
  }
})

export interface LogOptions {
  readonly level?: LogLevel | undefined
  /** Takes the lines; they go to standard error unless told. */
  readonly writeLine?: ((line: string) => void) | undefined
  /** The collector that gets the lines as well. */
  readonly collector?: OtlpPlace | undefined
}

const toStandardError = (line: string): void => void process.stderr.write(`${line}\n`)

const senderOf = (collector: OtlpPlace): Effect.Effect<SendRecord, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("./OtlpExport.ts")),
    ({ logs }) => logs(collector)
  )

export const layer = ({
  collector,
  level = "info",
  writeLine = toStandardError
}: LogOptions): Layer.Layer<ServerLog> => {
  const parts = { level, nowMs: () => Date.now(), writeLine }
  if (collector === undefined) return Layer.sync(ServerLog, () => makeLog(parts))
  return Layer.effect(
    ServerLog,
    Effect.map(senderOf(collector), (send) => makeLog({ ...parts, send }))
  )
}
