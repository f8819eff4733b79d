// Errors of the built-in tools as results carry them. None is retried by itself: the model is told, and decides.
import type { ErrorInfo } from "../../rune/kinds/shared.ts"

export type BuiltinErrorCode =
  | "invalid_arguments"
  | "unknown_tool"
  | "no_workspace"
  | "outside_workspace"
  | "file_error"
  | "too_large"
  | "command_failed"
  | "command_killed"

export const toolError = (code: BuiltinErrorCode, message: string): ErrorInfo => ({
  code,
  message,
  retryable: false,
  source: "tool"
})
