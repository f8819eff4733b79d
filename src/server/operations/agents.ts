// Operations on the agents of a conversation, and on budgets.
import * as Effect from "effect/Effect"
import { agentSummary } from "../../conversation/Summary.ts"
import type { AgentId } from "../../rune/Ids.ts"
import { CurrentOperation, change, type HandlersOf, stateOf, submit, tell } from "./CurrentOperation.ts"
import { contentOf } from "./messages.ts"
import { idFor } from "./NewIds.ts"

export const agentHandlers: HandlersOf<"agent" | "budget"> = {
  "agent.spawn": ({ conversation_id: id, ...wanted }) =>
    Effect.gen(function* () {
      const context = yield* CurrentOperation
      const agentId = `agt_${idFor(context, `agent of ${id}`)}` as AgentId
      const { session } = yield* stateOf(id)
      const model = wanted.model ?? session.config.model ?? context.defaultModel()
      const parent = wanted.parent_id ?? session.root_agent_id
      const spec = { ...wanted, agent_id: agentId, model, ...(parent === null ? {} : { parent_id: parent }) }
      const { event_id, repeated } = yield* submit(id, { _tag: "SpawnAgent", spec })
      return { agent_id: repeated?.agent_id ?? agentId, event_id }
    }),
  "agent.message": (fields) =>
    Effect.flatMap(contentOf(fields), (content) =>
      change(fields.conversation_id, { _tag: "SendAgentMessage", to_agent_id: fields.agent_id, content })
    ),
  "agent.kill": ({ agent_id, conversation_id: id, force = false, reason = "asked for" }) =>
    change(id, { _tag: "KillAgent", agent_id, reason, force }),
  "agent.list": ({ conversation_id: id }) =>
    tell(id, (state) => ({ items: state.agents.map((agent) => agentSummary(state, agent)) })),
  "budget.set": ({ agent_id: agentId, conversation_id: id, ...budget }) =>
    CurrentOperation.use(({ principal }) =>
      change(id, {
        _tag: "UpdateConfig",
        changes: agentId === undefined ? { budget } : {},
        ...(agentId === undefined ? {} : { agent_id: agentId, budget }),
        principal: principal.name
      })
    )
}
