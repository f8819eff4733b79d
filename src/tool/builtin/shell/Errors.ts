// Errors of commands and sessions as results carry them.
import type { ErrorInfo } from "../../../rune/kinds/shared.ts"
import type { NotBegun } from "../../../sandbox/process/ProcessWork.ts"
import type { ToolOutcome } from "../../ToolPort.ts"

export type ShellErrorCode =
  | "invalid_arguments"
  | "no_workspace"
  | "command_failed"
  | "command_killed"
  | "command_timeout"
  | "disk_reserve"
  | "not_started"
  | "sandbox_refused"
  | "sandbox_failed"
  | "sandbox_violation"
  | "session_unknown"
  | "session_busy"
  | "session_ended"
  | "session_network"
  | "sessions_full"

export const shellError = (code: ShellErrorCode, message: string): ErrorInfo => ({
  code,
  message,
  retryable: code === "session_busy",
  source: "tool"
})

export const shellFailure = (code: ShellErrorCode, message: string): ToolOutcome => ({
  status: "error",
  error: shellError(code, message)
})

/** A command that could not begin. */
export const notStarted = (error: NotBegun): ToolOutcome => {
  if (error._tag === "SandboxRefused") return shellFailure("sandbox_refused", error.message)
  if (error.code === "sandbox_violation")
    return { status: "sandbox_violation", error: shellError("sandbox_violation", error.message) }
  return shellFailure(error.code === "sandbox_failed" ? "sandbox_failed" : "not_started", error.message)
}
