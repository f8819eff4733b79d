/**
 * The loop from a goal to its proof: goal_received, planning, executing, blocked,
 * reviewing, goal_met, stopped. A person may cancel and a limit may stop it in any
 * state that is not its end.
 */
import type { Rune, RuneDraft } from "../../rune/Rune.ts"
import { type Writes, write } from "../decide/Drafts.ts"
import type { Machine, Table } from "./Table.ts"

export type AutonomyStatus =
  | "goal_received"
  | "planning"
  | "executing"
  | "blocked"
  | "reviewing"
  | "goal_met"
  | "stopped"

export type AutonomyCommand =
  | ({ readonly _tag: "DecomposeGoal" } & Writes<"plan.planning_started">)
  | ({ readonly _tag: "CreatePlan" } & Writes<"plan.created">)
  | ({ readonly _tag: "UpdatePlan" } & Writes<"plan.updated">)
  /** By a person, or by `auto_start` with the approver named so. */
  | ({ readonly _tag: "ApprovePlan" } & Writes<"plan.approved">)
  | ({ readonly _tag: "RejectPlan" } & Writes<"plan.rejected">)
  | ({ readonly _tag: "AssignTask" } & Writes<"plan.task_assigned">)
  | ({ readonly _tag: "StartTask" } & Writes<"plan.task_started">)
  | ({ readonly _tag: "CompleteTask" } & Writes<"plan.task_completed">)
  | ({ readonly _tag: "FailTask" } & Writes<"plan.task_failed">)
  /** The checks of the plan ran before the work. */
  | ({ readonly _tag: "CheckBaseline" } & Writes<"plan.baseline_checked">)
  /** The attempt does not count. */
  | ({ readonly _tag: "ReleaseTask" } & Writes<"plan.task_released">)
  /** Its own worker brings it together with what others did meanwhile. */
  | ({ readonly _tag: "ReturnTask" } & Writes<"plan.task_returned">)
  /** What it broke is its to mend. */
  | ({ readonly _tag: "ReopenTask" } & Writes<"plan.task_reopened">)
  /** It waits for a person, in the state it is in. */
  | ({ readonly _tag: "Suspend" } & Writes<"plan.suspended">)
  | ({ readonly _tag: "Resume" } & Writes<"plan.resumed">)
  /** By a person, while the goal is pursued. */
  | ({ readonly _tag: "AddTask" } & Writes<"plan.task_added">)
  | ({ readonly _tag: "EditTask" } & Writes<"plan.task_edited">)
  | ({ readonly _tag: "DropTask" } & Writes<"plan.task_dropped">)
  | ({ readonly _tag: "RetryTask" } & Writes<"plan.task_retried">)
  | ({ readonly _tag: "ReassignTask" } & Writes<"plan.task_reassigned">)
  | ({ readonly _tag: "ReorderTask" } & Writes<"plan.task_reordered">)
  | ({ readonly _tag: "SteerTask" } & Writes<"plan.task_steered">)
  /** Every task has ended. */
  | ({ readonly _tag: "BeginReview" } & Writes<"plan.review_started">)
  /** Nothing that is left can run. */
  | ({ readonly _tag: "Block" } & Writes<"plan.blocked">)
  | ({ readonly _tag: "ResolveDependency" } & Writes<"plan.unblocked">)
  | ({ readonly _tag: "FindIssues" } & Writes<"plan.critique">)
  | {
      readonly _tag: "PassCritique"
      readonly critique: Writes<"plan.critique">
      readonly met: Writes<"plan.goal_met">
    }
  | ({ readonly _tag: "NeedReplan" } & Writes<"plan.critique">)
  | ({ readonly _tag: "ExhaustBudget" } & Writes<"plan.stopped">)
  | ({ readonly _tag: "GiveUp" } & Writes<"plan.stopped">)
  | ({ readonly _tag: "Cancel" } & Writes<"plan.stopped">)
  /** A loop breaker: iterations, replans, repetition, spend without progress. */
  | ({ readonly _tag: "BreakLoop" } & Writes<"plan.stopped">)

type Pass = Extract<AutonomyCommand, { readonly _tag: "PassCritique" }>
const passCritique = (command: Pass): ReadonlyArray<RuneDraft> => [
  ...write("plan.critique")(command.critique),
  ...write("plan.goal_met")(command.met)
]

const stopped = { to: "stopped", runes: write("plan.stopped") } as const
const completeTask = write("plan.task_completed")
const failTask = write("plan.task_failed")
const checkBaseline = write("plan.baseline_checked")
const releaseTask = write("plan.task_released")
const returnTask = write("plan.task_returned")
const addTask = write("plan.task_added")
const editTask = write("plan.task_edited")
const dropTask = write("plan.task_dropped")
const retryTask = write("plan.task_retried")
const reassignTask = write("plan.task_reassigned")
const reorderTask = write("plan.task_reordered")
const steerTask = write("plan.task_steered")
const suspend = write("plan.suspended")
const resume = write("plan.resumed")

