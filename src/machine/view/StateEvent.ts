/** The shapes of the view `state_events`, and of what its fold remembers. */
import type { ErrorSource } from "../../rune/kinds/shared.ts"
import type { SessionStatus } from "../table/Session.ts"

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
      readonly agentId?: string
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
      readonly errorCode?: string
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
      readonly errorCode?: string
    }
  /** The conversation itself: paused, suspended, and so on. */
  | {
      readonly type: "session_changed"
      readonly from: SessionStatus
      readonly to: SessionStatus
      readonly reason?: string
    }
  /** The agent waits for somebody, or no longer does. */
  | {
      readonly type: "waiting"
      readonly on: "approval" | "answer" | "provider" | "person" | "nothing"
      readonly callId?: string
      /** When it is tried again by itself. */
      readonly untilMs?: number
    }
  | {
      readonly type: "session_error"
      /** One of the six of the session design where one of them fits. */
      readonly code: string
      /** What it was exactly, where that says more. */
      readonly detail?: string
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
  /** Calls that wait for a person. */
  asking: Array<string>
  /** It waits to ask its model again. */
  is_waiting: boolean
  /** Something of the answer has come. */
  is_streaming: boolean
}

/** Plain JSON; changed in place by the fold. */
export interface StateProjection {
  session: SessionStatus
  readonly agents: Array<ProjectedAgent>
}
