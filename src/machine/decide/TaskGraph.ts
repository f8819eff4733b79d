/** Whether tasks can be done in some order: which wait for each other, directly or by way of others. */
import type { PlanTask } from "../../rune/kinds/plan.ts"

/** Tasks that wait for each other, in order, the first one again at the end; nothing when there are none. */
export const cycleOf = (
  tasks: ReadonlyArray<Pick<PlanTask, "task_id" | "depends_on">>
): ReadonlyArray<string> | undefined => {
  const left = new Map<string, ReadonlyArray<string>>(tasks.map((one) => [one.task_id, one.depends_on]))
  const needed = new Map<string, number>(
    tasks.map((one) => [one.task_id, one.depends_on.filter((id) => left.has(id)).length])
  )
  const dependants = new Map<string, Array<string>>()
  for (const one of tasks)
    for (const id of one.depends_on) dependants.set(id, [...(dependants.get(id) ?? []), one.task_id])
  const free = [...needed].filter(([, count]) => count === 0).map(([id]) => id)
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    left.delete(id)
    for (const next of dependants.get(id) ?? []) {
      const count = (needed.get(next) ?? 0) - 1
      needed.set(next, count)
      if (count === 0) free.push(next)
    }
  }
  const first = left.keys().next().value
  if (first === undefined) return undefined
  return walkRound(left, first)
}

/** Everything that is left depends on something that is left, so the walk comes round. */
const walkRound = (left: ReadonlyMap<string, ReadonlyArray<string>>, first: string): ReadonlyArray<string> => {
  const path: Array<string> = []
  let next: string | undefined = first
  while (next !== undefined && !path.includes(next)) {
    path.push(next)
    next = left.get(next)?.find((id) => left.has(id))
  }
  const at = next ?? first
  return [...path.slice(path.indexOf(at)), at]
}
