// Operations that change what a connection is sent, and the list of what needs a person.
import * as Schema from "effect/Schema"
import { ConversationId } from "../../rune/Ids.ts"
import { Count, JsonValue } from "../../rune/kinds/shared.ts"
import { AttentionItem, fromAll } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { optional } from "./fields.ts"

const { Array: List, String: Text, Struct } = Schema

export const View = Schema.Literals(["runes", "state_events", "agent_events"])
export type View = typeof View.Type

export const feedOperations = [
  defineOperation({
    name: "subscribe",
    role: "viewer",
    mutates: false,
    answeredBy: "connection",
    input: {
      conversation_id: Schema.Union([ConversationId, Schema.Literal("*")]),
      after: optional(Schema.Union([Count, Schema.Literal("tail")])),
      /** With "*": the last event the client has of each conversation it knows. */
      cursors: optional(Schema.Record(ConversationId, Count)),
      /** With "*" and "tail": conversations that are not named begin with their first rune at or after this time. */
      since_ms: optional(Count),
      view: optional(View),
      kinds: optional(List(Text)),
      visibility: optional(Schema.Literals(["public", "internal"])),
      live: optional(Schema.Boolean)
    },
    /** `since_ms` comes with "*": what to come back with. */
    answer: Struct({ sub: Text, head: Count, since_ms: optional(Schema.Int) }),
    about:
      'Subscribes to a conversation, or to all with `"*"`. `after` is an event id, or `"tail"`. `cursors` and `since_ms` apply to `"*"`: the last event of each known conversation, and the time after which other conversations are new; the answer has the `since_ms` for the next subscription. `view` is `runes`, `state_events` or `agent_events`.'
  }),
  defineOperation({
    name: "unsubscribe",
    role: "viewer",
    mutates: false,
    answeredBy: "connection",
    input: { sub: Text },
    answer: Schema.Record(Text, JsonValue),
    about: "Ends a subscription. Answers with an empty object."
  }),
  defineOperation({
    name: "attention.subscribe",
    role: "viewer",
    mutates: false,
    answeredBy: "connection",
    input: {},
    answer: Struct({ sub: Text }),
    about: "Subscribes to attention: everything that needs a person."
  }),
  defineOperation({
    name: "attention.list",
    role: "viewer",
    mutates: false,
    input: {},
    answer: fromAll(AttentionItem),
    about:
      "Lists everything that needs a person now. `left_out` counts conversations that were not checked because there are too many."
  })
] as const
