// Plans to measure with: random graphs of tasks without a cycle, the same ones each time.
import type { TaskId } from "#src/rune/Ids.ts"
import type { PlanTask } from "#src/rune/kinds/plan.ts"
import { randomFrom } from "../../support/seed.ts"

const priorities = ["critical", "high", "medium", "low"] as const

/** Every task depends on up to three of the twenty before it: long chains, and always some that may run. */
export const makeTasks = (count: number): ReadonlyArray<PlanTask> => {
  const random = randomFrom(7)
  return Array.from({ length: count }, (_, index) => {
    const reach = Math.min(20, index)
    const wanted = reach === 0 ? 0 : Math.floor(random() * 4)
    const after = Array.from({ length: wanted }, () => `t${index - 1 - Math.floor(random() * reach)}` as TaskId)
    return {
      task_id: `t${index}` as TaskId,
      title: `task ${index}`,
      instructions: `do the work of task ${index}`,
      depends_on: [...new Set(after)],
      priority: priorities[Math.floor(random() * 4)]!
    }
  })
}
