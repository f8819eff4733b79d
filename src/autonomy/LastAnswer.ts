// The words of an agent, as others hear them: whoever waits for it, and whoever judges what it did.
import type { AgentState } from "../machine/State.ts"
import { limits } from "./GoalLimits.ts"

/** The last thing the agent said. */
export const lastAnswer = (agent: AgentState): string => {
  const said = agent.transcript.findLast((item) => item.type === "assistant" && item.content.trim() !== "")
  return typeof said?.content === "string" ? said.content.slice(0, limits.answerCharsMax).toWellFormed() : ""
}
