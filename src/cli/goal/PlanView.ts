// A plan as the server has it now, for whoever is to say yes or no to it: which revision it is, its tasks as a tree, and
// every word of each, with what it will be checked by.
import type { ConversationSummary } from "../../client/Client.ts"
import { quotedRows } from "../render/Decision.ts"
import type { Terminal } from "../Verb.ts"
import { Board, type TaskState, taskOf } from "./Board.ts"
import { GoalLines } from "./Lines.ts"

type Plan = NonNullable<ConversationSummary["plan"]>
type Payload = Readonly<Record<string, unknown>>

const states: Readonly<Record<string, TaskState | undefined>> = {
  running: "running",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled"
}

const listOf = (value: unknown): ReadonlyArray<Payload> => (Array.isArray(value) ? value : [])

/** Every word of the tasks that somebody says yes or no to. */
export const taskRows = (tasks: unknown, terminal: Terminal): ReadonlyArray<string> =>
  listOf(tasks).flatMap((task, at) => quotedRows(`task ${at + 1}`, task, terminal))

export const planRows = (plan: Plan, terminal: Terminal): ReadonlyArray<string> => {
  const board = new Board(plan.plan_id)
  const tasks = listOf(plan.tasks)
  board.tasks = tasks.map(({ status, task }) => ({
    ...taskOf((task ?? {}) as Payload),
    state: states[String(status)] ?? "waiting"
  }))
  const lines = new GoalLines(terminal, board)
  const head = `revision ${plan.revision} of the plan, ${plan.status}`
  const goal = quotedRows("goal", plan.goal, terminal)
  const whole = taskRows(
    tasks.map(({ task }) => task),
    terminal
  )
  return [lines.line("strong", "◇", head), ...lines.tree(), ...goal, ...whole]
}
