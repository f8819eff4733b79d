// A goal in words: the plan as a tree, a line when something of it changes, one line of status below, and at the end what
// was done, what shows it, and what it cost.
import type { AnyRune } from "../../client/Client.ts"
import { duration, fitStart, money, number, oneLine, safeText } from "../render/Text.ts"
import type { Terminal, Tone } from "../Verb.ts"
import type { Board, BoardTask, TaskState } from "./Board.ts"

type Payload = Readonly<Record<string, unknown>>
const payloadOf = (rune: AnyRune): Payload => rune.payload as Payload
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
const listOf = (value: unknown): ReadonlyArray<Payload> => (Array.isArray(value) ? (value as Array<Payload>) : [])

const marks: Readonly<Record<TaskState, { readonly mark: string; readonly tone: Tone }>> = {
  waiting: { mark: "○", tone: "quiet" },
  running: { mark: "▸", tone: "accent" },
  done: { mark: "✓", tone: "good" },
  failed: { mark: "✗", tone: "bad" },
  cancelled: { mark: "–", tone: "quiet" }
}

export class GoalLines {
  private readonly terminal: Terminal
  readonly board: Board

  constructor(terminal: Terminal, board: Board) {
    this.terminal = terminal
    this.board = board
  }

  /** What a rune changed, in words; nothing for what only the status line shows. Called after the board took it. */
  linesOf(rune: AnyRune): ReadonlyArray<string> {
    return described[rune.kind]?.(this, payloadOf(rune), rune) ?? []
  }

  line(tone: Tone, mark: string, text: string, indent = 0): string {
    const { columns, paint } = this.terminal
    const shown = fitStart(oneLine(text), columns() - indent - 4)
    return `${" ".repeat(indent)}${paint(tone, mark)} ${shown}`
  }

  tree(): ReadonlyArray<string> {
    const { tasks } = this.board
    const numberOf = new Map(tasks.map((task, at) => [task.task_id, at + 1]))
    return tasks.map((task, at) => this.branch(task, { at, isLast: at === tasks.length - 1, numberOf }))
  }

  private branch(
    task: BoardTask,
    place: { readonly at: number; readonly isLast: boolean; readonly numberOf: ReadonlyMap<string, number> }
  ): string {
    const { paint } = this.terminal
    const { mark, tone } = marks[task.state]
    const after = task.depends_on.map((id) => place.numberOf.get(id) ?? id).join(", ")
    const notes = [after === "" ? "" : `after ${after}`, task.priority === "medium" ? "" : task.priority]
    const rest = notes.filter((note) => note !== "").join(" · ")
    const text = fitStart(oneLine(`${place.at + 1}. ${task.title}`), this.terminal.columns() - rest.length - 12)
    return `  ${paint("quiet", place.isLast ? "└─" : "├─")} ${paint(tone, mark)} ${text}  ${paint("quiet", rest)}`.trimEnd()
  }

  status(elapsedMs: number): string {
    const { board } = this
    const [first] = board.currentTools
    const more = board.currentTools.length - 1
    const tool = first === undefined ? "" : `${oneLine(first)}${more > 0 ? ` (+${more})` : ""}`
    const parts = [
      board.state,
      board.tasks.length === 0 ? "" : `${board.done}/${board.tasks.length} tasks`,
      `${number(board.tokens)} tokens`,
      money(board.usd),
      duration(elapsedMs),
      tool
    ]
    return this.terminal.paint(
      "quiet",
      fitStart(parts.filter((part) => part !== "").join(" · "), this.terminal.columns() - 2)
    )
  }

  /** How it ended, for people. */
  ending(): string {
    const { board } = this
    const { end } = board
    if (end === undefined) return ""
    const isMet = end.outcome === "goal_met"
    const { paint } = this.terminal
    const took = board.startedMs === undefined ? "" : duration(end.ts_ms - board.startedMs)
    const cost = [took, money(board.usd)].filter((part) => part !== "").join(" · ")
    const head = isMet
      ? paint("good", "✓ goal met")
      : paint("bad", `✗ stopped: ${oneLine(textOf(end.payload["reason"]))}`)
    const summary = safeText(textOf(end.payload["summary"]))
      .split("\n")
      .map((row) => `  ${row}`.trimEnd())
    // What passed is part of the summary.
    const missing = listOf(end.payload["evidence"]).filter((one) => one["passed"] !== true)
    return `${[`${head}  ${paint("quiet", cost)}`, ...summary, ...missing.map((one) => this.evidence(one))].join("\n").trimEnd()}\n`
  }

  evidence(one: Payload): string {
    const spec = (one["spec"] ?? {}) as Payload
    const isCommand = spec["type"] === "command"
    const words = Array.isArray(spec["command"]) ? spec["command"] : []
    const passed = one["passed"] === true
    const text = isCommand
      ? `${words.join(" ")} · exit ${String(one["exit_code"] ?? "unknown")}`
      : textOf(one["detail"]) || textOf(spec["path"])
    return this.line(passed ? "good" : "bad", passed ? "✓" : "✗", text, 2)
  }
}

type Describe = (lines: GoalLines, payload: Payload, rune: AnyRune) => ReadonlyArray<string>

const titled = (lines: GoalLines, payload: Payload): string =>
  lines.board.task(payload["task_id"])?.title ?? textOf(payload["task_id"])

