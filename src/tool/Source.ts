// Tools that are the same for every conversation and every agent, as a source.
import type { Tool, ToolSource } from "./Tool.ts"

export const fixedSource = (tools: ReadonlyArray<Tool>): ToolSource => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return { tools: () => tools, find: (_state, _agentId, name) => byName.get(name) }
}
