// Where telemetry is sent, and how a line of the log is handed over: the shapes between the log and the exporters, which
// are loaded only where they are asked for.
import type { LogLevel } from "../../contract/ServerLog.ts"

export interface OtlpPlace {
  /** The base address of the collector. */
  readonly endpoint: string
  readonly version: string
}

/** Takes a line of the log in its parts, to send it elsewhere. */
export type SendRecord = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void
