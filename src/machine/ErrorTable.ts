/**
 * Every error code the machines write, whether trying again can help, where it
 * comes from, and what happens by default. The first six rows are the error
 * classification of the session design; the rest follow the same columns.
 */
import type { ErrorInfo, ErrorSource } from "../rune/kinds/shared.ts"

export interface ErrorRow {
  /** `policy`: the hook's own failure policy decides. */
  readonly retryable: boolean | "policy"
  readonly source: ErrorSource
  readonly defaultAction: string
}

const row = (retryable: ErrorRow["retryable"], source: ErrorSource, defaultAction: string): ErrorRow => ({
  retryable,
  source,
  defaultAction
})

export const errorTable = {
  session_not_found: row(false, "orchestrator", "session_error, event ignored"),
  state_transition_invalid: row(false, "orchestrator", "session_error, state kept"),
  harness_failed: row(true, "harness", "error, retry allowed"),
  tool_execution_failed: row(true, "tool", "error, retry allowed"),
  hook_execution_failed: row("policy", "hook", "error or ready"),
  streaming_failed: row(true, "harness", "error, retry allowed"),

  turn_limit_exceeded: row(false, "orchestrator", "turn ends in error"),
  agent_crashed: row(true, "orchestrator", "turn ends in error, agent restarts"),
  response_incomplete: row(true, "orchestrator", "turn ends in error"),
  unknown_tool: row(false, "tool", "error result to the model"),
  invalid_arguments: row(false, "tool", "error result to the model"),
  arguments_too_large: row(false, "tool", "error result to the model"),
  duplicate_call_id: row(false, "tool", "error result to the model"),
  too_many_calls: row(false, "tool", "error result to the model"),
  tool_timeout: row(true, "tool", "timeout result to the model"),
  approval_timeout: row(false, "tool", "timeout result to the model"),
  tool_denied: row(false, "tool", "denied result to the model"),
  tool_changed: row(false, "tool", "error result to the model; the next call needs approval again"),
  workspace_refused: row(false, "tool", "error result to the model"),
  tool_cancelled: row(false, "tool", "cancelled result"),
  tool_outcome_unknown: row(false, "tool", "unknown result, raised to a human"),
  sandbox_violation: row(false, "tool", "error result to the model"),
  hook_outcome_unknown: row(false, "hook", "hook canceled, turn continues"),
  hook_config_invalid: row(false, "hook", "session_error, hooks off")
} as const satisfies Readonly<Record<string, ErrorRow>>

export type ErrorCode = keyof typeof errorTable

/** An error as runes carry it. A policy-bound code is not retryable by itself. */
export const errorInfo = (code: ErrorCode, message: string): ErrorInfo => ({
  code,
  message,
  retryable: errorTable[code].retryable === true,
  source: errorTable[code].source
})
