// What the server says of itself: one JSON object a line. Arguments of requests are left out unless debugging was asked
// for, and credentials always.
import type { Log, LogLevel } from "../../contract/ServerLog.ts"

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
