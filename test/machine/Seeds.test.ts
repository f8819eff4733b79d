/**
 * Goal: the tables contain every transition of the designs they were made from, by
 * name. Each line is one arrow or one row of a transition table: where from, on
 * what, where to, and the cell that carries it.
 */
import { describe, expect, it } from "vitest"
import { errorTable } from "#src/machine/ErrorTable.ts"
import { effectiveLimits, limits, llmRetryDelayMs } from "#src/machine/MachineLimits.ts"
import { attentionStep, isStale, needsHuman, recoveryLimits } from "#src/machine/table/Attention.ts"
import { monitorStep, monitorView, observe, signalOf } from "#src/machine/table/Monitor.ts"
import { subjects } from "../support/machineSamples.ts"

/** From, what happens there, to, and our command for it. */
type Arrow = readonly [from: string, event: string, to: string, command: string]

const tableOf = (name: string) => subjects.find(({ machine }) => machine.name === name)!.machine.table

const expectArrow = (machine: string, [from, , to, command]: Arrow): void => {
  const cell = tableOf(machine)[from]?.[command]
  expect(cell, `${machine}: ${from} × ${command}`).toBeDefined()
  expect(cell === "refuse" ? "refuse" : cell!.to, `${machine}: ${from} × ${command}`).toBe(to)
}

const turnArrows: ReadonlyArray<Arrow> = [
  ["idle", "start_turn(input)", "streaming", "Start"],
  ["streaming", "tool_calls_received", "tool_executing", "RespondWithCalls"],
  ["streaming", "response_done(no_tool_calls)", "completed", "RespondAndComplete"],
  ["streaming", "interrupt", "interrupted", "Interrupt"],
  ["streaming", "steer", "interrupted", "Steer"],
  ["streaming", "stream_error", "error", "Fail"],
  ["tool_executing", "tools_finished(continue)", "streaming", "FinishTools"],
  ["tool_executing", "tools_finished(no_more_calls)", "completed", "FinishToolsAndComplete"],
  ["tool_executing", "interrupt", "interrupted", "Interrupt"],
  ["tool_executing", "tool_crash(unrecoverable)", "error", "Fail"],
  ["interrupted", "turn_finalized", "idle", "Finalise"],
  ["completed", "turn_finalized", "idle", "Finalise"],
  ["error", "turn_finalized", "idle", "Finalise"]
]

const toolArrows: ReadonlyArray<Arrow> = [
  ["pending_call", "requires_approval", "awaiting_approval", "RequireApproval"],
  ["pending_call", "auto_approved / no_approval_needed", "executing", "Start"],
  ["awaiting_approval", "approved", "executing", "Approve"],
  ["awaiting_approval", "denied", "denied", "Deny"],
  ["awaiting_approval", "approval_timeout", "timeout", "ExpireApproval"],
  ["executing", "progress_update", "executing", "Progress"],
  ["executing", "success", "completed", "Succeed"],
  ["executing", "execution_error", "error", "Fail"],
  ["executing", "execution_timeout", "timeout", "TimeOut"],
  ["executing", "cancelled", "cancelled", "Cancel"]
]

const sessionArrows: ReadonlyArray<Arrow> = [
  ["created", "first_message / agent_ready", "active", "Activate"],
  ["active", "new_turn / turn_completed", "active", "AdmitTurn"],
  ["active", "pause_requested", "paused", "Pause"],
  ["active", "budget_exhausted / error_threshold", "suspended", "Suspend"],
  ["active", "close_requested", "closing", "Close"],
  ["paused", "resume_requested", "active", "Resume"],
  ["paused", "close_requested", "closing", "Close"],
  ["suspended", "budget_replenished / reset", "active", "Unsuspend"],
  ["suspended", "close_requested", "closing", "Close"],
  ["closing", "cleanup_complete", "closed", "FinishClosing"],
  ["closed", "archive_requested", "archived", "Archive"]
]

