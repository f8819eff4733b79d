/** Runes of agents that run outside the server and are only watched and spoken to. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../AgentEvent.ts"
import { defineKind } from "../KindDefinition.ts"
import { Name, Ordinal } from "./shared.ts"

export const harnessKinds = [
  defineKind("harness.attached", {
    meaning: "An outside agent is connected.",
    views: ["catalog"],
    payload: Schema.Struct({
      harness: Name,
      pid: Schema.optionalKey(Ordinal),
      session_ref: Schema.optionalKey(Schema.String),
      command: Schema.optionalKey(Schema.Array(Schema.String)),
      workspace: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("harness.event", {
    meaning: "An event of an outside agent, normalized.",
    views: ["agent_events"],
    payload: Schema.Struct({ event: AgentEvent })
  }),
  defineKind("harness.input_sent", {
    meaning: "Text was sent to an outside agent.",
    payload: Schema.Struct({ text: Schema.String, principal: Schema.optionalKey(Schema.String) })
  }),
  defineKind("harness.detached", {
    meaning: "An outside agent is disconnected.",
    views: ["catalog", "agent_events"],
    payload: Schema.Struct({
      reason: Schema.String,
      exit_code: Schema.optionalKey(Schema.Int),
      signal: Schema.optionalKey(Schema.String)
    }),
    runeClass: "terminal"
  }),
  defineKind("harness.recovered", {
    meaning: "The state of an outside agent was corrected from its transcript.",
    payload: Schema.Struct({ reason: Schema.String })
  })
] as const
