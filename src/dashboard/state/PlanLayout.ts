// Where the tasks of a plan are drawn: a column for each step of dependence, rows in the order of the plan. A dependence
// that goes in a circle, or names nobody, does not move a task.
import type { PlanTask } from "./PlanLabels.ts"

export interface PlacedTask {
  readonly item: PlanTask
  readonly column: number
  readonly row: number
}

export interface PlanLayout {
  readonly tasks: ReadonlyArray<PlacedTask>
  readonly edges: ReadonlyArray<{ readonly from: PlacedTask; readonly to: PlacedTask }>
  readonly columns: number
  readonly rows: number
}

const columnsOf = (tasks: ReadonlyArray<PlanTask>): ReadonlyMap<string, number> => {
  const byId = new Map(tasks.map((item) => [item.task.task_id as string, item]))
  const columns = new Map<string, number>()
  const open = new Set<string>()
  const columnOf = (id: string): number => {
    const known = columns.get(id)
    if (known !== undefined) return known
    if (open.has(id)) return 0
    open.add(id)
    const before = (byId.get(id)?.task.depends_on ?? []).filter((one) => byId.has(one)).map((one) => columnOf(one) + 1)
    open.delete(id)
    const column = Math.max(0, ...before)
    columns.set(id, column)
    return column
  }
  for (const id of byId.keys()) columnOf(id)
  return columns
}

export const layoutPlan = (tasks: ReadonlyArray<PlanTask>): PlanLayout => {
  const columns = columnsOf(tasks)
  const used = new Map<number, number>()
  const placed = tasks.map((item): PlacedTask => {
    const column = columns.get(item.task.task_id) ?? 0
    const row = used.get(column) ?? 0
    used.set(column, row + 1)
    return { item, column, row }
  })
  const byId = new Map(placed.map((one) => [one.item.task.task_id as string, one]))
  const edges = placed.flatMap((to) =>
    to.item.task.depends_on.flatMap((id) => {
      const from = byId.get(id)
      return from === undefined ? [] : [{ from, to }]
    })
  )
  return { tasks: placed, edges, columns: Math.max(0, ...columns.values()) + 1, rows: Math.max(0, ...used.values()) }
}
