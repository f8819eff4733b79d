/** The shapes of the view `state_events`, and of what its fold remembers. */
import type { ErrorSource } from "../../rune/kinds/shared.ts"

export type StateKind =
  | "Idle"
  | "Starting"
  | "Ready"
  | "CallingLlm"
  | "ProcessingResponse"
  | "ExecutingTools"
  | "PostToolsHook"
  | "Error"
  | "Stopping"
  | "Stopped"

/** The first seven are the design's own; the others name transitions for which it has no word. */
export type StateReason =
  | "user_input"
  | "stream_completed"
  | "tools_requested"
  | "tools_completed"
  | "hooks_completed"
  | "stop_requested"
  | "harness_exited"
  | "spawn_requested"
  | "harness_ready"
  | "error"
  | "retry_timeout"
  | "retries_exhausted"
  | "interrupted"

export type RunStatus = "Queued" | "Running" | "Succeeded" | "Failed" | "Canceled"

interface StateEnvelope {
  /** Event id of the rune, and the position among the events of that rune. */
  readonly eventId: string
  readonly timestampMs: number
  readonly sessionId: string
  readonly agentId?: string
}

export type StateEventBody =
  | {
      readonly type: "state_changed"
      readonly from: StateKind
      readonly to: StateKind
      readonly reason: StateReason
      readonly streamId?: string
    }
  | {
      readonly type: "tool_lifecycle"
      readonly runId: string
      readonly callId: string
      readonly toolName: string
      readonly mutating: boolean
      readonly status: RunStatus
      readonly attempt: number
      readonly startedAtMs: number
      readonly finishedAtMs?: number
      readonly error?: string
    }
  | {
      readonly type: "hook_lifecycle"
      readonly runId: string
      readonly hookName: string
      readonly toolRunIds: ReadonlyArray<string>
      readonly status: RunStatus
      readonly attempt: number
      readonly startedAtMs: number
      readonly finishedAtMs?: number
      readonly error?: string
    }
  | {
      readonly type: "session_error"
      readonly code: string
      readonly message: string
      readonly retryable: boolean
      readonly source: ErrorSource
    }

export type StateEvent = StateEnvelope & StateEventBody

export interface ProjectedCall {
  call_id: string
  run_id: string
  tool_name: string
  mutating: boolean
  attempt: number
  started_ms: number
}

export interface ProjectedHook {
  hook_run_id: string
  hook_name: string
  tool_run_ids: ReadonlyArray<string>
  attempt: number
  started_ms: number
}

export interface ProjectedAgent {
  agent_id: string
  kind: StateKind
  calls: Array<ProjectedCall>
  hooks: Array<ProjectedHook>
}

/** Plain JSON; changed in place by the fold. */
export interface StateProjection {
  readonly agents: Array<ProjectedAgent>
}
