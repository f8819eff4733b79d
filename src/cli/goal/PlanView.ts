// A plan as the server has it now, for whoever is to say yes or no to it: which revision it is, its tasks as a tree, and
// what each will be checked by.
import type { ConversationSummary } from "../../client/Client.ts"
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

const checkText = ({ command, expected_exit: exit, path, type }: Payload): string => {
  if (type !== "command") return String(path)
  const words = Array.isArray(command) ? command.join(" ") : ""
  return exit === 0 || exit === undefined ? words : `${words} · exit ${String(exit)}`
}

export const planText = (plan: Plan, terminal: Terminal): string => {
  const board = new Board(plan.plan_id)
  const tasks = listOf(plan.tasks)
  board.tasks = tasks.map(({ status, task }) => ({
    ...taskOf((task ?? {}) as Payload),
    state: states[String(status)] ?? "waiting"
  }))
  const lines = new GoalLines(terminal, board)
  const checks = tasks.flatMap(({ task }, at) =>
    listOf((task as Payload | undefined)?.["evidence"]).map((spec) =>
      lines.line("quiet", "·", `${at + 1} is checked by ${checkText(spec)}`, 2)
    )
  )
  const head = `revision ${plan.revision} of the plan, ${plan.status}: ${plan.goal}`
  return `${[lines.line("strong", "◇", head), ...lines.tree(), ...checks].join("\n")}\n`
}
