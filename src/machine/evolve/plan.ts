/** How plan runes change the state of the goal being pursued; the newest goal is the one. */
import type { Kind } from "../../rune/Kinds.ts"
import type { PlanChange, PlanTask } from "../../rune/kinds/plan.ts"
import type { RuneOf } from "../../rune/Rune.ts"
import { autonomyLands } from "../Autonomy.ts"
import type { MutableConversation, MutablePlan, MutableTask } from "../State.ts"
import type { Handlers } from "./Parts.ts"

type PlanKind = Extract<Kind, `plan.${string}`>

const newPlan = ({ payload }: RuneOf<"plan.goal_received">): MutablePlan => ({
  plan_id: payload.plan_id,
  status: "goal_received",
  goal: payload.goal,
  auto_start: payload.auto_start,
  max_parallel: payload.max_parallel ?? null,
  budget: payload.budget ?? null,
  revision: 0,
  tasks: [],
  blocked_task_ids: [],
  iterations: 0,
  replans: 0,
  last_verdict: null,
  reason: null
})

const newTask = (task: PlanTask): MutableTask => ({ task, status: "pending", agent_id: null, attempts: 0 })

const applyChange = (plan: MutablePlan, change: PlanChange): void => {
  if (change.type === "task_added") {
    plan.tasks.push(newTask(change.task))
    return
  }
  const id = change.type === "task_changed" ? change.task.task_id : change.task_id
  const found = plan.tasks.find((one) => one.task.task_id === id)
  if (found === undefined) return
  if (change.type === "task_cancelled") found.status = "cancelled"
  else Object.assign(found, newTask(change.task))
}

/** Runs `apply` on the plan the rune speaks of, after its status has moved. */
const onPlan =
  <K extends PlanKind>(apply: (plan: MutablePlan, rune: RuneOf<K>) => void) =>
  (state: MutableConversation, rune: RuneOf<K>): void => {
    const plan = state.plan
    if (plan === null || plan.plan_id !== rune.payload.plan_id) return
    plan.status = autonomyLands(plan.status, rune)
    apply(plan, rune)
  }

const onTask = <K extends "plan.task_assigned" | "plan.task_started" | "plan.task_completed" | "plan.task_failed">(
  apply: (task: MutableTask, rune: RuneOf<K>) => void
) =>
  onPlan<K>((plan, rune) => {
    const found = plan.tasks.find((one) => one.task.task_id === rune.payload.task_id)
    if (found !== undefined) apply(found, rune)
  })

export const planHandlers: Handlers<"plan"> = {
  "plan.goal_received": (state, rune) => {
    state.plan = newPlan(rune)
  },
  "plan.planning_started": onPlan(() => undefined),
  "plan.created": onPlan((plan, rune) => {
    plan.tasks = rune.payload.tasks.map(newTask)
    plan.revision = rune.payload.revision ?? plan.revision + 1
  }),
  "plan.updated": onPlan((plan, rune) => {
    for (const change of rune.payload.changes) applyChange(plan, change)
  }),
  "plan.approved": onPlan(() => undefined),
  "plan.rejected": onPlan((plan, rune) => {
    plan.reason = rune.payload.reason
  }),
  "plan.task_assigned": onTask((task, rune) => {
    task.status = "assigned"
    task.agent_id = rune.payload.agent_id
  }),
  "plan.task_started": onTask((task, rune) => {
    task.status = "running"
    task.attempts = rune.payload.attempt
  }),
  "plan.task_completed": onTask((task) => {
    task.status = "completed"
  }),
  "plan.task_failed": onTask((task) => {
    task.status = "failed"
  }),
  "plan.review_started": onPlan((plan, rune) => {
    plan.iterations = rune.payload.iteration
  }),
  "plan.critique": onPlan((plan, rune) => {
    plan.last_verdict = rune.payload.verdict
    if (rune.payload.verdict === "replan") plan.replans += 1
  }),
  "plan.blocked": onPlan((plan, rune) => {
    plan.blocked_task_ids = rune.payload.task_ids
    plan.reason = rune.payload.reason
  }),
  "plan.unblocked": onPlan((plan) => {
    plan.blocked_task_ids = []
    plan.reason = null
  }),
  "plan.goal_met": onPlan(() => undefined),
  "plan.stopped": onPlan((plan, rune) => {
    plan.reason = rune.payload.reason
  })
}
