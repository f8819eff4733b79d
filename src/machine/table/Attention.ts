/**
 * Whether a person is needed: starting, running, idle, awaiting_input,
 * awaiting_approval, error, closed. Hooks of outside agents get lost, so a health
 * check brings a stuck state back to idle within a bounded time.
 */
export type AttentionStatus =
  | "starting"
  | "running"
  | "idle"
  | "awaiting_input"
  | "awaiting_approval"
  | "error"
  | "closed"

export type AttentionSignal =
  | "session_start"
  | "prompt_submit"
  /** A tool that asks the person something. */
  | "tool_start_question"
  /** A tool, or a plan, that waits for a yes. */
  | "tool_start_approval"
  | "tool_start_other"
  | "tool_call"
  | "stop"
  | "stop_with_error"
  | "health_check_recovery"
  /** The process is gone; said from outside, never by the agent. */
  | "mark_stopped"

type Row = { readonly [S in AttentionSignal]: AttentionStatus | "refuse" }

/** What the agent itself says means the same whatever was thought before. */
const heard = {
  session_start: "running",
  prompt_submit: "running",
  tool_start_question: "awaiting_input",
  tool_start_approval: "awaiting_approval",
  tool_start_other: "running",
  tool_call: "running",
  stop: "idle",
  stop_with_error: "error",
  mark_stopped: "closed"
} as const

export const attentionTable: { readonly [S in AttentionStatus]: Row } = {
  starting: { ...heard, health_check_recovery: "starting" },
  running: { ...heard, health_check_recovery: "running" },
  idle: { ...heard, health_check_recovery: "idle" },
  awaiting_input: { ...heard, health_check_recovery: "idle" },
  awaiting_approval: { ...heard, health_check_recovery: "idle" },
  error: { ...heard, health_check_recovery: "idle" },
  // Events that were still under way when the process ended wake nothing; only a new session does.
  closed: {
    session_start: "running",
    prompt_submit: "refuse",
    tool_start_question: "refuse",
    tool_start_approval: "refuse",
    tool_start_other: "refuse",
    tool_call: "refuse",
    stop: "refuse",
    stop_with_error: "refuse",
    health_check_recovery: "refuse",
    mark_stopped: "refuse"
  }
}

export const attentionStep = (status: AttentionStatus, signal: AttentionSignal): AttentionStatus => {
  const next = attentionTable[status][signal]
  return next === "refuse" ? status : next
}

/** Someone has to look. */
export const needsHuman = (status: AttentionStatus): boolean =>
  status === "awaiting_input" || status === "awaiting_approval" || status === "error"

export const recoveryLimits = {
  healthCheckIntervalMs: 10_000,
  stalenessThresholdMs: 2_000,
  /** A check may just have run, and the change must be older than the threshold. */
  maxRecoveryMs: 12_000
} as const

/** The transcript moved on and no event told us: what we show is old. */
export const isStale = (transcript: { readonly modifiedMs: number; readonly lastEventMs: number }): boolean =>
  transcript.modifiedMs > transcript.lastEventMs + recoveryLimits.stalenessThresholdMs

const toolSignals: Readonly<Record<string, AttentionSignal>> = {
  AskUserQuestion: "tool_start_question",
  ask_user: "tool_start_question",
  ExitPlanMode: "tool_start_approval"
}

/** What the start of a tool means for a person. */
export const signalOfTool = (toolName: string): AttentionSignal =>
  (Object.hasOwn(toolSignals, toolName) ? toolSignals[toolName] : undefined) ?? "tool_start_other"
