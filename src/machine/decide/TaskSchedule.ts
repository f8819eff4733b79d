/**
 * Which tasks of a plan may run now. A pure function of the plan: dependencies
 * first, then priority, then age; never more at once than the goal allows. A task
 * that failed runs again until its attempts are used up, and then holds back
 * whatever depends on it.
 */
import type { AgentId, PlanId, TaskId } from "../../rune/Ids.ts"
import { limits } from "../MachineLimits.ts"
import type { PlanState, TaskState } from "../State.ts"

/** Who approves a plan, or sends it back, where no person does. */
export const serverName = "auto_start"

/** What scheduling looks at. */
export type Schedulable = Pick<PlanState, "tasks" | "max_parallel">

const idPart = (planId: PlanId): string => planId.slice("plan_".length, "plan_".length + 32)

/** Ids of a goal's agents follow from the plan: whoever works on it twice finds the same ones. */
export const orchestratorIdOf = (planId: PlanId): AgentId => `agt_${idPart(planId)}lead` as AgentId

export const workerIdOf = (plan: PlanState, task: TaskState): AgentId => {
  const place = `r${plan.revision}t${task.nth}s${task.starts + 1}`
  return `agt_${idPart(plan.plan_id)}${place}` as AgentId
}

export const criticIdOf = (planId: PlanId, iteration: number): AgentId =>
  `agt_${idPart(planId)}review${iteration}` as AgentId

const urgency = { critical: 0, high: 1, medium: 2, low: 3 } as const

export const isActive = (task: TaskState): boolean => task.status === "assigned" || task.status === "running"

/** Its work conflicted again after its worker had both sides: it is merged before anything else moves. */
export const mergesAlone = (task: TaskState): boolean => isActive(task) && task.returns >= limits.mergesAloneAfter

/** It failed and is not tried again. */
export const isLost = (task: TaskState): boolean => task.status === "failed" && task.attempts >= limits.taskAttemptsMax

/** Completed, or no longer wanted: nothing waits for it any more. */
export const isDone = (task: TaskState): boolean => task.status === "completed" || task.status === "cancelled"

const mayTry = (task: TaskState): boolean => task.status === "pending" || (task.status === "failed" && !isLost(task))

const doneIds = (plan: Schedulable): ReadonlySet<string> =>
  new Set(plan.tasks.filter(isDone).map((one) => one.task.task_id))

/** Every task that could run if there were room, the most urgent first, then the oldest. */
export const readyTasks = (plan: Schedulable): ReadonlyArray<TaskState> => {
  const done = doneIds(plan)
  return plan.tasks
    .filter((one) => mayTry(one) && one.task.depends_on.every((id) => done.has(id)))
    .sort((left, right) => urgency[left.task.priority] - urgency[right.task.priority])
}

/** The tasks to start now. */
export const nextTasks = (plan: Schedulable): ReadonlyArray<TaskState> => {
  if (plan.tasks.some(mergesAlone)) return []
  const room = (plan.max_parallel ?? limits.tasksParallel) - plan.tasks.filter(isActive).length
  return room <= 0 ? [] : readyTasks(plan).slice(0, room)
}

export type Outlook =
  | { readonly _tag: "Start"; readonly tasks: ReadonlyArray<TaskState> }
  /** All that can run does. */
  | { readonly _tag: "Wait" }
  | { readonly _tag: "Finished" }
  /** Nothing that is left can run. */
  | { readonly _tag: "Stuck"; readonly task_ids: ReadonlyArray<TaskId>; readonly reason: string }

const stuckReason = (plan: Schedulable, waiting: ReadonlyArray<TaskState>): string => {
  const wanted = new Set<string>(waiting.flatMap((one) => one.task.depends_on))
  const known = new Set<string>(plan.tasks.map((one) => one.task.task_id))
  const lost = plan.tasks.filter((one) => isLost(one) && wanted.has(one.task.task_id))
  const missing = [...wanted].filter((id) => !known.has(id))
  const causes = [
    ...lost.map(
      (one) => `${one.task.task_id} failed ${one.attempts} times: ${one.failure?.message ?? "no reason given"}`
    ),
    ...missing.map((id) => `there is no task ${id}`)
  ]
  const ids = waiting.map((one) => one.task.task_id).join(", ")
  return `${ids} cannot run: ${causes.length === 0 ? "they wait for each other" : causes.join("; ")}`
}

/** How the execution of the plan goes on. */
export const outlook = (plan: Schedulable): Outlook => {
  const tasks = nextTasks(plan)
  if (tasks.length > 0) return { _tag: "Start", tasks }
  if (plan.tasks.some(isActive)) return { _tag: "Wait" }
  const waiting = plan.tasks.filter((one) => !isDone(one) && !isLost(one))
  if (waiting.length === 0) return { _tag: "Finished" }
  return {
    _tag: "Stuck",
    task_ids: waiting.map((one) => one.task.task_id),
    reason: stuckReason(plan, waiting).slice(0, limits.taskResultCharsMax)
  }
}
