/**
 * One sample command for every tag of every machine, so that each cell of each
 * table can be taken. A tag without a sample does not compile.
 */
import type { AgentCommand, AgentStatus } from "#src/machine/table/Agent.ts"
import { agent, agentLands } from "#src/machine/table/Agent.ts"
import { type AutonomyCommand, type AutonomyStatus, autonomy, autonomyLands } from "#src/machine/table/Autonomy.ts"
import { type HookCommand, type HookRunStatus, hook, hookLands } from "#src/machine/table/Hook.ts"
import { type SessionCommand, type SessionStatus, session, sessionLands } from "#src/machine/table/Session.ts"
import type { Machine, Tagged } from "#src/machine/table/Table.ts"
import { type ToolCommand, type ToolStatus, tool, toolLands } from "#src/machine/table/Tool.ts"
import { type TurnCommand, type TurnStatus, turn, turnLands } from "#src/machine/table/Turn.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { payloadExamples as payloads } from "./runeExamples.ts"

type Samples<Command extends Tagged> = {
  readonly [Tag in Command["_tag"]]: Extract<Command, { readonly _tag: Tag }>
}

export interface Subject {
  readonly machine: Machine<string, Tagged>
  readonly samples: Readonly<Record<string, Tagged>>
  readonly lands: (from: string, rune: Rune) => string
}

const place = { agent_id: payloads["agent.ready"].agent_id, turn_id: payloads["turn.started"].turn_id }

const sessionSamples: Samples<SessionCommand> = {
  Activate: { _tag: "Activate", payload: payloads["session.activated"] },
  AdmitTurn: { _tag: "AdmitTurn" },
  Pause: { _tag: "Pause", reason: "lunch" },
  Resume: { _tag: "Resume", reason: "back" },
  Suspend: { _tag: "Suspend", payload: payloads["session.suspended"] },
  Unsuspend: { _tag: "Unsuspend" },
  Close: { _tag: "Close", reason: "done" },
  FinishClosing: { _tag: "FinishClosing", payload: payloads["session.closed"] },
  Archive: { _tag: "Archive", payload: payloads["session.archived"] },
  Restore: { _tag: "Restore", payload: payloads["session.restored"] },
  Fork: { _tag: "Fork", payload: payloads["session.forked"] },
  Configure: { _tag: "Configure", payload: payloads["config.updated"] }
}

const agentSamples: Samples<AgentCommand> = {
  CompleteInit: { _tag: "CompleteInit", payload: payloads["agent.ready"], place },
  FailInit: { _tag: "FailInit", payload: payloads["agent.failed"], place },
  AssignTurn: { _tag: "AssignTurn", payload: payloads["turn.started"], place },
  EndTurnCompleted: { _tag: "EndTurnCompleted", payload: payloads["turn.completed"], place },
  EndTurnInterrupted: { _tag: "EndTurnInterrupted", payload: payloads["turn.interrupted"], place },
  EndTurnError: { _tag: "EndTurnError", payload: payloads["turn.error"], place },
  Kill: { _tag: "Kill", payload: payloads["agent.terminated"], place },
  ForceKill: { _tag: "ForceKill", payload: payloads["agent.terminated"], place },
  ReportExhaustion: { _tag: "ReportExhaustion", payload: payloads["agent.budget_exhausted"], place },
  TerminateExhausted: {
    _tag: "TerminateExhausted",
    exhausted: { payload: payloads["agent.budget_exhausted"], place },
    terminated: { payload: payloads["agent.terminated"], place }
  },
  Deliver: { _tag: "Deliver", payload: payloads["agent.message"], place }
}

const final = { payload: payloads["turn.assistant_final"], place }
const received = { payload: payloads["turn.tool_calls_received"], place }
const calls = [{ payload: payloads["tool.call"], place }]
const completed = { payload: payloads["turn.completed"], place }
const { hooks: _, ...finishedWithoutHooks } = payloads["turn.tools_finished"]

const targets = {
  tool: { type: "tool", call_id: payloads["tool.call"].call_id },
  hook: { type: "hook", hook_run_id: payloads["hook.started"].hook_run_id }
} as const
const startedWith = (type: "tool" | "hook") => ({
  payload: { ...payloads["turn.started"], target: targets[type] },
  place
})

