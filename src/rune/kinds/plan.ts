/** Runes of the autonomy loop: goal, plan, tasks, critique, and how it ended. */
import * as Schema from "effect/Schema"
import { AgentId, PlanId, TaskId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { Evidence, EvidenceSpec, GoalDemands, GoalModels } from "./evidence.ts"
import { Budget, Count, ErrorInfo, Name, Ordinal, Usage } from "./shared.ts"

export const TaskPriority = Schema.Literals(["critical", "high", "medium", "low"])

export const PlanTask = Schema.Struct({
  task_id: TaskId,
  title: Name,
  instructions: Schema.String,
  depends_on: Schema.Array(TaskId),
  priority: TaskPriority,
  role: Schema.optionalKey(Schema.String),
  /** The model that works on it; that of the goal for workers where it is left out. */
  model: Schema.optionalKey(Name),
  /** A person named its checks: giving a command is a yes to it. */
  origin: Schema.optionalKey(Schema.Literal("person")),
  success_criteria: Schema.optionalKey(Schema.Array(Schema.String)),
  evidence: Schema.optionalKey(Schema.Array(EvidenceSpec))
})
export type PlanTask = typeof PlanTask.Type

export const PlanChange = Schema.Union([
  Schema.Struct({ type: Schema.Literal("task_added"), task: PlanTask }),
  Schema.Struct({ type: Schema.Literal("task_changed"), task: PlanTask }),
  Schema.Struct({ type: Schema.Literal("task_cancelled"), task_id: TaskId, reason: Schema.String }),
  /** What whoever works on a task has to say about it: progress, or a proposal. */
  Schema.Struct({ type: Schema.Literal("task_noted"), task_id: TaskId, note: Schema.String })
])
export type PlanChange = typeof PlanChange.Type

export const Finding = Schema.Struct({
  severity: Schema.Literals(["error", "warning", "suggestion", "info"]),
  category: Schema.String,
  title: Schema.String,
  detail: Schema.optionalKey(Schema.String),
  file: Schema.optionalKey(Schema.String),
  line: Schema.optionalKey(Count),
  suggested_fix: Schema.optionalKey(Schema.String),
  task_id: Schema.optionalKey(TaskId)
})
export type Finding = typeof Finding.Type

export const Verdict = Schema.Literals(["pass", "retry", "replan"])
export type Verdict = typeof Verdict.Type

/** What a person may choose about how a goal is pursued. */
export const GoalOptions = Schema.Struct({
  /** Every worker in a git worktree of its own, merged when its task is done. */
  worktrees: Schema.optionalKey(Schema.Boolean),
  max_iterations: Schema.optionalKey(Ordinal),
  max_replans: Schema.optionalKey(Count),
  /** Tokens that may be spent from one finished task to the next. */
  tokens_without_progress: Schema.optionalKey(Ordinal),
  /** What each worker may use. */
  task_budget: Schema.optionalKey(Budget),
  /** A goal whose budget is used up is over, instead of waiting for more. */
  stop_on_budget: Schema.optionalKey(Schema.Boolean)
})
export type GoalOptions = typeof GoalOptions.Type

/** How the workspace stood when the goal was taken up, to tell later what changed. */
export const WorkspaceBase = Schema.Struct({
  /** A tree object of its git repository. */
  tree: Schema.optionalKey(Schema.String),
  /** Without one: its files, each with a short mark that changes when the file does. */
  files: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})
export type WorkspaceBase = typeof WorkspaceBase.Type

/** A file that is not what it was; without counts where lines mean nothing or nobody counted. */
export const FileChange = Schema.Struct({
  path: Schema.String,
  added: Schema.optionalKey(Count),
  removed: Schema.optionalKey(Count),
  status: Schema.optionalKey(Schema.Literals(["added", "deleted", "modified"]))
})
export type FileChange = typeof FileChange.Type

/** How a plan differs from the one before it. */
export const PlanDifference = Schema.Struct({
  added: Schema.Array(TaskId),
  changed: Schema.Array(TaskId),
  /** Not in the new plan, with how far each had come. */
  dropped: Schema.Array(Schema.Struct({ task_id: TaskId, status: Schema.String }))
})
export type PlanDifference = typeof PlanDifference.Type

/** What keeps a goal from being pursued until a person does something about it. */
export const SuspendCause = Schema.Literals(["provider", "budget", "policy", "merge", "workspace"])
export type SuspendCause = typeof SuspendCause.Type

export const planKinds = [
  defineKind("plan.goal_received", {
    meaning: "A goal was submitted, with its budget and options.",
    views: ["catalog"],
    payload: Schema.Struct({
      plan_id: PlanId,
      goal: Name,
      auto_start: Schema.Boolean,
      max_parallel: Schema.optionalKey(Ordinal),
      budget: Schema.optionalKey(Budget),
      options: Schema.optionalKey(GoalOptions),
      ...GoalDemands,
      models: Schema.optionalKey(GoalModels),
      principal: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("plan.planning_started", {
    meaning: "A planner works on the plan.",
    payload: Schema.Struct({ plan_id: PlanId, attempt: Ordinal, base: Schema.optionalKey(WorkspaceBase) })
  }),
  defineKind("plan.created", {
    meaning: "A plan with its tasks was submitted.",
    payload: Schema.Struct({
      plan_id: PlanId,
      tasks: Schema.Array(PlanTask),
      revision: Schema.optionalKey(Ordinal),
      summary: Schema.optionalKey(Schema.String),
      /** Why a person has to look at it first, although the goal was to start by itself. */
      needs_approval: Schema.optionalKey(Schema.String),
      /** From the plan before, if there was one. */
      difference: Schema.optionalKey(PlanDifference)
    })
  }),
  defineKind("plan.baseline_checked", {
    meaning: "The checks of a plan ran once before the work.",
    references: [["evidence", "*", "event_ids", "*"]],
    payload: Schema.Struct({
      plan_id: PlanId,
      revision: Ordinal,
      evidence: Schema.Array(Evidence),
      /** Why a person has to approve the plan: its checks pass already and would show nothing. */
      needs_approval: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("plan.updated", {
    meaning: "Tasks were added, changed, canceled or annotated.",
    payload: Schema.Struct({ plan_id: PlanId, changes: Schema.Array(PlanChange) })
  }),
  defineKind("plan.approved", {
    meaning: "Somebody approved the plan.",
    payload: Schema.Struct({ plan_id: PlanId, approver: Name, channel: Schema.optionalKey(Schema.String) })
  }),
  defineKind("plan.rejected", {
    meaning: "Somebody rejected the plan.",
    payload: Schema.Struct({ plan_id: PlanId, reason: Schema.String, approver: Schema.optionalKey(Schema.String) })
  }),
  defineKind("plan.task_assigned", {
    meaning: "A task has an agent.",
    payload: Schema.Struct({ plan_id: PlanId, task_id: TaskId, agent_id: AgentId })
  }),
  defineKind("plan.task_started", {
    meaning: "Work on a task begins.",
    payload: Schema.Struct({ plan_id: PlanId, task_id: TaskId, attempt: Ordinal })
  }),
  defineKind("plan.task_completed", {
    meaning: "A task is done, with its checked evidence.",
    references: [["evidence", "*", "event_ids", "*"]],
    payload: Schema.Struct({
      plan_id: PlanId,
      task_id: TaskId,
      result: Schema.String,
      evidence: Schema.Array(Evidence),
      /** The files of the workspace with the work of this task in them. */
      tree: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("plan.task_failed", {
    meaning: "An attempt at a task failed.",
    payload: Schema.Struct({
      plan_id: PlanId,
      task_id: TaskId,
      attempt: Ordinal,
      error: ErrorInfo,
      evidence: Schema.optionalKey(Schema.Array(Evidence))
    })
  }),
  defineKind("plan.task_released", {
    meaning: "An attempt at a task ended for an external reason and does not count.",
    payload: Schema.Struct({ plan_id: PlanId, task_id: TaskId, error: ErrorInfo })
  }),
  defineKind("plan.task_returned", {
    meaning: "Work that conflicts with that of others is back with its worker, which has both sides.",
    payload: Schema.Struct({ plan_id: PlanId, task_id: TaskId, agent_id: AgentId, error: ErrorInfo })
  }),
  defineKind("plan.task_reopened", {
    meaning: "A task is open again: its work broke what had been shown before.",
    references: [["evidence", "*", "event_ids", "*"]],
    payload: Schema.Struct({
      plan_id: PlanId,
      task_id: TaskId,
      error: ErrorInfo,
      /** The checks that it broke. */
      evidence: Schema.Array(Evidence)
    })
  }),
  defineKind("plan.suspended", {
    meaning: "The goal waits for a person, with the question.",
    payload: Schema.Struct({ plan_id: PlanId, cause: SuspendCause, question: Name })
  }),
  defineKind("plan.resumed", {
    meaning: "Work on the goal resumes.",
    payload: Schema.Struct({
      plan_id: PlanId,
      reason: Schema.String,
      /** More to spend, as a whole. */
      budget: Schema.optionalKey(Budget),
      principal: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("plan.review_started", {
    meaning: "A critic reviews the work.",
    payload: Schema.Struct({
      plan_id: PlanId,
      iteration: Ordinal,
      agent_id: Schema.optionalKey(AgentId),
      /** Checked anew for the review. */
      evidence: Schema.optionalKey(Schema.Array(Evidence))
    })
  }),
  defineKind("plan.critique", {
    meaning: "The findings of a critic and the verdict.",
    payload: Schema.Struct({ plan_id: PlanId, findings: Schema.Array(Finding), verdict: Verdict }),
    visibility: "internal"
  }),
  defineKind("plan.blocked", {
    meaning: "Tasks cannot start until something changes.",
    payload: Schema.Struct({ plan_id: PlanId, task_ids: Schema.Array(TaskId), reason: Schema.String })
  }),
  defineKind("plan.unblocked", {
    meaning: "Blocked tasks can start again.",
    payload: Schema.Struct({ plan_id: PlanId, task_ids: Schema.Array(TaskId), reason: Schema.String })
  }),
  defineKind("plan.goal_met", {
    meaning: "The goal is met, with the evidence that showed it.",
    views: ["catalog"],
    references: [["evidence", "*", "event_ids", "*"]],
    payload: Schema.Struct({
      plan_id: PlanId,
      summary: Schema.String,
      evidence: Schema.Array(Evidence),
      /** The state of the files that the evidence is about: all of it ran on this one. */
      tree: Schema.optionalKey(Schema.String),
      changes: Schema.optionalKey(Schema.Array(FileChange)),
      usage: Schema.optionalKey(Usage),
      wall_ms: Schema.optionalKey(Count)
    }),
    runeClass: "terminal"
  }),
  defineKind("plan.stopped", {
    meaning: "The goal ended without being met, with the reason.",
    views: ["catalog"],
    payload: Schema.Struct({ plan_id: PlanId, reason: Name, summary: Schema.optionalKey(Schema.String) }),
    runeClass: "terminal"
  })
] as const
