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
    meaning: "A conversation begins, with its settings and who asked for it.",
    views: ["catalog"],
    payload: Schema.Struct({
      config: ConversationConfig,
      principal: Schema.optionalKey(Schema.String),
      budget: Schema.optionalKey(Budget)
    })
  }),
  defineKind("session.activated", {
    meaning: "The conversation accepts input; the rune names its root agent.",
    views: ["state_events"],
    payload: Schema.Struct({ root_agent_id: AgentId })
  }),
  defineKind("session.paused", {
    meaning: "New work is held until the conversation is resumed.",
    views: ["state_events"],
    payload: Reason
  }),
  defineKind("session.resumed", {
    meaning: "A pause ends.",
    views: ["state_events"],
    payload: OptionalReason
  }),
  defineKind("session.suspended", {
    meaning:
      "The server stopped the work and a person decides how to continue: a budget is used up, or turns keep failing.",
    views: ["state_events"],
    payload: Schema.Struct({ reason: Schema.String, budget_info: Schema.optionalKey(BudgetInfo) })
  }),
  defineKind("session.unsuspended", {
    meaning: "A person ended a suspension.",
    views: ["state_events"],
    payload: OptionalReason
  }),
  defineKind("session.closing", {
    meaning: "The conversation accepts no more input and ends running work.",
    views: ["state_events"],
    payload: Reason,
    runeClass: "terminal"
  }),
  defineKind("session.closed", {
    meaning: "The conversation ended, with its totals.",
    views: ["state_events"],
    payload: Schema.Struct({ final_stats: FinalStats }),
    runeClass: "terminal"
  }),
  defineKind("session.archived", {
    meaning: "The log moved to a compressed archive.",
    views: ["state_events"],
    payload: Schema.Struct({ location: Schema.String, hash: Sha256Hex }),
    runeClass: "terminal"
  }),
  defineKind("session.restored", {
    meaning: "An archived conversation was restored to the log.",
    views: ["state_events"],
    payload: Schema.Struct({ location: Schema.optionalKey(Schema.String), hash: Schema.optionalKey(Sha256Hex) })
  }),
  defineKind("session.forked", {
    meaning: "This conversation starts as a copy of another one up to an event.",
    views: ["catalog"],
    payload: Schema.Struct({ from: ConversationId, at_event_id: EventId })
  })
] as const
