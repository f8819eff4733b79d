/** The promises about goals: tasks in order and once, and nothing claimed without its evidence. */
import type { Kind } from "../../rune/Kinds.ts"
import type { Evidence } from "../../rune/kinds/evidence.ts"
import type { PlanTask } from "../../rune/kinds/plan.ts"
import type { Rune, RuneOf } from "../../rune/Rune.ts"
import type { SeenTask, World } from "./World.ts"

type Check<K extends Kind> = (world: World, rune: RuneOf<K>) => void

const add = (world: World, task: PlanTask): void => {
  world.tasks.set(task.task_id, { after: task.depends_on, isStarted: false, isDone: false })
}

const taskOf = (world: World, rune: Rune, taskId: string): SeenTask | undefined => {
  const task = world.tasks.get(taskId)
  if (task === undefined) world.violate("INV-TASK-ORDER", rune, `${taskId} is in no plan`)
  return task
}

const taskStarted: Check<"plan.task_started"> = (world, rune) => {
  const { task_id: id } = rune.payload
  const task = taskOf(world, rune, id)
  if (task === undefined) return
  if (task.isDone) world.violate("INV-TASK-ORDER", rune, `${id} was done already`)
  const early = task.after.filter((other) => world.tasks.get(other)?.isDone !== true)
  if (early.length > 0) world.violate("INV-TASK-ORDER", rune, `${id} starts before ${early.join(", ")}`)
  task.isStarted = true
}

const requireEvidence = (world: World, rune: Rune, evidence: ReadonlyArray<Evidence>): void => {
  const failed = evidence.filter((one) => !one.passed).length
  if (failed > 0) world.violate("INV-GOAL-EVIDENCE", rune, `${failed} of ${evidence.length} checks failed`)
}

const taskCompleted: Check<"plan.task_completed"> = (world, rune) => {
  const { evidence, task_id: id } = rune.payload
  const task = taskOf(world, rune, id)
  if (task === undefined) return
  if (!task.isStarted || task.isDone) world.violate("INV-TASK-ORDER", rune, `${id} is not being worked on`)
  requireEvidence(world, rune, evidence)
  task.isDone = true
}

const planUpdated: Check<"plan.updated"> = (world, rune) => {
  for (const change of rune.payload.changes) {
    if (change.type === "task_added" || change.type === "task_changed") add(world, change.task)
    if (change.type !== "task_cancelled") continue
    const task = world.tasks.get(change.task_id)
    if (task !== undefined) task.isDone = true
  }
}

const openAgain = (world: World, rune: RuneOf<"plan.task_retried" | "plan.task_reopened">): void => {
  const task = taskOf(world, rune, rune.payload.task_id)
  if (task !== undefined) task.isDone = false
}

export const goalChecks: { readonly [K in Kind]?: Check<K> } = {
  "plan.goal_received": (world) => world.tasks.clear(),
  "plan.created": (world, rune) => {
    world.tasks.clear()
    for (const task of rune.payload.tasks) add(world, task)
  },
  "plan.updated": planUpdated,
  "plan.task_added": (world, rune) => add(world, rune.payload.task),
  "plan.task_edited": (world, rune) => add(world, rune.payload.task),
  "plan.task_dropped": (world, rune) => {
    const task = taskOf(world, rune, rune.payload.task_id)
    if (task !== undefined) task.isDone = true
  },
  "plan.task_retried": openAgain,
  "plan.task_reopened": openAgain,
  "plan.task_started": taskStarted,
  "plan.task_completed": taskCompleted,
  "plan.goal_met": (world, rune) => requireEvidence(world, rune, rune.payload.evidence)
}
