// Reads a plan as a model wrote it. What is wrong with it is told all at once and in words the model can act on; a plan
// that comes out of here can be executed: no cycle, no unknown dependency, evidence for every task.
import { cycleOf } from "../machine/decide/TaskGraph.ts"
import type { TaskId } from "../rune/Ids.ts"
import type { EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { PlanTask } from "../rune/kinds/plan.ts"
import { readEvidence } from "./evidence/Reader.ts"
import { limits } from "./GoalLimits.ts"
import { type Checked, Problems } from "./Problems.ts"

type Json = Readonly<Record<string, unknown>>

const priorities: ReadonlySet<unknown> = new Set(["critical", "high", "medium", "low"])

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const evidenceList = (problems: Problems, where: string, value: unknown): ReadonlyArray<EvidenceSpec> => {
  const list = Array.isArray(value) ? value : []
  if (list.length === 0) {
    problems.add(
      where,
      "is missing. Say how it will be shown that the task is done: a command and the exit code it must have, tests that must pass, or a file that must exist"
    )
  }
  if (list.length > limits.evidencePerTaskMax) problems.add(where, `has more than ${limits.evidencePerTaskMax} entries`)
  return list
    .slice(0, limits.evidencePerTaskMax)
    .flatMap((one, index) => readEvidence(problems, `${where}[${index}]`, one) ?? [])
}

const taskId = /^[A-Za-z0-9_.-]{1,64}$/u

/** One task as a model writes it. */
export const taskOf = (problems: Problems, where: string, value: unknown): PlanTask | undefined => {
  if (!isObject(value)) {
    problems.add(where, "must be an object")
    return undefined
  }
  const id = problems.text(`${where}.id`, value["id"])
  if (id !== "" && !taskId.test(id)) problems.add(`${where}.id`, "may have up to 64 letters, digits and . _ -")
  const { model, priority = "medium", role } = value
  if (!priorities.has(priority)) problems.add(`${where}.priority`, "must be critical, high, medium or low")
  const criteria = problems.texts(`${where}.success_criteria`, value["success_criteria"], 32)
  return {
    task_id: id as TaskId,
    title: problems.text(`${where}.title`, value["title"], 512),
    instructions: problems.text(`${where}.instructions`, value["instructions"]),
    depends_on: problems.texts(
      `${where}.depends_on`,
      value["depends_on"],
      limits.dependenciesMax
    ) as ReadonlyArray<TaskId>,
    priority: priority as PlanTask["priority"],
    evidence: evidenceList(problems, `${where}.evidence`, value["evidence"]),
    ...(role === undefined ? {} : { role: problems.text(`${where}.role`, role, 64) }),
    ...(model === undefined || model === "" ? {} : { model: problems.text(`${where}.model`, model, 200) }),
    ...(criteria.length === 0 ? {} : { success_criteria: criteria })
  }
}

type Node = Pick<PlanTask, "task_id" | "depends_on">

/** Whether the tasks can be executed together with those that stay as they are. */
export const checkGraph = (
  problems: Problems,
  tasks: ReadonlyArray<PlanTask>,
  staying: ReadonlyArray<Node> = []
): void => {
  const ids = new Set<string>(staying.map((one) => one.task_id))
  for (const { task_id: id } of tasks) {
    if (ids.has(id)) problems.add(id, "there are two tasks with this id")
    ids.add(id)
  }
  for (const { depends_on: wanted, task_id: id } of tasks) {
    for (const other of wanted) {
      if (!ids.has(other)) problems.add(id, `depends on ${other}, and there is no such task`)
    }
  }
  const cycle = cycleOf([...staying, ...tasks])
  if (cycle !== undefined) problems.add("tasks", `wait for each other: ${cycle.join(" → ")}`)
}

/** Tasks as a model wrote them, as far as each can be told by itself. */
export const readTasks = (problems: Problems, where: string, list: ReadonlyArray<unknown>): ReadonlyArray<PlanTask> =>
  list.flatMap((one, index) => taskOf(problems, `${where}[${index}]`, one) ?? [])

/** False, with the problem told, when a plan would have too many. */
export const checkCount = (problems: Problems, count: number): boolean => {
  if (count < limits.tasksMax) return true
  problems.add("tasks", `a plan has fewer than ${limits.tasksMax} tasks, this one has ${count}: group them`)
  return false
}

/** The tasks of a plan. */
export const parseTasks = (value: unknown): Checked<ReadonlyArray<PlanTask>> => {
  const problems = new Problems()
  const list = Array.isArray(value) ? value : []
  if (list.length === 0) problems.add("tasks", "a plan has at least one task")
  if (!checkCount(problems, list.length)) return problems.checked([])
  const tasks = readTasks(problems, "tasks", list)
  if (problems.list.length === 0) checkGraph(problems, tasks)
  return problems.checked(tasks)
}
