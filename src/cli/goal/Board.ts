// What a goal looks like while it is pursued: its plan, who works on which task with which tool, what it has cost. A
// fold over runes, the same for a goal that is followed live and for one that is read later.
import type { AnyRune } from "../../client/Client.ts"
import { argumentsText } from "../render/RuneText.ts"

type Payload = Readonly<Record<string, unknown>>

export type TaskState = "waiting" | "running" | "done" | "failed" | "cancelled"

export interface BoardTask {
  readonly task_id: string
  title: string
  depends_on: ReadonlyArray<string>
  priority: string
  role: string
  state: TaskState
  attempt: number
}

export type GoalEnd = { readonly outcome: "goal_met" | "stopped"; readonly payload: Payload; readonly ts_ms: number }

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
const objectOf = (value: unknown): Payload => (typeof value === "object" && value !== null ? (value as Payload) : {})
const listOf = (value: unknown): ReadonlyArray<Payload> => (Array.isArray(value) ? value.map(objectOf) : [])
const countOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0)

export const taskOf = (task: Payload): BoardTask => ({
  task_id: textOf(task["task_id"]),
  title: textOf(task["title"]),
  depends_on: (Array.isArray(task["depends_on"]) ? task["depends_on"] : []).map(String),
  priority: textOf(task["priority"]),
  role: textOf(task["role"]),
  state: "waiting",
  attempt: 0
})

export class Board {
  readonly planId: string
  goal = ""
  state = "goal_received"
  tasks: Array<BoardTask> = []
  end: GoalEnd | undefined
  startedMs: number | undefined
  tokens = 0
  /** Null once something was used that has no known price. */
  usd: number | null = 0
  toolCalls = 0
  private readonly taskOfAgent = new Map<string, string>()
  private readonly roleOfAgent = new Map<string, string>()
  /** What runs now: call → who and what. */
  private readonly running = new Map<string, string>()

  constructor(planId: string) {
    this.planId = planId
  }

  task(taskId: unknown): BoardTask | undefined {
    return this.tasks.find((one) => one.task_id === taskId)
  }

  /** The task or the role of an agent, as a person would name it. */
  workerOf(agentId: string | undefined): string {
    if (agentId === undefined) return ""
    return this.taskOfAgent.get(agentId) ?? this.roleOfAgent.get(agentId) ?? ""
  }

  get currentTools(): ReadonlyArray<string> {
    return [...this.running.values()]
  }

  get done(): number {
    return this.tasks.filter((task) => task.state === "done").length
  }

  apply(rune: AnyRune): void {
    const payload = objectOf(rune.payload)
    if (rune.kind.startsWith("plan.")) this.plan(rune, payload)
    else if (rune.kind.startsWith("tool.")) this.tool(rune, payload)
    else if (rune.kind === "agent.spawning")
      this.roleOfAgent.set(textOf(payload["agent_id"]) || String(rune.agent_id), textOf(payload["role"]))
    else if (rune.kind.startsWith("turn.")) this.spend(objectOf(payload["usage"]), rune.kind)
  }

  private spend(usage: Payload, kind: string): void {
    if (kind !== "turn.completed" && kind !== "turn.interrupted" && kind !== "turn.error") return
    const tokens = countOf(usage["input_tokens"]) + countOf(usage["output_tokens"])
    this.tokens += tokens
    if (typeof usage["usd"] === "number") this.usd = this.usd === null ? null : this.usd + usage["usd"]
    else if (tokens > 0) this.usd = null
  }

  private tool(rune: AnyRune, payload: Payload): void {
    const callId = textOf(payload["call_id"])
    if (rune.kind === "tool.call") {
      const who = this.workerOf(rune.agent_id)
      const what = `${textOf(payload["tool_name"])} ${argumentsText(payload["arguments"])}`.trim()
      this.toolCalls += 1
      this.running.set(callId, who === "" ? what : `${who}: ${what}`)
    } else if (rune.kind === "tool.result") this.running.delete(callId)
  }

  private plan(rune: AnyRune, payload: Payload): void {
    if (payload["plan_id"] !== this.planId) return
    this.startedMs ??= rune.ts_ms
    const step = planSteps[rune.kind]
    step?.(this, payload, rune)
  }