const turnSamples: Samples<TurnCommand> = {
  Start: { _tag: "Start", payload: payloads["turn.started"], place },
  StartWithCalls: { _tag: "StartWithCalls", started: startedWith("tool"), received, calls },
  StartWithHooks: {
    _tag: "StartWithHooks",
    started: startedWith("hook"),
    finished: { payload: payloads["turn.tools_finished"], place }
  },
  RequestModel: { _tag: "RequestModel", payload: payloads["turn.model_requested"], place },
  AppendText: { _tag: "AppendText", payload: payloads["turn.assistant_delta"], place },
  AppendReasoning: { _tag: "AppendReasoning", payload: payloads["turn.reasoning_delta"], place },
  RespondWithCalls: { _tag: "RespondWithCalls", final, received, calls },
  RespondAndComplete: { _tag: "RespondAndComplete", final, completed },
  ReceiveResponse: { _tag: "ReceiveResponse", ...final },
  ReceiveToolCalls: { _tag: "ReceiveToolCalls", received, calls },
  Complete: { _tag: "Complete", ...completed },
  FinishTools: { _tag: "FinishTools", payload: finishedWithoutHooks, place },
  FinishToolsWithHooks: { _tag: "FinishToolsWithHooks", payload: payloads["turn.tools_finished"], place },
  FinishToolsAndComplete: {
    _tag: "FinishToolsAndComplete",
    finished: { payload: finishedWithoutHooks, place },
    completed
  },
  FinishHooks: { _tag: "FinishHooks", payload: payloads["turn.hooks_finished"], place },
  FinishHooksAndComplete: {
    _tag: "FinishHooksAndComplete",
    finished: { payload: payloads["turn.hooks_finished"], place },
    completed
  },
  ScheduleRetry: { _tag: "ScheduleRetry", payload: payloads["turn.retry_scheduled"], place },
  StartLlmRetry: { _tag: "StartLlmRetry", payload: { attempt: 2, target: { type: "llm" } }, place },
  StartToolRetry: {
    _tag: "StartToolRetry",
    payload: { attempt: 2, target: { type: "tool", call_id: payloads["tool.call"].call_id } },
    place
  },
  StartHookRetry: {
    _tag: "StartHookRetry",
    payload: { attempt: 2, target: { type: "hook", hook_run_id: payloads["hook.started"].hook_run_id } },
    place
  },
  Interrupt: { _tag: "Interrupt", payload: payloads["turn.interrupted"], place },
  Steer: { _tag: "Steer", payload: payloads["turn.interrupted"], place },
  Fail: { _tag: "Fail", payload: payloads["turn.error"], place },
  Compact: { _tag: "Compact", payload: payloads["turn.compacted"], place },
  Finalise: { _tag: "Finalise" }
}

const result = (status: (typeof payloads)["tool.result"]["status"]) => ({
  payload: { ...payloads["tool.result"], status },
  place
})

const toolSamples: Samples<ToolCommand> = {
  RequireApproval: { _tag: "RequireApproval", payload: payloads["tool.approval_requested"], place },
  Approve: { _tag: "Approve", payload: payloads["tool.approved"], place },
  Deny: { _tag: "Deny", denied: { payload: payloads["tool.denied"], place }, result: result("denied") },
  ExpireApproval: { _tag: "ExpireApproval", ...result("timeout") },
  Start: { _tag: "Start", payload: payloads["tool.started"], place },
  Progress: { _tag: "Progress", payload: payloads["tool.progress"], place },
  Succeed: { _tag: "Succeed", ...result("success") },
  Fail: { _tag: "Fail", ...result("error") },
  TimeOut: { _tag: "TimeOut", ...result("timeout") },
  Cancel: { _tag: "Cancel", ...result("cancelled") },
  Lose: { _tag: "Lose", ...result("unknown") }
}

const hookDone = (status: (typeof payloads)["hook.completed"]["status"]) => ({
  payload: { ...payloads["hook.completed"], status },
  place
})

const hookSamples: Samples<HookCommand> = {
  Start: { _tag: "Start", payload: payloads["hook.started"], place },
  Succeed: { _tag: "Succeed", ...hookDone("succeeded") },
  Fail: { _tag: "Fail", ...hookDone("failed") },
  Cancel: { _tag: "Cancel", ...hookDone("canceled") }
}

