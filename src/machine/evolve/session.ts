/** How session and config runes change the state. */
import type { ConversationConfig } from "../../rune/kinds/shared.ts"
import { orchestratorIdOf } from "../decide/TaskSchedule.ts"
import type { MutableConversation } from "../State.ts"
import { sessionLands } from "../table/Session.ts"
import { startClocks, stopClocks } from "./clock.ts"
import { findAgent, type Handlers } from "./Parts.ts"

const reasonIs = (state: MutableConversation, reason: string | null): void => {
  state.session.reason = reason
  state.session.budget_info = null
}

/** New budget or a person's word: whoever had run out may go on. */
const forgiveExhaustion = (state: MutableConversation): void => {
  for (const agent of state.agents) agent.exhausted = false
}

export const sessionHandlers: Handlers<"session"> = {
  "session.created": (state, rune) => {
    const { config, budget } = rune.payload
    state.conversation_id = rune.conversation_id
    state.session.status = sessionLands(state.session.status, rune)
    state.session.config = budget === undefined ? config : { ...config, budget }
    state.session.created_ms = rune.ts_ms
  },
  "session.activated": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    state.session.root_agent_id = rune.payload.root_agent_id
  },
  "session.paused": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    reasonIs(state, rune.payload.reason)
  },
  "session.resumed": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    reasonIs(state, null)
  },
  "session.suspended": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    reasonIs(state, rune.payload.reason)
    state.session.budget_info = rune.payload.budget_info ?? null
    state.session.suspended_event_id = rune.event_id
    stopClocks(state, rune.ts_ms)
  },
  "session.unsuspended": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    reasonIs(state, null)
    forgiveExhaustion(state)
    state.errors_in_row = 0
    startClocks(state, rune.ts_ms)
  },
  "session.closing": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
    reasonIs(state, rune.payload.reason)
  },
  "session.closed": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
  },
  "session.archived": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
  },
  "session.restored": (state, rune) => {
    state.session.status = sessionLands(state.session.status, rune)
  },
  "session.forked": (state, rune) => {
    state.session.forked_from = rune.payload.from
  }
}

const withBudget = (config: ConversationConfig, budget: ConversationConfig["budget"]): ConversationConfig =>
  budget === undefined ? config : { ...config, budget }

export const configHandlers: Handlers<"config"> = {
  "config.updated": (state, rune) => {
    const { changes, agent_id: agentId, budget, revoked_grants: revoked = [] } = rune.payload
    if (revoked.length > 0) state.grants = state.grants.filter(({ event_id: id }) => !revoked.includes(id))
    const agent = findAgent(state, agentId)
    state.session.config = withBudget(
      { ...state.session.config, ...changes },
      agentId === undefined ? budget : undefined
    )
    if (agent !== undefined && budget !== undefined) agent.budget = budget
    const { plan } = state
    const isGoals = plan !== null && agentId === orchestratorIdOf(plan.plan_id)
    if (isGoals && budget !== undefined) plan.budget = budget
    const speaker = agent ?? findAgent(state, state.session.root_agent_id ?? undefined)
    if (speaker !== undefined && changes.model !== undefined) speaker.model = changes.model
    if (budget !== undefined || changes.budget !== undefined) forgiveExhaustion(state)
  }
}