/** What becomes of a task whose attempt did not count. */
const again =
  (what: string): Describe =>
  (lines, payload) => {
    const why = textOf((payload["error"] as Payload | undefined)?.["message"])
    return [lines.line("notice", "↺", `${titled(lines, payload)} ${what}: ${why}`)]
  }

const finding = (lines: GoalLines, one: Payload): string => {
  const isError = one["severity"] === "error"
  const where = textOf(one["file"])
  const at = one["line"] === undefined ? where : `${where}:${String(one["line"])}`
  const text = [textOf(one["title"]), at].filter((part) => part !== "").join(" · ")
  return lines.line(isError ? "bad" : "notice", isError ? "✗" : "!", text, 2)
}

const described: Readonly<Record<string, Describe | undefined>> = {
  "plan.goal_received": (lines, payload) => [lines.line("strong", "◆", textOf(payload["goal"]))],
  "plan.planning_started": (lines, payload) => {
    const attempt = Number(payload["attempt"])
    return [lines.line("quiet", "◇", attempt > 1 ? `planning, attempt ${attempt}` : "planning")]
  },
  "plan.created": (lines, payload) => {
    const why = textOf(payload["needs_approval"])
    const waits = why === "" ? [] : [lines.line("notice", "?", `waits for approval: ${why}`)]
    return [lines.line("strong", "◇", "the plan"), ...lines.tree(), ...waits]
  },
  "plan.baseline_checked": (lines, payload) => {
    const all = listOf(payload["evidence"])
    const green = all.filter((one) => one["passed"] === true).length
    const why = textOf(payload["needs_approval"])
    const waits = why === "" ? [] : [lines.line("notice", "?", `waits for approval: ${why}`)]
    if (all.length === 0) return waits
    return [lines.line("quiet", "◇", `${all.length - green} of ${all.length} checks fail before the work`), ...waits]
  },
  "plan.task_released": again("is done again"),
  "plan.task_returned": again("is merged by its worker"),
  "plan.task_reopened": again("is open again"),
  "plan.task_added": (lines, payload) => [
    lines.line("notice", "+", `${titled(lines, payload)} added`),
    ...lines.tree()
  ],
  "plan.task_edited": (lines, payload) => [lines.line("notice", "◇", `${titled(lines, payload)} changed`)],
  "plan.task_dropped": (lines, payload) => [
    lines.line("notice", "–", `${titled(lines, payload)} dropped: ${textOf(payload["reason"])}`)
  ],
  "plan.task_retried": (lines, payload) => [lines.line("notice", "↺", `${titled(lines, payload)} is done again`)],
  "plan.task_reassigned": (lines, payload) => [
    lines.line("notice", "↺", `${titled(lines, payload)} goes to another worker`)
  ],
  "plan.task_reordered": (lines) => [lines.line("notice", "◇", "the order has changed"), ...lines.tree()],
  "plan.task_steered": (lines, payload) => [
    lines.line("notice", "»", `to the worker of ${titled(lines, payload)}: ${textOf(payload["content"])}`)
  ],
  "plan.suspended": (lines, payload) => [lines.line("notice", "?", `waits for you: ${textOf(payload["question"])}`)],
  "plan.resumed": (lines) => [lines.line("quiet", "▸", "resumed")],
  "plan.updated": (lines) => [lines.line("notice", "◇", "the plan has changed"), ...lines.tree()],
  "plan.approved": (lines, payload) => [lines.line("quiet", "◇", `started by ${textOf(payload["approver"])}`)],
  "plan.rejected": (lines, payload) => [lines.line("notice", "✗", `plan rejected: ${textOf(payload["reason"])}`)],
  "plan.task_started": (lines, payload) => {
    const attempt = Number(payload["attempt"])
    return [lines.line("accent", "▸", `${titled(lines, payload)}${attempt > 1 ? ` (attempt ${attempt})` : ""}`)]
  },
  "plan.task_completed": (lines, payload) => [
    lines.line("good", "✓", titled(lines, payload)),
    ...listOf(payload["evidence"]).map((one) => lines.evidence(one))
  ],
  "plan.task_failed": (lines, payload) => {
    const { message } = (payload["error"] ?? {}) as { readonly message?: string }
    return [lines.line("bad", "✗", `${titled(lines, payload)}: ${message ?? "failed"}`)]
  },
  "plan.review_started": (lines, payload) => [lines.line("quiet", "◇", `review ${String(payload["iteration"])}`)],
  "plan.critique": (lines, payload) => [
    lines.line(
      payload["verdict"] === "pass" ? "good" : "notice",
      "◇",
      `the critic says: ${textOf(payload["verdict"])}`
    ),
    ...listOf(payload["findings"]).map((one) => finding(lines, one))
  ],
  "plan.blocked": (lines, payload) => [lines.line("bad", "■", `blocked: ${textOf(payload["reason"])}`)],
  "plan.unblocked": (lines, payload) => [lines.line("quiet", "▸", `goes on: ${textOf(payload["reason"])}`)],
  "session.suspended": (lines, payload) => [lines.line("bad", "■", `suspended: ${textOf(payload["reason"])}`)],
  "system.recovered": (lines) => [lines.line("notice", "↻", "the server was restarted and continues")],
  "tool.approved": (lines, payload) => [
    lines.line("good", "✓", `${textOf(payload["call_id"])} allowed by ${textOf(payload["approver"])}`, 2)
  ],
  "tool.denied": (lines, payload) => [
    lines.line("notice", "✗", `${textOf(payload["call_id"])} refused: ${textOf(payload["reason"])}`, 2)
  ]
}
