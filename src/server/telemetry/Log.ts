// What the server says of itself: one JSON object a line. Arguments of requests are left out unless debugging was asked
// for, and credentials always.
import * as Layer from "effect/Layer"
import { type Log, type LogLevel, ServerLog } from "../../contract/ServerLog.ts"

export const logLevels: ReadonlyArray<LogLevel> = ["debug", "info", "warn", "error"]

const secretNames = /^(token|ticket|authorization|api_key|password|secret)$/i

const withoutSecrets = (key: string, value: unknown): unknown => (secretNames.test(key) ? "[left out]" : value)

/** A log over a sink of lines. */
export const makeLog = (options: {
  readonly level: LogLevel
  readonly nowMs: () => number
  readonly writeLine: (line: string) => void
}): Log => ({
  level: options.level,
  write: (level, message, fields) => {
    if (logLevels.indexOf(level) < logLevels.indexOf(options.level)) return
    const entry = { time: new Date(options.nowMs()).toISOString(), level, message, ...fields }
    options.writeLine(JSON.stringify(entry, withoutSecrets))
  }
})

export interface LogOptions {
  readonly level?: LogLevel | undefined
  /** Takes the lines; they go to standard error unless told. */
  readonly writeLine?: ((line: string) => void) | undefined
}

const toStandardError = (line: string): void => void process.stderr.write(`${line}\n`)

export const layer = ({ level = "info", writeLine = toStandardError }: LogOptions): Layer.Layer<ServerLog> =>
  Layer.sync(ServerLog, () => makeLog({ level, nowMs: () => Date.now(), writeLine }))
