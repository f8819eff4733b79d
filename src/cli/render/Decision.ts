// What somebody is asked to decide, whole: the exact arguments, what they would change, where, with which reach, why it is
// asked and what allowing it for longer would mean. Headings stand further left than anything that is quoted below them,
// so that no argument can pass for one.
import type { ApprovalItem } from "../../client/Client.ts"
import { beyondAscii, visible, visibleJson } from "../../present/VisibleText.ts"
import type { Terminal } from "../Verb.ts"
import { roomIn, textRows, valueRows, wordRows } from "./Exact.ts"
import { moment } from "./Text.ts"

const quoteIndent = "    "
const factColumns = 11

type View = Pick<Terminal, "columns" | "isWatched" | "paint">

/** What is read by a program, or paged by one, is not wrapped here. */
const pipeColumns = Number.MAX_SAFE_INTEGER

const columnsOf = ({ columns, isWatched }: View): number => (isWatched ? columns() : pipeColumns)

const quoted = (rows: ReadonlyArray<string>): ReadonlyArray<string> => rows.map((row) => `${quoteIndent}${row}`)

const reachText = ({ shown_as: shown }: ApprovalItem): string => {
  const where = shown?.workspace === undefined ? "no workspace" : `in ${shown.workspace}`
  const roots = shown?.roots ?? []
  const writes = roots.length === 0 ? "" : `, may write to ${roots.join(", ")}`
  const network = shown?.network === undefined ? "" : shown.network ? ", with the network" : ", without the network"
  return `${where}${writes}${network}`
}

/** A rule in words that fit a line. */
const ruleText = (rule: unknown): string => {
  const { command, definition, host, path, tool, workspace, ...rest } = (rule ?? {}) as Readonly<
    Record<string, unknown>
  >
  const what = [command, path, host].find((one) => one !== undefined)
  const shown = what === undefined ? "every call" : visibleJson(what)
  const place = workspace === undefined ? "" : ` in ${visible(String(workspace))}`
  const { decision: _decision, ...more } = rest
  const asDefined = definition === undefined ? "" : ", as it is defined now"
  return `${visible(String(tool ?? "every tool"))} ${shown}${place}${Object.keys(more).length === 0 ? "" : ` ${visibleJson(more)}`}${asDefined}`
}

const facts = (item: ApprovalItem): ReadonlyArray<readonly [string, string]> => {
  const { expires_ms: expiresMs, learns } = item
  const rules = (["session", "rule"] as const).flatMap((scope) =>
    learns?.[scope] === undefined ? [] : [[scope, ruleText(learns[scope])] as const]
  )
  const letters = beyondAscii(JSON.stringify([item.arguments, item.tool_name]))
  const { definition, origin } = item.shown_as ?? {}
  return [
    ...(origin === undefined
      ? []
      : [["from", `${origin}${definition === undefined ? "" : ` (${definition.slice(0, 12)})`}`] as const]),
    ["reach", reachText(item)],
    ["why", item.policy_reason],
    ["until", expiresMs === null ? "somebody answers" : moment(expiresMs)],
    ...rules,
    ...(letters === "" ? [] : [["look twice", `letters beyond ASCII: ${letters}`] as const])
  ]
}

const factRows = (name: string, value: string, view: View): ReadonlyArray<string> => {
  const rows = wordRows(value, roomIn(columnsOf(view), factColumns + 3))
  return rows.map((row, at) => `  ${view.paint("quiet", (at === 0 ? name : "").padEnd(factColumns))}${row}`)
}

/** What a tool shows of a call besides its arguments, unless it says the same again. */
const previewRows = (item: ApprovalItem, view: View): ReadonlyArray<string> => {
  const { detail, diff } = item.shown_as ?? {}
  const room = roomIn(columnsOf(view), quoteIndent.length + 1)
  const strings = Object.values((item.arguments ?? {}) as object).filter((one) => typeof one === "string")
  const isRepeated = (text: string): boolean =>
    strings.includes(text) ||
    text === JSON.stringify(item.arguments, null, 2) ||
    text === JSON.stringify(item.arguments)
  const section = (name: string, text: string | undefined): ReadonlyArray<string> =>
    text === undefined || text === "" || isRepeated(text)
      ? []
      : [`  ${view.paint("quiet", name)}`, ...quoted(textRows(text, room))]
  return [...section("detail", detail), ...section("difference", diff)]
}

const argumentRows = (item: ApprovalItem, view: View): ReadonlyArray<string> => {
  const value = item.arguments
  const isEmpty = JSON.stringify(value) === "{}"
  const heading = `  ${view.paint("quiet", isEmpty ? "arguments: none" : "arguments")}`
  const rows = isEmpty ? [] : valueRows(value, roomIn(columnsOf(view), quoteIndent.length + 1))
  return [heading, ...quoted(rows)]
}

const titleOf = (item: ApprovalItem): string => {
  const title = item.shown_as?.title ?? ""
  return title === "" || title === item.tool_name ? item.tool_name : `${title} (${item.tool_name})`
}

/** Everything there is to know before deciding, a row each; what is not asked for here is not offered here. */
export const decisionRows = (item: ApprovalItem, view: View): ReadonlyArray<string> => {
  const title = wordRows(titleOf(item), roomIn(columnsOf(view), 5))
  return [
    ...title.map((row, at) => `  ${at === 0 ? view.paint("notice", "?") : " "} ${view.paint("strong", row)}`),
    ...previewRows(item, view),
    ...argumentRows(item, view),
    ...facts(item).flatMap(([name, value]) => factRows(name, value, view))
  ]
}

/** A value that somebody decides about, quoted under a heading. */
export const quotedRows = (heading: string, value: unknown, view: View): ReadonlyArray<string> => [
  `  ${view.paint("quiet", heading)}`,
  ...quoted(valueRows(value, roomIn(columnsOf(view), quoteIndent.length + 1)))
]
