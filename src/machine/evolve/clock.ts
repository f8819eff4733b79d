/**
 * The clocks that budgets of wall time read: an agent's runs while it is in a turn, the
 * conversation's while any agent is. Both stand while the conversation is suspended.
 */
import type { MutableAgent, MutableConversation, MutableTurn } from "../State.ts"

/** Starts the clock of a turn that has begun, or goes on. */
export const startClock = (state: MutableConversation, turn: MutableTurn, atMs: number): void => {
  turn.clock_ms = atMs
  state.clock_ms ??= atMs
}

/** Stops the clock of a turn that is over, or held; the last one to stop stops the conversation's too. */
export const stopClock = (state: MutableConversation, agent: MutableAgent, turn: MutableTurn, atMs: number): void => {
  agent.wall_ms += turn.clock_ms === null ? 0 : atMs - turn.clock_ms
  turn.clock_ms = null
  const runs = state.agents.some((one) => one.turn !== null && one.turn.clock_ms !== null)
  if (state.clock_ms === null || runs) return
  state.wall_ms += atMs - state.clock_ms
  state.clock_ms = null
}

export const stopClocks = (state: MutableConversation, atMs: number): void => {
  for (const agent of state.agents) if (agent.turn !== null) stopClock(state, agent, agent.turn, atMs)
}

export const startClocks = (state: MutableConversation, atMs: number): void => {
  for (const agent of state.agents) if (agent.turn !== null) startClock(state, agent.turn, atMs)
}
