/**
 * Deciding about single tasks while their goal is pursued: a person adds, edits, drops, retries, reassigns or moves one, or
 * speaks to its worker. Whoever works on a task that changes is ended, with what it did kept, and the task begins anew.
 */
import { specIssue } from "../../rune/Demands.ts"
import type { TaskId } from "../../rune/Ids.ts"
import type { PlanTask } from "../../rune/kinds/plan.ts"
import type { PlanRequest, TaskChange } from "../Command.ts"
import { limits } from "../MachineLimits.ts"
import type { PlanState, TaskState } from "../State.ts"
import { type AutonomyCommand, autonomy } from "../table/Autonomy.ts"
import { agentOf, isAlive } from "../view/Select.ts"
import type { Drafting } from "./Drafting.ts"
import { endAgent } from "./Ending.ts"
import { messageDeciders } from "./message.ts"
import { cycleOf } from "./TaskGraph.ts"
import { isActive } from "./TaskSchedule.ts"

type Request = Extract<PlanRequest, { readonly _tag: "ChangeTask" }>
type Of<Type extends TaskChange["type"]> = Extract<TaskChange, { readonly type: Type }>

interface Asked {
  readonly plan: PlanState
  readonly ids: { readonly plan_id: PlanState["plan_id"]; readonly task_id: TaskId; readonly principal?: string }
}

/** What is wrong with the tasks of the plan as they would be. */
const graphIssue = (plan: PlanState, task: PlanTask): string | undefined => {
  const others = plan.tasks.map((one) => one.task).filter((one) => one.task_id !== task.task_id)
  const known = new Set<string>(others.map((one) => one.task_id))
  const missing = task.depends_on.find((id) => !known.has(id))
  if (missing !== undefined) return `${task.task_id} would wait for ${missing}, and there is no such task`
  const cycle = cycleOf([...others, task])
  return cycle === undefined ? undefined : `these tasks would wait for each other: ${cycle.join(" → ")}`
}

const evidenceIssue = ({ evidence = [] }: Pick<PlanTask, "evidence">): string | undefined => {
  const issues = evidence.map((spec, at) => [at, specIssue(spec)] as const)
  const [at, issue] = issues.find(([, one]) => one !== undefined) ?? []
  return issue === undefined ? undefined : `evidence[${at}]: ${issue}`
}

const requireSound = (sheet: Drafting, plan: PlanState, task: PlanTask): undefined => {
  const issue = evidenceIssue(task) ?? graphIssue(plan, task)
  if (issue !== undefined) sheet.refuse("bad_request", issue)
}

const add = (sheet: Drafting, { ids, plan }: Asked, change: Of<"add">): AutonomyCommand => {
  const task: PlanTask = { ...change.task, task_id: ids.task_id, origin: "person" }
  const before = change.before === undefined ? {} : { before: change.before }
  if (plan.tasks.some((one) => one.task.task_id === ids.task_id)) {
    sheet.refuse("bad_request", `there is a task ${ids.task_id} already: edit it, or give the new one another id`)
  }
  if (plan.tasks.length + 1 >= limits.planTasksMax) {
    const message = `a plan has fewer than ${limits.planTasksMax} tasks: drop nothing, submit another goal`
    sheet.refuse("limit_exceeded", message, { limit: limits.planTasksMax })
  }
  if ((task.evidence ?? []).length === 0) {
    sheet.refuse("bad_request", `${ids.task_id} names no evidence: say how the server can see that it is done`)
  }
  requireSound(sheet, plan, task)
  return { _tag: "AddTask", payload: { ...ids, task, ...before } }
}

const edit = (sheet: Drafting, { ids, plan }: Asked, { fields }: Of<"edit">, found: TaskState): AutonomyCommand => {
  const isTheirs = fields.evidence !== undefined
  const task = { ...found.task, ...fields, ...(isTheirs ? { origin: "person" as const } : {}) } as PlanTask
  if (Object.keys(fields).length === 0) sheet.refuse("bad_request", "name what is to be changed about the task")
  if (isTheirs && fields.evidence.length === 0) {
    sheet.refuse("bad_request", `${ids.task_id} would have no evidence: say how the server can see that it is done`)
  }
  requireSound(sheet, plan, task)
  return { _tag: "EditTask", payload: { ...ids, task } }
}

const over: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"])

const requireStatus = (sheet: Drafting, found: TaskState, isFit: boolean, why: string): undefined => {
  const { status, task } = found
  if (!isFit) sheet.refuse("invalid_state", `${task.task_id} is ${status}: ${why}`, { state: status })
}