const agentArrows: ReadonlyArray<Arrow> = [
  ["spawning", "init_complete", "idle", "CompleteInit"],
  ["spawning", "init_error", "failed", "FailInit"],
  ["idle", "turn_assigned", "running_turn", "AssignTurn"],
  ["idle", "kill / parent_closed", "terminated", "Kill"],
  ["running_turn", "turn_completed", "idle", "EndTurnCompleted"],
  ["running_turn", "turn_interrupted", "idle", "EndTurnInterrupted"],
  ["running_turn", "turn_error", "idle", "EndTurnError"],
  ["running_turn", "kill(force)", "terminated", "ForceKill"],
  ["idle", "budget_exhausted", "terminated", "TerminateExhausted"]
]

const autonomyArrows: ReadonlyArray<Arrow> = [
  ["goal_received", "decompose_goal", "planning", "DecomposeGoal"],
  ["planning", "plan_approved / auto_start", "executing", "ApprovePlan"],
  ["planning", "plan_rejected(revise)", "goal_received", "RejectPlan"],
  ["planning", "user_cancel", "stopped", "Cancel"],
  ["executing", "all_tasks_terminal", "reviewing", "BeginReview"],
  ["executing", "task_completed(more_pending)", "executing", "CompleteTask"],
  ["executing", "all_runnable_blocked", "blocked", "Block"],
  ["executing", "budget_exhausted", "stopped", "ExhaustBudget"],
  ["executing", "user_cancel", "stopped", "Cancel"],
  ["reviewing", "critique_found_issues(retry)", "executing", "FindIssues"],
  ["reviewing", "critique_passed", "goal_met", "PassCritique"],
  ["reviewing", "needs_replan", "planning", "NeedReplan"],
  ["blocked", "dependency_resolved", "executing", "ResolveDependency"],
  ["blocked", "unresolvable", "stopped", "GiveUp"],
  ["blocked", "user_cancel", "stopped", "Cancel"]
]

describe.each([
  ["Turn", turnArrows],
  ["Tool", toolArrows],
  ["Session", sessionArrows],
  ["Agent", agentArrows],
  ["Autonomy", autonomyArrows]
] as const)("state machines design: %s", (machine, arrows) => {
  it.each(arrows)("%s, %s → %s", (...arrow) => expectArrow(machine, arrow))
})

/** Our status for each state of the session design. */
const statusOf = {
  Ready: "idle",
  CallingLlm: "streaming",
  ProcessingResponse: "processing",
  ExecutingTools: "tool_executing",
  PostToolsHook: "hooks_running",
  Error: "retry_waiting"
} as const

type Row = readonly [machine: string, from: string, event: string, to: string, command: string]

const selectedRows: ReadonlyArray<Row> = [
  ["Turn", statusOf.Ready, "UserInput", statusOf.CallingLlm, "Start"],
  ["Turn", statusOf.CallingLlm, "HarnessStream(completed)", statusOf.ProcessingResponse, "ReceiveResponse"],
  ["Turn", statusOf.ProcessingResponse, "tool calls present", statusOf.ExecutingTools, "ReceiveToolCalls"],
  ["Turn", statusOf.ProcessingResponse, "no tool calls", "completed", "Complete"],
  ["Turn", "completed", "no tool calls (to Ready)", statusOf.Ready, "Finalise"],
  ["Turn", statusOf.ExecutingTools, "all tools done + mutating", statusOf.PostToolsHook, "FinishToolsWithHooks"],
  ["Turn", statusOf.ExecutingTools, "all tools done + non-mutating", statusOf.CallingLlm, "FinishTools"],
  ["Turn", statusOf.PostToolsHook, "hooks done", statusOf.CallingLlm, "FinishHooks"],
  ["Session", "created", "StopRequested", "closing", "Close"],
  ["Session", "active", "StopRequested", "closing", "Close"],
  ["Session", "paused", "StopRequested", "closing", "Close"],
  ["Session", "suspended", "StopRequested", "closing", "Close"],
  ["Session", "closing", "HarnessExited", "closed", "FinishClosing"]
]

