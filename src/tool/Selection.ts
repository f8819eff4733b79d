// Which tools an agent has: the list of the conversation, the lists and roles of the agent and of those above it each only
// take away. An entry is a name (`read_file`, `github__*`), or an object with a name and settings of that tool. Entries without a
// name belong to somebody else, such as a source of tools.

import type { AgentState, ConversationState } from "../machine/State.ts"
import { agentOf, pathOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Tool } from "./Tool.ts"

/** What an entry may say of a tool besides its name. */
export interface ToolSettings {
  readonly timeout_ms?: number
  readonly approval?: "always"
}

interface Entry extends ToolSettings {
  readonly name: string
}

/** Agents in these roles look and judge; they get what changes nothing, and what only talks to ECHS itself. */
export const readOnlyRoles: ReadonlySet<string> = new Set([
  "planner",
  "explorer",
  "critic",
  "reviewer",
  "summarizer",
  "monitor"
])

const entryOf = (value: unknown): Entry | undefined => {
  if (typeof value === "string") return { name: value }
  const { approval, name, timeout_ms } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof name !== "string" || name === "") return undefined
  const isTime = typeof timeout_ms === "number" && Number.isSafeInteger(timeout_ms) && timeout_ms > 0
  return { name, ...(isTime ? { timeout_ms } : {}), ...(approval === "always" ? { approval } : {}) }
}

const covers = ({ name }: Entry, toolName: string): boolean =>
  name.endsWith("*") ? toolName.startsWith(name.slice(0, -1)) : name === toolName

/** The entry of a list that names the tool; `unlisted` where the list names tools and not this one. */
const inList = (list: ReadonlyArray<unknown> | null | undefined, toolName: string): Entry | "any" | "unlisted" => {
  if (list === null || list === undefined) return "any"
  const entries = list.flatMap((value) => entryOf(value) ?? [])
  if (entries.length === 0 && list.length > 0) return "any"
  return entries.find((entry) => covers(entry, toolName)) ?? "unlisted"
}

const settingsOf = (entry: Entry | "any" | "unlisted"): ToolSettings => {
  if (typeof entry === "string") return {}
  const { name: _, ...settings } = entry
  return settings
}

export interface Selection {
  /** The tool as this agent has it; nothing when it may not have it. */
  readonly pick: (tool: Tool) => Tool | undefined
}

/** The tool as one agent on the way has it, as far as its role and its list go. */
const pickedBy = (agent: AgentState, tool: Tool): Entry | "any" | "unlisted" =>
  readOnlyRoles.has(agent.role) && tool.mutating && tool.approval !== "never"
    ? "unlisted"
    : inList(agent.tools, tool.name)

export const selectionOf = (state: ConversationState, agentId: AgentId): Selection => {
  // Nobody gets through another agent what it may not have itself.
  const agents = pathOf(state, agentId).flatMap((id) => agentOf(state, id) ?? [])
  return {
    pick: (tool) => {
      const entries = [inList(state.session.config.tools, tool.name), ...agents.map((agent) => pickedBy(agent, tool))]
      if (entries.includes("unlisted")) return undefined
      const settings: ToolSettings = Object.assign({}, ...entries.map(settingsOf))
      return Object.keys(settings).length === 0 ? tool : Object.assign(Object.create(tool) as Tool, settings)
    }
  }
}