const reorder = (sheet: Drafting, { ids, plan }: Asked, change: Of<"reorder">, found: TaskState): AutonomyCommand => {
  const { before } = change
  const next = plan.tasks.find((one) => one.task.task_id === before)
  if (before !== undefined && next === undefined) sheet.refuse("not_found", `no task ${before} in ${plan.plan_id}`)
  if (before === ids.task_id) sheet.refuse("bad_request", `${before} cannot be in front of itself`)
  // In front of a more urgent one means as urgent, or it would still run after it.
  const priority = change.priority ?? next?.task.priority ?? found.task.priority
  return { _tag: "ReorderTask", payload: { ...ids, ...(before === undefined ? {} : { before }), priority } }
}

const steer = (sheet: Drafting, { ids, plan }: Asked, { content }: Of<"steer">, found: TaskState): undefined => {
  const { agent_id: agentId } = found
  const agent = agentId === null || !isActive(found) ? undefined : agentOf(sheet.state, agentId)
  if (agent === undefined || !isAlive(agent)) {
    return requireStatus(sheet, found, false, "nobody works on it; edit the task instead")
  }
  const { agent_id } = agent
  sheet.step(autonomy, plan.status, { _tag: "SteerTask", payload: { ...ids, agent_id, content } })
  const who = ids.principal === undefined ? {} : { principal: ids.principal }
  messageDeciders.PostMessage(sheet, { _tag: "PostMessage", agent_id, content, mode: "steer", ...who })
}

const stepOf = (
  sheet: Drafting,
  asked: Asked,
  change: Exclude<TaskChange, Of<"steer">>,
  found: TaskState
): AutonomyCommand => {
  const { ids } = asked
  switch (change.type) {
    case "add":
      return add(sheet, asked, change)
    case "edit":
      return edit(sheet, asked, change, found)
    case "drop":
      requireStatus(sheet, found, found.status !== "cancelled", "it is dropped already")
      return { _tag: "DropTask", payload: { ...ids, reason: change.reason } }
    case "retry":
      requireStatus(sheet, found, over.has(found.status), "it is not over; reassign it to give it to another worker")
      return { _tag: "RetryTask", payload: { ...ids, reason: change.reason } }
    case "reassign": {
      requireStatus(sheet, found, !isOver(found), "it is over; retry it")
      const { type: _, ...chosen } = change
      return { _tag: "ReassignTask", payload: { ...ids, ...chosen } }
    }
    case "reorder":
      return reorder(sheet, asked, change, found)
  }
}

const isOver = ({ status }: TaskState): boolean => status === "completed" || status === "cancelled"

/** Who stands in the way of the change: the worker of a task that begins anew, and the critic of work that is not final. */
const inTheWay = (plan: PlanState, { _tag }: AutonomyCommand, found: TaskState | undefined) => {
  if (_tag === "ReorderTask") return []
  const worker = found !== undefined && isActive(found) ? [found.agent_id] : []
  return [...worker, plan.status === "reviewing" ? plan.critic_id : null]
}

export const changeTask = (sheet: Drafting, command: Request): undefined => {
  const { change, plan_id: planId, principal, revision, task_id: taskId } = command
  const { plan } = sheet.state
  if (plan === null || plan.plan_id !== planId) return sheet.refuse("not_found", `no plan ${planId}`)
  if (revision !== undefined && revision !== plan.revision) {
    const message = `the plan is at revision ${plan.revision} by now, not ${revision}`
    return sheet.refuse("invalid_state", message, { state: plan.status })
  }
  if (autonomy.terminal.includes(plan.status)) {
    return sheet.refuse("invalid_state", `${planId} is over: submit another goal`, { state: plan.status })
  }
  if (plan.status === "planning" && plan.proposed === null) {
    return sheet.refuse("invalid_state", "there is no plan yet: wait for it", { state: plan.status })
  }
  const found = plan.tasks.find((one) => one.task.task_id === taskId)
  if (found === undefined && change.type !== "add") return sheet.refuse("not_found", `no task ${taskId} in ${planId}`)
  const ids = { plan_id: planId, task_id: taskId, ...(principal === undefined ? {} : { principal }) }
  if (change.type === "steer") return steer(sheet, { plan, ids }, change, found as TaskState)
  const step = stepOf(sheet, { plan, ids }, change, found as TaskState)
  sheet.step(autonomy, plan.status, step)
  for (const id of inTheWay(plan, step, found)) {
    const agent = id === null ? undefined : agentOf(sheet.state, id)
    if (agent !== undefined && isAlive(agent)) endAgent(sheet, agent, { reason: "task_changed", force: true })
  }
}