const additionalRows: ReadonlyArray<Row> = [
  ["Agent", "spawning", "HarnessExited(code=0), readiness", "idle", "CompleteInit"],
  ["Turn", statusOf.CallingLlm, "HarnessStream(error)", statusOf.Error, "ScheduleRetry"],
  ["Turn", statusOf.CallingLlm, "HarnessStream(error), retries exhausted", "error", "Fail"],
  ["Turn", statusOf.ExecutingTools, "ToolCompleted(Failed)", statusOf.Error, "ScheduleRetry"],
  ["Turn", statusOf.ExecutingTools, "ToolCompleted(Failed), retries exhausted", "error", "Fail"],
  ["Turn", statusOf.PostToolsHook, "HookCompleted(Failed)", statusOf.Error, "ScheduleRetry"],
  ["Turn", statusOf.PostToolsHook, "HookCompleted(Failed), fail_session", "error", "Fail"],
  ["Turn", statusOf.Error, "RetryTimeout(target=Llm)", statusOf.CallingLlm, "StartLlmRetry"],
  ["Turn", statusOf.Error, "RetryTimeout(target=Tool)", statusOf.ExecutingTools, "StartToolRetry"],
  ["Turn", statusOf.Error, "RetryTimeout(target=Hook)", statusOf.PostToolsHook, "StartHookRetry"],
  ["Turn", "error", "retries exhausted, Ready with last_error", statusOf.Ready, "Finalise"]
]

describe("session design: transition tables", () => {
  it.each(selectedRows)("selected: %s %s, %s → %s", (machine, ...arrow) => expectArrow(machine, arrow))
  it.each(additionalRows)("additional: %s %s, %s → %s", (machine, ...arrow) => expectArrow(machine, arrow))

  it("additional: Idle, spawn_session → Starting is how an agent begins", () => {
    expect(subjects.find(({ machine }) => machine.name === "Agent")!.machine.initial).toBe("spawning")
  })
})

describe("session design: retries, timeouts, errors", () => {
  it("tries a model call twice more, after 250 ms and 1 s", () => {
    expect(limits.maxLlmRetries).toBe(2)
    expect([llmRetryDelayMs(1), llmRetryDelayMs(2)]).toEqual([250, 1000])
    // What lasts longer is waited out with doubled delays, up to a minute each.
    expect([3, 4, 5, 8, 9, 1000].map(llmRetryDelayMs)).toEqual([2000, 4000, 8000, 60_000, 60_000, 60_000])
  })

  it("tries a tool once more after 500 ms, and a hook not at all", () => {
    expect([limits.maxToolRetries, limits.toolRetryDelayMs, limits.maxHookRetries]).toEqual([1, 500, 0])
  })

  it("has the timeouts of the design, which a conversation may override", () => {
    // The 120 s of a model call are about its silence: a healthy answer may take up to an hour.
    expect([limits.llmFirstEventMs, limits.toolTimeoutMs, limits.hookTimeoutMs]).toEqual([120_000, 300_000, 120_000])
    expect([limits.llmIdleMs, limits.llmTimeoutMs]).toEqual([60_000, 3_600_000])
    expect(effectiveLimits({})).toMatchObject({ llmFirstEventMs: 120_000, llmIdleMs: 60_000, approvalTimeoutMs: 0 })
    const overrides = {
      max_llm_retries: 0,
      max_tool_retries: 3,
      llm_timeout_ms: 5,
      llm_first_event_ms: 7,
      llm_idle_ms: 8,
      tool_timeout_ms: 6,
      approval_timeout_ms: 0
    }
    expect(effectiveLimits({ limits: overrides })).toEqual({
      maxLlmRetries: 0,
      maxToolRetries: 3,
      llmTimeoutMs: 5,
      llmFirstEventMs: 7,
      llmIdleMs: 8,
      toolTimeoutMs: 6,
      errorThreshold: 10,
      approvalTimeoutMs: 0
    })
  })

  it.each([
    ["session_not_found", false, "orchestrator"],
    ["state_transition_invalid", false, "orchestrator"],
    ["harness_failed", true, "harness"],
    ["tool_execution_failed", true, "tool"],
    ["hook_execution_failed", "policy", "hook"],
    ["streaming_failed", true, "harness"]
  ] as const)("classifies %s as retryable: %s, from %s", (code, retryable, source) => {
    expect(errorTable[code]).toMatchObject({ retryable, source })
  })
})

