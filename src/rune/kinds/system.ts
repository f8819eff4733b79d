/** Runes that the server writes about its settings and about itself. */
import * as Schema from "effect/Schema"
import { AgentId, EventId, RequestId, TurnId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { Budget, ConversationConfig, Count, ErrorSource, JsonValue, Name, Usage } from "./shared.ts"

export const systemKinds = [
  defineKind("config.updated", {
    meaning: "Settings of the conversation changed.",
    views: ["catalog"],
    references: [["revoked_grants", "*"]],
    payload: Schema.Struct({
      changes: ConversationConfig,
      agent_id: Schema.optionalKey(AgentId),
      budget: Schema.optionalKey(Budget),
      /** Permissions that hold no longer, by the events that gave them. */
      revoked_grants: Schema.optionalKey(Schema.Array(EventId)),
      principal: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("system.error", {
    meaning: "Something went wrong outside any turn.",
    views: ["state_events"],
    payload: Schema.Struct({
      code: Name,
      message: Schema.String,
      retryable: Schema.Boolean,
      source: ErrorSource,
      data: Schema.optionalKey(JsonValue)
    })
  }),
  defineKind("system.invariant_violation", {
    meaning: "A checker found a broken invariant.",
    references: [["event_id"]],
    payload: Schema.Struct({
      invariant: Name,
      detail: Schema.String,
      event_id: Schema.optionalKey(EventId)
    }),
    visibility: "internal"
  }),
  defineKind("system.recovered", {
    meaning: "Work left unfinished by a crash was resolved at a start.",
    views: ["catalog"],
    payload: Schema.Struct({
      pending: Count,
      resolved: Count,
      detail: Schema.optionalKey(Schema.Array(Schema.String)),
      /** Requests that were being answered when the server stopped, and what each is charged with. */
      cut_off: Schema.optionalKey(
        Schema.Array(Schema.Struct({ agent_id: AgentId, turn_id: TurnId, request_id: RequestId, usage: Usage }))
      )
    }),
    visibility: "internal"
  }),
  defineKind("system.thinned", {
    meaning: "Superseded fragments were dropped; ids in the range no longer have a rune.",
    references: [["from"], ["to"]],
    payload: Schema.Struct({ from: EventId, to: EventId }),
    visibility: "internal"
  })
] as const