  assign(agentId: string, taskId: string): void {
    this.taskOfAgent.set(agentId, this.task(taskId)?.title ?? taskId)
  }
}

type Step = (board: Board, payload: Payload, rune: AnyRune) => void

const moved =
  (state: string): Step =>
  (board) => {
    board.state = state
  }

const moveTask = (board: Board, payload: Payload, state: TaskState): void => {
  const task = board.task(payload["task_id"])
  if (task === undefined) return
  task.state = state
  if (typeof payload["attempt"] === "number") task.attempt = payload["attempt"]
}

const taskMoved =
  (state: TaskState): Step =>
  (board, payload) =>
    moveTask(board, payload, state)

const ended =
  (outcome: GoalEnd["outcome"]): Step =>
  (board, payload, rune) => {
    board.state = outcome
    board.end = { outcome, payload, ts_ms: rune.ts_ms }
  }

const change = (board: Board, one: Payload): void => {
  const { task, task_id: taskId, type } = one
  if (type === "task_added") board.tasks.push(taskOf(objectOf(task)))
  else if (type === "task_cancelled") moveTask(board, { task_id: taskId }, "cancelled")
  else if (type === "task_changed") {
    const fresh = taskOf(objectOf(task))
    board.tasks = board.tasks.map((old) => (old.task_id === fresh.task_id ? fresh : old))
  }
}

/** Puts a task in front of another one, or at the end. */
const place = (board: Board, task: BoardTask, before: unknown): void => {
  const others = board.tasks.filter((one) => one !== task)
  const at = others.findIndex((one) => one.task_id === before)
  board.tasks = at < 0 ? [...others, task] : others.toSpliced(at, 0, task)
}

/** What a person changes during a review is worked on first. */
const moveOn = (board: Board): void => {
  if (board.state === "reviewing") board.state = "executing"
}

const planSteps: Readonly<Record<string, Step | undefined>> = {
  "plan.goal_received": (board, payload) => {
    board.goal = textOf(payload["goal"])
  },
  "plan.planning_started": moved("planning"),
  "plan.created": (board, payload) => {
    board.tasks = listOf(payload["tasks"]).map(taskOf)
  },
  "plan.updated": (board, payload) => {
    for (const one of listOf(payload["changes"])) change(board, one)
  },
  "plan.approved": moved("executing"),
  "plan.rejected": moved("goal_received"),
  "plan.task_assigned": (board, payload) => {
    board.assign(textOf(payload["agent_id"]), textOf(payload["task_id"]))
  },
  "plan.task_started": taskMoved("running"),
  "plan.task_completed": taskMoved("done"),
  "plan.task_failed": taskMoved("failed"),
  "plan.task_released": taskMoved("waiting"),
  "plan.task_added": (board, payload) => {
    place(board, taskOf(objectOf(payload["task"])), payload["before"])
    moveOn(board)
  },
  "plan.task_edited": (board, payload) => {
    change(board, { type: "task_changed", task: payload["task"] })
    moveOn(board)
  },
  "plan.task_dropped": (board, payload) => {
    moveTask(board, payload, "cancelled")
    moveOn(board)
  },
  "plan.task_retried": (board, payload) => {
    moveTask(board, { ...payload, attempt: 0 }, "waiting")
    moveOn(board)
  },
  "plan.task_reassigned": (board, payload) => {
    moveTask(board, payload, "waiting")
    moveOn(board)
  },
  "plan.task_reordered": (board, payload) => {
    const task = board.task(payload["task_id"])
    if (task === undefined) return
    task.priority = textOf(payload["priority"]) || task.priority
    place(board, task, payload["before"])
  },
  "plan.review_started": moved("reviewing"),
  "plan.critique": (board, payload) => {
    board.state = payload["verdict"] === "replan" ? "planning" : "executing"
  },
  "plan.blocked": moved("blocked"),
  "plan.unblocked": moved("executing"),
  "plan.goal_met": ended("goal_met"),
  "plan.stopped": ended("stopped")
}
