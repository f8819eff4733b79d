// The server's own log, as every room that reports trouble sees it: a level, a message and fields.
import * as Context from "effect/Context"

export type LogLevel = "debug" | "info" | "warn" | "error"

export interface Log {
  readonly level: LogLevel
  readonly write: (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void
}

/** The log as a service. */
export class ServerLog extends Context.Service<ServerLog, Log>()("echs/ServerLog") {}

export const describeError = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)
