/** What the handlers of plan runes share: the plan or task a rune speaks of, and how a task begins, changes and is tried. */
import type { Kind } from "../../rune/Kinds.ts"
import type { PlanTask } from "../../rune/kinds/plan.ts"
import type { ErrorInfo } from "../../rune/kinds/shared.ts"
import type { RuneOf } from "../../rune/Rune.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableConversation, MutablePlan, MutableTask } from "../State.ts"
import { autonomyLands } from "../table/Autonomy.ts"
import { pushBounded } from "./Parts.ts"

type PlanKind = Extract<Kind, `plan.${string}`>

export const newTask = (task: PlanTask, nth: number): MutableTask => ({
  task,
  status: "pending",
  agent_id: null,
  attempts: 0,
  starts: 0,
  failure: null,
  result: null,
  evidence: [],
  note: null,
  tries: [],
  returns: 0,
  reopens: 0,
  regressions: [],
  tree: null,
  completed_event_id: null,
  nth
})

/** What was tried before is remembered, whatever the task is now. */
export const changeTask = (found: MutableTask, task: PlanTask): void => {
  const { nth, reopens, starts, tries } = found
  Object.assign(found, newTask(task, nth), { starts, tries, reopens })
}

/** Runs `apply` on the plan the rune speaks of, after its status has moved. */
export const onPlan =
  <K extends PlanKind>(apply: (plan: MutablePlan, rune: RuneOf<K>, state: MutableConversation) => void) =>
  (state: MutableConversation, rune: RuneOf<K>): void => {
    const plan = state.plan
    if (plan === null || plan.plan_id !== rune.payload.plan_id) return
    plan.status = autonomyLands(plan.status, rune)
    apply(plan, rune, state)
  }

export type TaskKind = Extract<PlanKind, `plan.task_${string}`>

export const onTask = <K extends TaskKind>(
  apply: (task: MutableTask, rune: RuneOf<K>, plan: MutablePlan, state: MutableConversation) => void
) =>
  onPlan<K>((plan, rune, state) => {
    const found = plan.tasks.find((one) => one.task.task_id === rune.payload.task_id)
    if (found !== undefined) apply(found, rune, plan, state)
  })

export const tried = (task: MutableTask, error: ErrorInfo, how: { readonly counted: boolean }): void => {
  const { code, message } = error
  const cut = message.slice(0, limits.tryCharsMax).toWellFormed()
  pushBounded(task.tries, { agent_id: task.agent_id, ...how, code, message: cut }, limits.triesKeptMax)
}
