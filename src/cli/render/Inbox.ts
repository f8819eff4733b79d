// A question of the inbox as a person sees it: who asks, what exactly would run, where, with which reach, why it is asked
// and what allowing it for longer would mean.
import type { ApprovalItem } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"
import { argumentsText } from "./RuneText.ts"
import { fitStart, moment, oneLine, safeText } from "./Text.ts"

const shownLinesMax = 40

const block = (text: string, { columns, isWatched }: Terminal): string => {
  const lines = safeText(text).split("\n")
  const kept = lines.slice(0, shownLinesMax)
  const more = lines.length > kept.length ? [`… ${lines.length - kept.length} lines more`] : []
  return [...kept, ...more].map((line) => `    ${isWatched ? fitStart(line, columns() - 5) : line}\n`).join("")
}

const reachText = ({ shown_as: shown }: ApprovalItem): string => {
  const where = shown?.workspace === undefined ? "no workspace" : `in ${oneLine(shown.workspace)}`
  const roots = shown?.roots ?? []
  const writes = roots.length === 0 ? "" : `, may write to ${roots.map(oneLine).join(", ")}`
  const network = shown?.network === undefined ? "" : shown.network ? ", with the network" : ", without the network"
  return `${where}${writes}${network}`
}

/** A rule in words that fit a line. */
export const ruleText = (rule: unknown): string => {
  const { command, host, path, tool, workspace } = (rule ?? {}) as Readonly<Record<string, unknown>>
  const what = [command, path, host].find((one) => one !== undefined)
  const shown = what === undefined ? "every call" : JSON.stringify(what)
  return oneLine(`${String(tool ?? "every tool")} ${shown}${workspace === undefined ? "" : ` in ${String(workspace)}`}`)
}

const facts = (item: ApprovalItem): ReadonlyArray<readonly [string, string]> => {
  const { expires_ms: expiresMs, learns } = item
  const rules = (["session", "rule"] as const).flatMap((scope) =>
    learns?.[scope] === undefined ? [] : [[scope, ruleText(learns[scope])] as const]
  )
  return [
    ["reach", reachText(item)],
    ["why", oneLine(item.policy_reason)],
    ["until", expiresMs === null ? "somebody answers" : moment(expiresMs)],
    ...rules
  ]
}

export const inboxText = (item: ApprovalItem, terminal: Terminal): string => {
  const { paint } = terminal
  const path = (item.agent_names ?? []).map(oneLine).join(" › ")
  const title = oneLine(item.shown_as?.title ?? item.tool_name)
  const detail = item.shown_as?.diff ?? item.shown_as?.detail ?? argumentsText(item.arguments)
  const head = `${paint("notice", "?")} ${item.conversation_id} ${paint("strong", item.call_id)}  ${item.tool_name}`
  const how =
    item.tool_name === "ask_user"
      ? `echs approve ${item.conversation_id} ${item.call_id} --answer TEXT`
      : `echs approve ${item.conversation_id} ${item.call_id}`
  return [
    `${head}${path === "" ? "" : `  ${paint("quiet", path)}`}\n`,
    `  ${paint("strong", title)}\n`,
    block(detail, terminal),
    ...facts(item).map(([name, value]) => `  ${paint("quiet", name.padEnd(7))}  ${value}\n`),
    `  ${how}\n`
  ].join("")
}
