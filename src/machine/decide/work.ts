/**
 * Deciding that nothing goes on: whatever is under way or waits to be gets its end on
 * record. Agents stay, with nothing to do.
 */
import type { SessionRequest } from "../Command.ts"
import type { AgentState } from "../State.ts"
import { aliveAgents, isOpen } from "../view/Select.ts"
import { agentDeciders } from "./agent.ts"
import type { Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endCall, endInside, markInterrupted } from "./Ending.ts"

const dequeue = (sheet: Drafting, { agent_id, queue }: AgentState, reason: string): undefined => {
  if (queue.length === 0) return
  sheet.write(draft("turn.dequeued", { event_ids: queue.map((one) => one.event_id), reason }, { agent_id }))
}

const detach = (sheet: Drafting, { agent_id, harness }: AgentState, reason: string): undefined => {
  if (harness?.attached === true) sheet.write(draft("harness.detached", { reason }, { agent_id }))
}

export const endWork = (
  sheet: Drafting,
  { reason }: Extract<SessionRequest, { readonly _tag: "EndWork" }>
): undefined => {
  const inside = { reason: `the conversation was ${reason}`, end: "lose_effects" } as const
  for (const agent of aliveAgents(sheet.state)) {
    const { agent_id, turn } = agent
    if (turn !== null) {
      endInside(sheet, { agent, turn }, inside)
      markInterrupted(sheet, { agent, turn }, { reason })
    }
    dequeue(sheet, agent, reason)
    detach(sheet, agent, reason)
    if (agent.status === "spawning") agentDeciders.CompleteAgentInit(sheet, { _tag: "CompleteAgentInit", agent_id })
  }
  for (const call of sheet.state.calls) {
    if (call.turn_id === null && isOpen(call)) endCall(sheet, call, inside.reason, inside.end)
  }
}