const critique = (verdict: (typeof payloads)["plan.critique"]["verdict"]) => ({
  payload: { ...payloads["plan.critique"], verdict }
})
const stopped = { payload: payloads["plan.stopped"] }

const autonomySamples: Samples<AutonomyCommand> = {
  DecomposeGoal: { _tag: "DecomposeGoal", payload: payloads["plan.planning_started"] },
  CreatePlan: { _tag: "CreatePlan", payload: payloads["plan.created"] },
  UpdatePlan: { _tag: "UpdatePlan", payload: payloads["plan.updated"] },
  ApprovePlan: { _tag: "ApprovePlan", payload: payloads["plan.approved"] },
  RejectPlan: { _tag: "RejectPlan", payload: payloads["plan.rejected"] },
  AssignTask: { _tag: "AssignTask", payload: payloads["plan.task_assigned"] },
  StartTask: { _tag: "StartTask", payload: payloads["plan.task_started"] },
  CompleteTask: { _tag: "CompleteTask", payload: payloads["plan.task_completed"] },
  FailTask: { _tag: "FailTask", payload: payloads["plan.task_failed"] },
  CheckBaseline: { _tag: "CheckBaseline", payload: payloads["plan.baseline_checked"] },
  ReleaseTask: { _tag: "ReleaseTask", payload: payloads["plan.task_released"] },
  ReturnTask: { _tag: "ReturnTask", payload: payloads["plan.task_returned"] },
  ReopenTask: { _tag: "ReopenTask", payload: payloads["plan.task_reopened"] },
  AddTask: { _tag: "AddTask", payload: payloads["plan.task_added"] },
  EditTask: { _tag: "EditTask", payload: payloads["plan.task_edited"] },
  DropTask: { _tag: "DropTask", payload: payloads["plan.task_dropped"] },
  RetryTask: { _tag: "RetryTask", payload: payloads["plan.task_retried"] },
  ReassignTask: { _tag: "ReassignTask", payload: payloads["plan.task_reassigned"] },
  ReorderTask: { _tag: "ReorderTask", payload: payloads["plan.task_reordered"] },
  SteerTask: { _tag: "SteerTask", payload: payloads["plan.task_steered"] },
  Suspend: { _tag: "Suspend", payload: payloads["plan.suspended"] },
  Resume: { _tag: "Resume", payload: payloads["plan.resumed"] },
  BeginReview: { _tag: "BeginReview", payload: payloads["plan.review_started"] },
  Block: { _tag: "Block", payload: payloads["plan.blocked"] },
  ResolveDependency: { _tag: "ResolveDependency", payload: payloads["plan.unblocked"] },
  FindIssues: { _tag: "FindIssues", ...critique("retry") },
  PassCritique: { _tag: "PassCritique", critique: critique("pass"), met: { payload: payloads["plan.goal_met"] } },
  NeedReplan: { _tag: "NeedReplan", ...critique("replan") },
  ExhaustBudget: { _tag: "ExhaustBudget", ...stopped },
  GiveUp: { _tag: "GiveUp", ...stopped },
  Cancel: { _tag: "Cancel", ...stopped },
  BreakLoop: { _tag: "BreakLoop", ...stopped }
}

/** Forgets the types of one machine, so that all can be walked alike. */
const subject = <Status extends string, Command extends Tagged>(
  machine: Machine<Status, Command>,
  samples: Samples<Command>,
  lands: (from: Status, rune: Rune) => Status
): Subject => ({
  machine: machine as unknown as Machine<string, Tagged>,
  samples,
  lands: (from, rune) => lands(from as Status, rune)
})

export const subjects: ReadonlyArray<Subject> = [
  subject<SessionStatus, SessionCommand>(session, sessionSamples, sessionLands),
  subject<AgentStatus, AgentCommand>(agent, agentSamples, agentLands),
  subject<TurnStatus, TurnCommand>(turn, turnSamples, turnLands),
  subject<ToolStatus, ToolCommand>(tool, toolSamples, toolLands),
  subject<HookRunStatus, HookCommand>(hook, hookSamples, hookLands),
  subject<AutonomyStatus, AutonomyCommand>(autonomy, autonomySamples, autonomyLands)
]

export { autonomySamples }
