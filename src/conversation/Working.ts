// Whether a conversation has anything under way that a person might wait for.
import type { ConversationState } from "../machine/State.ts"

/** Some agent is in the middle of a turn, or input waits for one. */
export const hasOpenRequest = (state: ConversationState): boolean =>
  state.agents.some((agent) => agent.turn !== null || agent.queue.length > 0)
