/** How the runes of what a person changes about single tasks change the state of the goal. */
import type { AgentId, TurnId } from "../../rune/Ids.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import { isActive } from "../decide/TaskSchedule.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableConversation, MutablePlan, MutableTask } from "../State.ts"
import { type Handlers, pushBounded } from "./Parts.ts"
import { changeTask, newTask, onPlan, onTask, tried } from "./PlanParts.ts"

/** A plan that is not yet approved is another one by then: a yes is about the one that was seen. */
const isNewRevision = (plan: MutablePlan): void => {
  if (plan.status === "planning") plan.revision += 1
}

const move = (plan: MutablePlan, task: MutableTask, before: string | undefined): void => {
  const others = plan.tasks.filter((one) => one !== task)
  const at = before === undefined ? -1 : others.findIndex((one) => one.task.task_id === before)
  plan.tasks = at < 0 ? [...others, task] : others.toSpliced(at, 0, task)
}

const askAgain = (task: MutableTask, code: string, message: string): void => {
  if (message !== "") tried(task, { code, message }, { counted: false })
  task.status = "pending"
  task.failure = null
  task.result = null
  task.evidence = []
}

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : `(${part.type})`)).join("\n")

type Personal =
  | "plan.task_added"
  | "plan.task_edited"
  | "plan.task_dropped"
  | "plan.task_retried"
  | "plan.task_reassigned"
  | "plan.task_reordered"
  | "plan.task_steered"

export const personal: Pick<Handlers<"plan">, Personal> = {
  "plan.task_added": onPlan((plan, rune) => {
    const task = newTask(rune.payload.task, plan.tasks.length + 1)
    move(plan, task, rune.payload.before)
    isNewRevision(plan)
  }),
  "plan.task_edited": onTask((task, rune, plan) => {
    changeTask(task, rune.payload.task)
    isNewRevision(plan)
  }),
  "plan.task_dropped": onTask((task, rune, plan) => {
    task.status = "cancelled"
    task.note = rune.payload.reason.slice(0, limits.taskResultCharsMax)
    isNewRevision(plan)
  }),
  "plan.task_retried": onTask((task, rune) => {
    askAgain(task, "asked_again", rune.payload.reason)
    task.attempts = 0
  }),
  "plan.task_reassigned": onTask((task, rune) => {
    const { model, reason, role } = rune.payload
    if (isActive(task)) task.attempts = Math.max(0, task.attempts - 1)
    askAgain(task, "reassigned", reason)
    task.task = { ...task.task, ...(model === undefined ? {} : { model }), ...(role === undefined ? {} : { role }) }
  }),
  "plan.task_reordered": onTask((task, rune, plan) => {
    const { before, priority } = rune.payload
    task.task = { ...task.task, ...(priority === undefined ? {} : { priority }) }
    move(plan, task, before)
  }),
  "plan.task_steered": onPlan((plan, rune) => {
    const { agent_id, content, task_id } = rune.payload
    const text = textOf(content).slice(0, limits.tryCharsMax).toWellFormed()
    const { event_id } = rune
    pushBounded(
      plan.steers,
      { event_id, task_id, agent_id, text, turn_id: null, read_event_id: null },
      limits.steersKeptMax
    )
  })
}

/** The next turn of the worker takes up what was said to it. */
export const takeUpSteers = (state: MutableConversation, agentId: AgentId, turnId: TurnId): void => {
  for (const one of state.plan?.steers ?? []) if (one.agent_id === agentId && one.turn_id === null) one.turn_id = turnId
}

/** The model answered with it in what it was sent. */
export const readSteers = (state: MutableConversation, turnId: TurnId | undefined, eventId: number): void => {
  for (const one of state.plan?.steers ?? [])
    if (one.turn_id === turnId && one.turn_id !== null && one.read_event_id === null) one.read_event_id = eventId
}
