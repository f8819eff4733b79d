// Tool calls as a person follows them: one line when a call has ended, with what it changed in color and the end of what a
// failed one said; a line with the time and the last output while it runs.
import type { AnyRune } from "../../client/Client.ts"
import { diffLine } from "../render/Markdown.ts"
import { argumentsText } from "../render/RuneText.ts"
import { duration, fitStart, oneLine, pad, safeText, widthOf } from "../render/Text.ts"
import type { Terminal } from "../Verb.ts"

type View = Pick<Terminal, "columns" | "paint">
type Payload = Readonly<Record<string, unknown>>

const diffRowsMax = 12
const failureRowsMax = 4
const liveRowsMax = 3
const outputCharsKept = 4_000

export interface ToolRun {
  readonly callId: string
  readonly name: string
  readonly arguments: unknown
  readonly agentId: string | undefined
  startedMs: number | undefined
  output: string
}

export const toolRunOf = ({ agent_id: agentId, payload }: AnyRune): ToolRun => {
  const { arguments: given, call_id: callId, tool_name: name } = payload as Payload
  return { callId: String(callId), name: String(name), arguments: given, agentId, startedMs: undefined, output: "" }
}

export const heardOutput = (run: ToolRun, chunk: unknown): void => {
  run.output = `${run.output}${String(chunk ?? "")}`.slice(-outputCharsKept)
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** What a call would change, as lines of a difference; empty for one that says nothing about it. */
export const changeOf = ({ arguments: given, name }: Pick<ToolRun, "arguments" | "name">): ReadonlyArray<string> => {
  const { content, new_text: after, old_text: before, patch } = (given ?? {}) as Payload
  const lines = (text: string, mark: string): ReadonlyArray<string> =>
    text === ""
      ? []
      : text
          .replace(/\n$/, "")
          .split("\n")
          .map((line) => `${mark}${line}`)
  if (name === "edit_file") return [...lines(textOf(before), "-"), ...lines(textOf(after), "+")]
  if (name === "write_file") return lines(textOf(content), "+")
  return name === "apply_patch" ? lines(textOf(patch), "") : []
}

const countText = (change: ReadonlyArray<string>): string => {
  const count = (mark: string): number =>
    change.filter((line) => line.startsWith(mark) && !line.startsWith(mark.repeat(3))).length
  return change.length === 0 ? "" : `+${count("+")} −${count("-")}`
}

const shownArguments = ({ arguments: given, name }: ToolRun): string => {
  const { command, path } = (given ?? {}) as Payload
  if (typeof command === "string") return oneLine(command)
  if (typeof path === "string" && changeOf({ name, arguments: given }).length > 0) return oneLine(path)
  return argumentsText(given)
}

/** Left and right on one row, the left one cut to what is left. */
const row = (left: string, right: string, columns: number): string => {
  const room = Math.max(10, columns - widthOf(right) - 3)
  return `${pad(fitStart(left, room), room)}  ${right}`.trimEnd()
}

export const resultRows = (run: ToolRun, result: Payload, view: View): ReadonlyArray<string> => {
  const { paint } = view
  const columns = view.columns() - 3
  const isGood = result["status"] === "success"
  const change = isGood ? changeOf(run) : []
  const exit = typeof result["exit_code"] === "number" && result["exit_code"] !== 0 ? `exit ${result["exit_code"]}` : ""
  const took = typeof result["duration_ms"] === "number" ? duration(result["duration_ms"]) : ""
  const status = isGood ? "" : oneLine(textOf(result["status"]))
  const right = [status, countText(change), exit, took].filter((part) => part !== "").join(" · ")
  const line = row(`${run.name} ${shownArguments(run)}`, right, columns)
  const head = `  ${paint(isGood ? "good" : "bad", isGood ? "✓" : "✗")} ${paint("quiet", line)}`
  const said = textOf(result["output"]) || textOf((result["error"] as Payload | undefined)?.["message"])
  return [head, ...(isGood && exit === "" ? diffRows(change, view) : tailRows(said, failureRowsMax, view))]
}

const diffRows = (change: ReadonlyArray<string>, view: View): ReadonlyArray<string> => {
  const shown = change.slice(0, diffRowsMax).map((line) => {
    const text = fitStart(safeText(line).replaceAll("\t", "  "), view.columns() - 5)
    return `    ${diffLine(text, view.paint)}`
  })
  const left = change.length - shown.length
  return left <= 0 ? shown : [...shown, `    ${view.paint("quiet", `… ${left} more lines (/output)`)}`]
}

const tailRows = (text: string, max: number, view: View): ReadonlyArray<string> =>
  safeText(text)
    .trimEnd()
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-max)
    .map((line) => `    ${view.paint("quiet", fitStart(line.replaceAll("\t", "  "), view.columns() - 5))}`)

export const runningRows = (run: ToolRun, nowMs: number, view: View): ReadonlyArray<string> => {
  const took = run.startedMs === undefined ? "waits" : duration(nowMs - run.startedMs)
  const line = row(`${run.name} ${shownArguments(run)}`, took, view.columns() - 3)
  return [`  ${view.paint("accent", "⚙")} ${line}`, ...tailRows(run.output, liveRowsMax, view)]
}
