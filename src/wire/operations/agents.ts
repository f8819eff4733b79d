// Operations on the agents of a conversation, and on budgets.
import * as Schema from "effect/Schema"
import { AgentId } from "../../rune/Ids.ts"
import { Budget, JsonValue, Name } from "../../rune/kinds/shared.ts"
import { AgentItem, Changed } from "../Answers.ts"
import { InputContent } from "../Input.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { because, changed, conversation, optional } from "./fields.ts"

const { Array: List, String: Text, Struct } = Schema

export const agentOperations = [
  defineOperation({
    name: "agent.spawn",
    role: "operator",
    mutates: true,
    input: {
      ...conversation,
      role: Name,
      model: optional(Text),
      parent_id: optional(AgentId),
      name: optional(Text),
      instructions: optional(Text),
      tools: optional(List(JsonValue)),
      budget: optional(Budget)
    },
    answer: Struct({ agent_id: AgentId, ...changed }),
    about: "Starts an agent. Its parent is the root agent, unless `parent_id` names another."
  }),
  defineOperation({
    name: "agent.message",
    role: "operator",
    mutates: true,
    input: { ...conversation, agent_id: AgentId, content: InputContent },
    answer: Changed,
    about: "Sends a message to one agent."
  }),
  defineOperation({
    name: "agent.kill",
    role: "operator",
    mutates: true,
    input: { ...because, agent_id: AgentId, force: optional(Schema.Boolean) },
    answer: Changed,
    about: "Ends the agent; with `force`, also during a turn."
  }),
  defineOperation({
    name: "agent.list",
    role: "viewer",
    mutates: false,
    input: conversation,
    answer: Struct({ items: List(AgentItem) }),
    about: "Lists every agent of the conversation, including ended ones."
  }),
  defineOperation({
    name: "budget.set",
    role: "operator",
    mutates: true,
    input: { ...conversation, agent_id: optional(AgentId), ...Budget.fields },
    answer: Changed,
    about: "Sets the budget of the conversation, or of the named agent."
  })
] as const
