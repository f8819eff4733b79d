// Tools by which an agent gets help from others. Whoever plans or judges a goal does not get help by the side; all others
// may.
import type { ToolSource } from "../tool/Tool.ts"
import { partOf } from "./RoleTools.ts"
import { agentTools } from "./tools/Agents.ts"

const mayHaveHelp = (...[state, agentId]: Parameters<typeof partOf>): boolean =>
  [undefined, "worker"].includes(partOf(state, agentId))

export const helperTools: ToolSource = {
  tools: (state, agentId) => (mayHaveHelp(state, agentId) ? agentTools : []),
  find: (state, agentId, name) =>
    mayHaveHelp(state, agentId) ? agentTools.find((tool) => tool.name === name) : undefined
}

/** No tool from elsewhere may have one of these names. */
export const helperNames: ReadonlyArray<string> = agentTools.map(({ name }) => name)
