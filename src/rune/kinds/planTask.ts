/** Runes of what a person changes about single tasks while their goal is pursued. */
import * as Schema from "effect/Schema"
import { AgentId, PlanId, TaskId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { PlanTask, TaskPriority } from "./plan.ts"
import { Content, Name } from "./shared.ts"

const optional = Schema.optionalKey
const of = { plan_id: PlanId, task_id: TaskId, principal: optional(Schema.String) }

export const planTaskKinds = [
  defineKind("plan.task_added", {
    meaning: "A person added a task.",
    payload: Schema.Struct({
      ...of,
      task: PlanTask,
      /** In front of this one; at the end where it is left out. */
      before: optional(TaskId)
    })
  }),
  defineKind("plan.task_edited", {
    meaning: "A person changed a task; it is done again as it is now.",
    payload: Schema.Struct({ ...of, task: PlanTask })
  }),
  defineKind("plan.task_dropped", {
    meaning: "A person dropped a task; nothing waits for it any more.",
    payload: Schema.Struct({ ...of, reason: Schema.String })
  }),
  defineKind("plan.task_retried", {
    meaning: "A person has a task done again, with all its attempts.",
    payload: Schema.Struct({ ...of, reason: Schema.String })
  }),
  defineKind("plan.task_reassigned", {
    meaning: "A person gave a task to another worker.",
    payload: Schema.Struct({ ...of, reason: Schema.String, model: optional(Name), role: optional(Name) })
  }),
  defineKind("plan.task_reordered", {
    meaning: "A person moved a task in front of another one, or to the end.",
    payload: Schema.Struct({ ...of, before: optional(TaskId), priority: optional(TaskPriority) })
  }),
  defineKind("plan.task_steered", {
    meaning: "A person said something to the worker of a task.",
    payload: Schema.Struct({ ...of, agent_id: AgentId, content: Content })
  })
] as const
