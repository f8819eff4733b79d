// Single tasks of a goal over the wire, while it is pursued: added, edited, dropped, retried, reassigned, moved, and their
// workers spoken to. Each is one command, and answers when what it caused is durable.
import type { ConversationId, PlanId, TaskId } from "../../rune/Ids.ts"
import type { AnswerOf } from "../../wire/Operations.ts"
import { type Command, CurrentOperation, change, type HandlersOf, type Operating } from "./CurrentOperation.ts"

type TaskChange = Extract<Command, { readonly _tag: "ChangeTask" }>["change"]

interface OfTask {
  readonly conversation_id: ConversationId
  readonly plan_id: PlanId
  readonly task_id: TaskId
  readonly revision?: number
}

const changed = (of: OfTask, asked: TaskChange): Operating<AnswerOf<"plan.task.add">> =>
  CurrentOperation.use(({ principal }) => {
    const { conversation_id: id, plan_id, revision, task_id } = of
    const seen = revision === undefined ? {} : { revision }
    return change(id, { _tag: "ChangeTask", plan_id, task_id, ...seen, change: asked, principal: principal.name })
  })

export const taskHandlers: HandlersOf<"plan.task"> = {
  "plan.task.add": ({
    before,
    conversation_id,
    depends_on = [],
    plan_id,
    priority = "medium",
    revision,
    task_id,
    ...task
  }) =>
    changed(
      { conversation_id, plan_id, task_id, ...(revision === undefined ? {} : { revision }) },
      { type: "add", task: { ...task, depends_on, priority }, ...(before === undefined ? {} : { before }) }
    ),
  "plan.task.edit": ({ conversation_id, plan_id, revision, task_id, ...fields }) =>
    changed(
      { conversation_id, plan_id, task_id, ...(revision === undefined ? {} : { revision }) },
      { type: "edit", fields }
    ),
  "plan.task.drop": (fields) => changed(fields, { type: "drop", reason: fields.reason ?? "not needed" }),
  "plan.task.retry": (fields) => changed(fields, { type: "retry", reason: fields.reason ?? "" }),
  "plan.task.reassign": (fields) => {
    const { model, reason = "", role } = fields
    const chosen = { ...(model === undefined ? {} : { model }), ...(role === undefined ? {} : { role }) }
    return changed(fields, { type: "reassign", reason, ...chosen })
  },
  "plan.task.reorder": (fields) => {
    const { before, priority } = fields
    const where = { ...(before === undefined ? {} : { before }), ...(priority === undefined ? {} : { priority }) }
    return changed(fields, { type: "reorder", ...where })
  },
  "plan.task.steer": (fields) => changed(fields, { type: "steer", content: fields.content })
}
