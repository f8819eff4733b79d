// Operations for what runs outside the server: tools of a client, and outside agents.
import * as Schema from "effect/Schema"
import { CallId, ConversationId } from "../../rune/Ids.ts"
import { JsonValue, Ordinal } from "../../rune/kinds/shared.ts"
import { Changed, OpenToolCall } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { changed, conversation, optional } from "./fields.ts"

const { Array: List, String: Text, Struct } = Schema

export const outsideOperations = [
  defineOperation({
    name: "tool.register",
    role: "operator",
    mutates: true,
    input: { ...conversation, tools: List(JsonValue) },
    answer: Struct({
      ...changed,
      tools: List(Text),
      /** Calls of these tools that were asked for and are not over. */
      open: List(OpenToolCall),
      /** Those of them that have started and wait for their result. */
      waiting: List(Struct({ ...OpenToolCall.fields, attempt: Ordinal }))
    }),
    about:
      "Tools that the client runs itself, for as long as its connection lasts. `open` are the calls of them that are not over, `waiting` those that have started."
  }),
  defineOperation({
    name: "tool.result",
    role: "operator",
    mutates: true,
    input: {
      ...conversation,
      call_id: CallId,
      status: optional(Schema.Literals(["success", "error"])),
      output: optional(Text)
    },
    answer: Changed,
    about: "What came of a call of such a tool."
  }),
  defineOperation({
    name: "harness.list",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId) },
    answer: Struct({ items: List(JsonValue) }),
    about: "Outside agents; no server has any yet."
  }),
  defineOperation({
    name: "harness.send",
    role: "operator",
    mutates: true,
    input: { ...conversation, text: Text },
    answer: Changed,
    about: "Outside agents; no server has any yet."
  }),
  defineOperation({
    name: "harness.interrupt",
    role: "operator",
    mutates: true,
    input: conversation,
    answer: Changed,
    about: "Outside agents; no server has any yet."
  })
] as const
