// Operations on single tasks of a goal, while it is pursued.
import * as Schema from "effect/Schema"
import { PlanId, TaskId } from "../../rune/Ids.ts"
import { EvidenceSpec } from "../../rune/kinds/evidence.ts"
import { TaskPriority } from "../../rune/kinds/plan.ts"
import { Name, Ordinal } from "../../rune/kinds/shared.ts"
import { Changed } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { because, conversation, optional } from "./fields.ts"

const of = { plan_id: PlanId, task_id: TaskId, revision: optional(Ordinal) }
const aTask = { ...conversation, ...of }
const withReason = { ...because, ...of }

const chosen = {
  depends_on: optional(Schema.Array(TaskId)),
  priority: optional(TaskPriority),
  role: optional(Name),
  model: optional(Name),
  success_criteria: optional(Schema.Array(Schema.String))
}

export const taskOperations = [
  defineOperation({
    name: "plan.task.add",
    role: "operator",
    mutates: true,
    input: {
      ...aTask,
      title: Name,
      instructions: Name,
      evidence: Schema.Array(EvidenceSpec),
      ...chosen,
      before: optional(TaskId)
    },
    answer: Changed,
    about:
      "Adds a task while the goal is pursued, in front of `before` or at the end. `evidence` is the person's: giving a command is a yes to it. `bad_request` when the id is taken, a dependency unknown, tasks would wait for each other, or nothing would show that it is done. A review that is under way begins anew afterwards."
  }),
  defineOperation({
    name: "plan.task.edit",
    role: "operator",
    mutates: true,
    input: {
      ...aTask,
      title: optional(Name),
      instructions: optional(Name),
      evidence: optional(Schema.Array(EvidenceSpec)),
      ...chosen
    },
    answer: Changed,
    about:
      "Changes a task; what is left out stays. It is done as it is now, by a new worker: whoever works on it is ended, and what was changed in a worktree is kept in a ref. In a plan that waits for approval, `revision` goes up."
  }),
  defineOperation({
    name: "plan.task.drop",
    role: "operator",
    mutates: true,
    input: withReason,
    answer: Changed,
    about: "Drops a task and ends its worker. Tasks that depend on it wait for it no longer."
  }),
  defineOperation({
    name: "plan.task.retry",
    role: "operator",
    mutates: true,
    input: withReason,
    answer: Changed,
    about:
      "Has a task done again that failed, was dropped or is completed, with all its attempts; the next worker is told `reason`. `invalid_state` while it is not over."
  }),
  defineOperation({
    name: "plan.task.reassign",
    role: "operator",
    mutates: true,
    input: { ...withReason, model: optional(Name), role: optional(Name) },
    answer: Changed,
    about:
      "Gives a task that is not over to another worker, with another `model` or `role` if named; costs no attempt. `invalid_state` when it is completed or dropped."
  }),
  defineOperation({
    name: "plan.task.reorder",
    role: "operator",
    mutates: true,
    input: { ...aTask, before: optional(TaskId), priority: optional(TaskPriority) },
    answer: Changed,
    about:
      "Moves a task in front of `before`, or to the end. It takes on the priority of the task it is in front of, unless `priority` says otherwise. Dependencies still come first."
  }),
  defineOperation({
    name: "plan.task.steer",
    role: "operator",
    mutates: true,
    input: { ...aTask, content: Name },
    answer: Changed,
    about:
      "Says something to the worker of a task, in its running turn. `steers` of the plan in `conversation.get` names the answer of the model that had read it. `invalid_state` when nobody works on it."
  })
] as const