const over = {
  DecomposeGoal: "refuse",
  CreatePlan: "refuse",
  UpdatePlan: "refuse",
  ApprovePlan: "refuse",
  RejectPlan: "refuse",
  AssignTask: "refuse",
  StartTask: "refuse",
  CompleteTask: "refuse",
  FailTask: "refuse",
  CheckBaseline: "refuse",
  ReleaseTask: "refuse",
  ReturnTask: "refuse",
  ReopenTask: "refuse",
  AddTask: "refuse",
  EditTask: "refuse",
  DropTask: "refuse",
  RetryTask: "refuse",
  ReassignTask: "refuse",
  ReorderTask: "refuse",
  SteerTask: "refuse",
  Suspend: "refuse",
  Resume: "refuse",
  BeginReview: "refuse",
  Block: "refuse",
  ResolveDependency: "refuse",
  FindIssues: "refuse",
  PassCritique: "refuse",
  NeedReplan: "refuse",
  ExhaustBudget: "refuse",
  GiveUp: "refuse",
  Cancel: "refuse",
  BreakLoop: "refuse"
} as const

const table: Table<AutonomyStatus, AutonomyCommand> = {
  goal_received: {
    DecomposeGoal: { to: "planning", runes: write("plan.planning_started") },
    CreatePlan: "refuse",
    UpdatePlan: "refuse",
    ApprovePlan: "refuse",
    RejectPlan: "refuse",
    AssignTask: "refuse",
    StartTask: "refuse",
    CompleteTask: "refuse",
    FailTask: "refuse",
    CheckBaseline: "refuse",
    ReleaseTask: "refuse",
    ReturnTask: "refuse",
    ReopenTask: "refuse",
    AddTask: "refuse",
    EditTask: "refuse",
    DropTask: "refuse",
    RetryTask: "refuse",
    ReassignTask: "refuse",
    ReorderTask: "refuse",
    SteerTask: "refuse",
    Suspend: { to: "goal_received", runes: suspend },
    Resume: { to: "goal_received", runes: resume },
    BeginReview: "refuse",
    Block: "refuse",
    ResolveDependency: "refuse",
    FindIssues: "refuse",
    PassCritique: "refuse",
    NeedReplan: "refuse",
    ExhaustBudget: stopped,
    GiveUp: "refuse",
    Cancel: stopped,
    BreakLoop: stopped
  },
  planning: {
    DecomposeGoal: "refuse",
    CreatePlan: { to: "planning", runes: write("plan.created") },
    UpdatePlan: { to: "planning", runes: write("plan.updated") },
    ApprovePlan: { to: "executing", runes: write("plan.approved") },
    RejectPlan: { to: "goal_received", runes: write("plan.rejected") },
    AssignTask: "refuse",
    StartTask: "refuse",
    CompleteTask: "refuse",
    FailTask: "refuse",
    CheckBaseline: { to: "planning", runes: checkBaseline },
    ReleaseTask: "refuse",
    ReturnTask: "refuse",
    ReopenTask: "refuse",
    AddTask: { to: "planning", runes: addTask },
    EditTask: { to: "planning", runes: editTask },
    DropTask: { to: "planning", runes: dropTask },
    RetryTask: "refuse",
    ReassignTask: "refuse",
    ReorderTask: { to: "planning", runes: reorderTask },
    SteerTask: "refuse",
    Suspend: { to: "planning", runes: suspend },
    Resume: { to: "planning", runes: resume },
    BeginReview: "refuse",
    Block: "refuse",
    ResolveDependency: "refuse",
    FindIssues: "refuse",
    PassCritique: "refuse",
    NeedReplan: "refuse",
    ExhaustBudget: stopped,
    GiveUp: "refuse",
    Cancel: stopped,
    BreakLoop: stopped
  },
  executing: {
    DecomposeGoal: "refuse",
    CreatePlan: "refuse",
    UpdatePlan: { to: "executing", runes: write("plan.updated") },
    ApprovePlan: "refuse",
    RejectPlan: "refuse",
    AssignTask: { to: "executing", runes: write("plan.task_assigned") },
    StartTask: { to: "executing", runes: write("plan.task_started") },
    CompleteTask: { to: "executing", runes: completeTask },
    FailTask: { to: "executing", runes: failTask },
    CheckBaseline: { to: "executing", runes: checkBaseline },
    ReleaseTask: { to: "executing", runes: releaseTask },
    ReturnTask: { to: "executing", runes: returnTask },
    ReopenTask: { to: "executing", runes: write("plan.task_reopened") },
    AddTask: { to: "executing", runes: addTask },
    EditTask: { to: "executing", runes: editTask },
    DropTask: { to: "executing", runes: dropTask },
    RetryTask: { to: "executing", runes: retryTask },
    ReassignTask: { to: "executing", runes: reassignTask },
    ReorderTask: { to: "executing", runes: reorderTask },
    SteerTask: { to: "executing", runes: steerTask },
    Suspend: { to: "executing", runes: suspend },
    Resume: { to: "executing", runes: resume },
    BeginReview: { to: "reviewing", runes: write("plan.review_started") },
    Block: { to: "blocked", runes: write("plan.blocked") },
    ResolveDependency: "refuse",
    FindIssues: "refuse",
    PassCritique: "refuse",
    NeedReplan: "refuse",
    ExhaustBudget: stopped,
    GiveUp: "refuse",
    Cancel: stopped,
    BreakLoop: stopped
  },
  blocked: {
    DecomposeGoal: "refuse",
    CreatePlan: "refuse",
    UpdatePlan: { to: "blocked", runes: write("plan.updated") },
    ApprovePlan: "refuse",
    RejectPlan: "refuse",
    AssignTask: "refuse",
    StartTask: "refuse",
    CompleteTask: { to: "blocked", runes: completeTask },
    FailTask: { to: "blocked", runes: failTask },
    CheckBaseline: "refuse",
    ReleaseTask: { to: "blocked", runes: releaseTask },
    ReturnTask: { to: "blocked", runes: returnTask },
    ReopenTask: "refuse",
    AddTask: { to: "blocked", runes: addTask },
    EditTask: { to: "blocked", runes: editTask },
    DropTask: { to: "blocked", runes: dropTask },
    RetryTask: { to: "blocked", runes: retryTask },
    ReassignTask: { to: "blocked", runes: reassignTask },
    ReorderTask: { to: "blocked", runes: reorderTask },
    SteerTask: { to: "blocked", runes: steerTask },
    Suspend: { to: "blocked", runes: suspend },
    Resume: { to: "blocked", runes: resume },
    BeginReview: "refuse",
    Block: "refuse",
    ResolveDependency: { to: "executing", runes: write("plan.unblocked") },
    FindIssues: "refuse",
    PassCritique: "refuse",
    NeedReplan: "refuse",
    ExhaustBudget: stopped,
    GiveUp: stopped,
    Cancel: stopped,
    BreakLoop: stopped
  },
  reviewing: {
    DecomposeGoal: "refuse",
    CreatePlan: "refuse",
    UpdatePlan: "refuse",
    ApprovePlan: "refuse",
    RejectPlan: "refuse",
    AssignTask: "refuse",
    StartTask: "refuse",
    CompleteTask: "refuse",
    FailTask: "refuse",
    CheckBaseline: "refuse",
    ReleaseTask: "refuse",
    ReturnTask: "refuse",
    ReopenTask: "refuse",
    AddTask: { to: "executing", runes: addTask },
    EditTask: { to: "executing", runes: editTask },
    DropTask: { to: "executing", runes: dropTask },
    RetryTask: { to: "executing", runes: retryTask },
    ReassignTask: { to: "executing", runes: reassignTask },
    ReorderTask: { to: "reviewing", runes: reorderTask },
    SteerTask: "refuse",
    Suspend: { to: "reviewing", runes: suspend },
    Resume: { to: "reviewing", runes: resume },
    BeginReview: "refuse",
    Block: "refuse",
    ResolveDependency: "refuse",
    FindIssues: { to: "executing", runes: write("plan.critique") },
    PassCritique: { to: "goal_met", runes: passCritique },
    NeedReplan: { to: "planning", runes: write("plan.critique") },
    ExhaustBudget: stopped,
    GiveUp: "refuse",
    Cancel: stopped,
    BreakLoop: stopped
  },
  goal_met: over,
  stopped: over
}

