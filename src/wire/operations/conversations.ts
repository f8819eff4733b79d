// Operations on a conversation as a whole.
import * as Schema from "effect/Schema"
import { AgentId, ConversationId } from "../../rune/Ids.ts"
import { Ordinal } from "../../rune/kinds/shared.ts"
import { Changed, ConversationItem, ConversationPrompt, ConversationSummary } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { because, changed, conversation, createFields, optional } from "./fields.ts"

const { Array: List, String: Text, Struct } = Schema

const changesState = <const Name extends string>(name: Name, about: string) =>
  defineOperation({ name, role: "operator", mutates: true, input: because, answer: Changed, about })

export const conversationOperations = [
  defineOperation({
    name: "conversation.create",
    role: "operator",
    mutates: true,
    input: createFields,
    answer: Struct({ conversation_id: ConversationId, root_agent_id: AgentId, ...changed }),
    about:
      "Starts a conversation with its root agent. For `unsafe_workspace` see [what can be a workspace](SECURITY.md#what-can-be-a-workspace)."
  }),
  defineOperation({
    name: "conversation.list",
    role: "viewer",
    mutates: false,
    input: {
      state: optional(Text),
      label: optional(Text),
      q: optional(Text),
      limit: optional(Ordinal),
      cursor: optional(Text)
    },
    answer: Struct({
      items: List(ConversationItem),
      next_cursor: optional(Text),
      /** The catalog is being filled from the logs: conversations may be missing. */
      rebuilding: optional(Schema.Literal(true))
    }),
    about:
      "Lists conversations, at most 200 per page. `rebuilding` is true while the catalog is rebuilt from the logs and conversations may be missing."
  }),
  defineOperation({
    name: "conversation.get",
    role: "viewer",
    mutates: false,
    input: {
      ...conversation,
      /** As it was right after this event. */
      at_event_id: optional(Ordinal)
    },
    answer: ConversationSummary,
    about: "Summarizes the conversation; with `at_event_id`, as it was right after that event."
  }),
  defineOperation({
    name: "conversation.prompt",
    role: "operator",
    mutates: false,
    input: { ...conversation, agent_id: optional(AgentId) },
    answer: ConversationPrompt,
    about:
      "What the agent's model gets in addition to the messages: instructions, whether they were sent, notes, what the next request would add, parts with their hashes."
  }),
  changesState("conversation.pause", "Starts no more turns until it is resumed."),
  changesState("conversation.resume", "Continues a paused conversation."),
  changesState("conversation.unsuspend", "Continues a suspended conversation."),
  changesState("conversation.close", "Closes it: its agents stop, and it accepts no more messages."),
  changesState("conversation.archive", "Moves a closed conversation to the archive."),
  changesState("conversation.restore", "Restores a conversation from the archive."),
  defineOperation({
    name: "conversation.fork",
    role: "operator",
    mutates: true,
    input: {
      ...conversation,
      at_event_id: Ordinal,
      /** What was under way goes on in the fork too; it is over there, unless told. */
      continue: optional(Schema.Boolean)
    },
    answer: Struct({ conversation_id: ConversationId, ...changed }),
    about: "Copies the conversation up to an event. Work in progress is ended in the fork, unless `continue` is true."
  })
] as const
