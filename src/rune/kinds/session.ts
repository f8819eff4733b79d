/** Runes of a conversation's own life: created, activated, paused, closed, archived. */
import * as Schema from "effect/Schema"
import { AgentId, ConversationId, EventId, Sha256Hex } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { AgentStats, Amount, Budget, ConversationConfig, Count, Usage } from "./shared.ts"

const Reason = Schema.Struct({ reason: Schema.String })
const OptionalReason = Schema.Struct({ reason: Schema.optionalKey(Schema.String) })

export const BudgetInfo = Schema.Struct({
  which: Schema.String,
  used: Amount,
  limit: Amount,
  agent_id: Schema.optionalKey(AgentId)
})
export type BudgetInfo = typeof BudgetInfo.Type

export const FinalStats = Schema.Struct({
  ...AgentStats.fields,
  agents: Count,
  runes: Count,
  usage: Usage,
  wall_ms: Count
})

export const sessionKinds = [
  defineKind("session.created", {
    payload: Schema.Struct({
      config: ConversationConfig,
      principal: Schema.optionalKey(Schema.String),
      budget: Schema.optionalKey(Budget)
    })
  }),
  defineKind("session.activated", { payload: Schema.Struct({ root_agent_id: AgentId }) }),
  defineKind("session.paused", { payload: Reason }),
  defineKind("session.resumed", { payload: OptionalReason }),
  defineKind("session.suspended", {
    payload: Schema.Struct({ reason: Schema.String, budget_info: Schema.optionalKey(BudgetInfo) })
  }),
  defineKind("session.unsuspended", { payload: OptionalReason }),
  defineKind("session.closing", { payload: Reason, runeClass: "terminal" }),
  defineKind("session.closed", { payload: Schema.Struct({ final_stats: FinalStats }), runeClass: "terminal" }),
  defineKind("session.archived", {
    payload: Schema.Struct({ location: Schema.String, hash: Sha256Hex }),
    runeClass: "terminal"
  }),
  defineKind("session.restored", {
    payload: Schema.Struct({ location: Schema.optionalKey(Schema.String), hash: Schema.optionalKey(Sha256Hex) })
  }),
  defineKind("session.forked", { payload: Schema.Struct({ from: ConversationId, at_event_id: EventId }) })
] as const