export const autonomy: Machine<AutonomyStatus, AutonomyCommand> = {
  name: "Autonomy",
  initial: "goal_received",
  terminal: ["goal_met", "stopped"],
  table
}

/** What a person changes while a critic looks is worked on first; the review begins anew. */
const changed = (from: AutonomyStatus): AutonomyStatus => (from === "reviewing" ? "executing" : from)

const verdictLands = { pass: "reviewing", retry: "executing", replan: "planning" } as const

/** Where a rune of this plan leaves the loop. */
export const autonomyLands = (from: AutonomyStatus, rune: Rune): AutonomyStatus => {
  switch (rune.kind) {
    case "plan.goal_received":
    case "plan.rejected":
      return "goal_received"
    case "plan.planning_started":
      return "planning"
    case "plan.approved":
    case "plan.unblocked":
      return "executing"
    case "plan.task_added":
    case "plan.task_edited":
    case "plan.task_dropped":
    case "plan.task_retried":
    case "plan.task_reassigned":
      return changed(from)
    case "plan.review_started":
      return "reviewing"
    case "plan.blocked":
      return "blocked"
    case "plan.critique":
      return verdictLands[rune.payload.verdict]
    case "plan.goal_met":
      return "goal_met"
    case "plan.stopped":
      return "stopped"
    default:
      return from
  }
}