describe("monitor design: outside agents", () => {
  it.each([
    ["initialized", "session_started", "idle"],
    ["idle", "user_prompt", "thinking"],
    ["thinking", "tool_started", "tool_use"],
    ["thinking", "approval_requested", "waiting_for_permission"],
    ["waiting_for_permission", "becomes_tool_use", "tool_use"],
    ["waiting_for_permission", "becomes_waiting_for_permission", "waiting_for_permission"],
    ["tool_use", "becomes_thinking", "thinking"],
    ["thinking", "turn_completed", "idle"],
    ["tool_use", "tool_completed", "tool_use"],
    ["thinking", "tool_completed", "thinking"],
    ["tool_use", "turn_completed", "tool_use"],
    ["thinking", "becomes_compacting", "compacting"],
    ["tool_use", "becomes_compacting", "compacting"],
    ["waiting_for_permission", "becomes_compacting", "compacting"],
    ["thinking", "becomes_idle", "idle"],
    ["tool_use", "becomes_idle", "idle"],
    ["waiting_for_permission", "becomes_idle", "idle"],
    ["compacting", "becomes_idle", "idle"],
    ["idle", "session_ended", "exited"],
    ["thinking", "session_ended", "exited"],
    ["tool_use", "session_ended", "exited"],
    ["waiting_for_permission", "session_ended", "exited"],
    ["compacting", "session_ended", "exited"]
  ] as const)("%s, %s → %s", (from, signal, to) => expect(monitorStep(from, signal)).toBe(to))

  it("reads a state change as what it says; an active agent without more is thinking", () => {
    expect(signalOf({ type: "state_change", state: "active" })).toBe("becomes_thinking")
    expect(signalOf({ type: "state_change", state: "active", sub_state: "compacting" })).toBe("becomes_compacting")
    expect(observe("idle", { type: "state_change", state: "exited" })).toBe("exited")
    expect(observe("thinking", { type: "agent_message", content: "hi" })).toBe("thinking")
  })

  it("shows a state, and a sub-state only while active", () => {
    expect(monitorView("tool_use")).toEqual({ state: "active", sub_state: "tool_use" })
    expect(monitorView("idle")).toEqual({ state: "idle" })
    expect(monitorView("initialized")).toEqual({ state: "initialized" })
    expect(monitorView("exited")).toEqual({ state: "exited" })
  })
})

describe("attention design: the transition rules", () => {
  const open = ["starting", "running", "idle", "awaiting_input", "awaiting_approval", "error"] as const

  it.each([
    ["session_start", "running"],
    ["prompt_submit", "running"],
    ["tool_start_question", "awaiting_input"],
    ["tool_start_approval", "awaiting_approval"],
    ["tool_start_other", "running"],
    ["tool_call", "running"],
    ["stop_with_error", "error"],
    ["stop", "idle"],
    ["mark_stopped", "closed"]
  ] as const)("(_, %s) → %s", (signal, to) => {
    for (const from of open) expect(attentionStep(from, signal)).toBe(to)
  })

  it("recovers the stuck states to idle and leaves the others alone", () => {
    for (const from of open) {
      const recovered = needsHuman(from) ? "idle" : from
      expect(attentionStep(from, "health_check_recovery")).toBe(recovered)
    }
  })

  it("recovers within 12 seconds: one interval and one threshold", () => {
    const { healthCheckIntervalMs, stalenessThresholdMs, maxRecoveryMs } = recoveryLimits
    expect(maxRecoveryMs).toBe(healthCheckIntervalMs + stalenessThresholdMs)
    expect(maxRecoveryMs).toBe(12_000)
    expect(isStale({ modifiedMs: 10_000, lastEventMs: 8_000 })).toBe(false)
    expect(isStale({ modifiedMs: 10_001, lastEventMs: 8_000 })).toBe(true)
  })
})
