/** Runes of an agent's life inside a conversation, native or outside. */
import * as Schema from "effect/Schema"
import { MonitorState, MonitorSubState } from "../AgentEvent.ts"
import { AgentId, Sha256Hex } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { AgentStats, Amount, Budget, BudgetMeasure, Content, ErrorInfo, JsonValue, Name } from "./shared.ts"

/** One of the things an agent was told: an instruction file by its path, or `environment`, `date`, `git`. */
export const InstructionPart = Schema.Struct({
  name: Name,
  /** Of what it said then; without it, it is there no more. */
  sha256: Schema.optionalKey(Sha256Hex)
})
export type InstructionPart = typeof InstructionPart.Type

export const agentKinds = [
  defineKind("agent.spawning", {
    meaning: "An agent is being set up, with its role, model and budget.",
    views: ["catalog", "state_events", "agent_events"],
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
  defineKind("agent.ready", {
    meaning: "An agent is ready for a turn.",
    views: ["catalog", "state_events", "agent_events"],
    payload: Schema.Struct({ agent_id: AgentId })
  }),
  /** What the agent's model is told about where it works: first the beginning of its prompt, later what has changed. */
  defineKind("agent.instructed", {
    meaning: "The instructions of an agent: the first part of its prompt, later only the changes.",
    payload: Schema.Struct({ agent_id: AgentId, text: Name, parts: Schema.Array(InstructionPart) }),
    visibility: "internal"
  }),
  defineKind("agent.failed", {
    meaning: "An agent could not be set up.",
    views: ["catalog", "state_events", "agent_events"],
    payload: Schema.Struct({ agent_id: AgentId, error: ErrorInfo }),
    runeClass: "terminal"
  }),
  defineKind("agent.terminated", {
    meaning: "An agent ended, with its totals.",
    views: ["catalog", "state_events", "agent_events"],
    payload: Schema.Struct({ agent_id: AgentId, reason: Schema.String, stats: AgentStats }),
    runeClass: "terminal"
  }),
  defineKind("agent.message", {
    meaning: "One agent sent a message to another.",
    views: ["catalog"],
    payload: Schema.Struct({
      to_agent_id: AgentId,
      from_agent_id: Schema.optionalKey(AgentId),
      content: Content
    }),
    visibility: "internal"
  }),
  defineKind("agent.budget_exhausted", {
    meaning: "An agent used up one of its budgets.",
    payload: Schema.Struct({ agent_id: AgentId, which: BudgetMeasure, used: Amount, limit: Amount }),
    runeClass: "terminal"
  }),
  defineKind("agent.state_changed", {
    meaning: "The monitor of an outside agent shows another state.",
    views: ["agent_events"],
    payload: Schema.Struct({ state: MonitorState, sub_state: Schema.optionalKey(MonitorSubState) })
  })
] as const
