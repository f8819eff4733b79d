/** Runes of an agent's life inside a conversation, native or outside. */
import * as Schema from "effect/Schema"
import { MonitorState, MonitorSubState } from "../AgentEvent.ts"
import { AgentId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { AgentStats, Amount, Budget, BudgetMeasure, Content, ErrorInfo, JsonValue, Name } from "./shared.ts"

export const agentKinds = [
  defineKind("agent.spawning", {
    payload: Schema.Struct({
      agent_id: AgentId,
      role: Name,
      model: Schema.String,
      parent_id: Schema.optionalKey(AgentId),
      name: Schema.optionalKey(Schema.String),
      instructions: Schema.optionalKey(Schema.String),
      tools: Schema.optionalKey(Schema.Array(JsonValue)),
      budget: Schema.optionalKey(Budget),
      /** Where it works, if not where the conversation does. */
      workspace: Schema.optionalKey(Schema.String),
      harness: Schema.optionalKey(Schema.String),
      /** An agent that is over and whose words it takes over: the root of a conversation that was opened again. */
      continues: Schema.optionalKey(AgentId)
    })
  }),
  defineKind("agent.ready", { payload: Schema.Struct({ agent_id: AgentId }) }),
  defineKind("agent.failed", {
    payload: Schema.Struct({ agent_id: AgentId, error: ErrorInfo }),
    runeClass: "terminal"
  }),
  defineKind("agent.terminated", {
    payload: Schema.Struct({ agent_id: AgentId, reason: Schema.String, stats: AgentStats }),
    runeClass: "terminal"
  }),
  defineKind("agent.message", {
    payload: Schema.Struct({
      to_agent_id: AgentId,
      from_agent_id: Schema.optionalKey(AgentId),
      content: Content
    }),
    visibility: "internal"
  }),
  defineKind("agent.budget_exhausted", {
    payload: Schema.Struct({ agent_id: AgentId, which: BudgetMeasure, used: Amount, limit: Amount }),
    runeClass: "terminal"
  }),
  defineKind("agent.state_changed", {
    payload: Schema.Struct({ state: MonitorState, sub_state: Schema.optionalKey(MonitorSubState) })
  })
] as const
