// Operations for what runs outside the server: tools of a client, and outside agents.
import * as Schema from "effect/Schema"
import { AgentId, CallId, ConversationId } from "../../rune/Ids.ts"
import { Budget, JsonValue, Ordinal } from "../../rune/kinds/shared.ts"
import { Changed, OpenToolCall, OutsideAgentItem } from "../Answers.ts"
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
    name: "harness.launch",
    role: "operator",
    mutates: true,
    input: {
      harness: Schema.Literals(["claude", "codex", "generic"]),
      command: List(Text),
      workspace: Text,
      title: optional(Text),
      budget: optional(Budget),
      labels: optional(Schema.Record(Text, Text))
    },
    answer: Struct({
      ...changed,
      conversation_id: ConversationId,
      agent_id: AgentId,
      /** Where the holder of its terminal is to be started. */
      directory: Text,
      command: Text,
      prepend_args: List(Text),
      env: Schema.Record(Text, Text),
      /** Versions that are known to work; empty where any does. */
      versions: List(Text)
    }),
    about:
      "Makes a conversation for an outside agent and says how to start its program, on the machine of the server. `harness.attach` follows when it runs."
  }),
  defineOperation({
    name: "harness.attach",
    role: "operator",
    mutates: true,
    input: conversation,
    answer: Changed,
    about: "The program of an outside agent runs: from here on it is followed."
  }),
  defineOperation({
    name: "harness.list",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId) },
    answer: Struct({ items: List(OutsideAgentItem) }),
    about: "Outside agents whose program runs, or is about to."
  }),
  defineOperation({
    name: "harness.send",
    role: "operator",
    mutates: true,
    input: { ...conversation, text: Text },
    answer: Changed,
    about:
      "Types a text into an outside agent, as soon as it takes input: not while it starts, and not into one of its dialogs. It was delivered when a `user_prompt` event shows it."
  }),
  defineOperation({
    name: "harness.interrupt",
    role: "operator",
    mutates: true,
    input: conversation,
    answer: Changed,
    about: "Ends what an outside agent does, with the key that its program has for it."
  }),
  defineOperation({
    name: "terminal.attach",
    role: "operator",
    mutates: false,
    answeredBy: "connection",
    input: { ...conversation, columns: optional(Ordinal), rows: optional(Ordinal), watch: optional(Schema.Boolean) },
    answer: Struct({
      sub: Text,
      /** One types at a time: a second one, and one that asked for it, watches. */
      role: Schema.Literals(["typist", "viewer"]),
      columns: Ordinal,
      rows: Ordinal
    }),
    about:
      "Follows the terminal of an outside agent: first its screen as it is, then what its program writes, in pushed frames with `terminal`. `unsubscribe` leaves it running."
  }),
  defineOperation({
    name: "terminal.input",
    role: "operator",
    mutates: false,
    answeredBy: "connection",
    input: { sub: Text, data: Text },
    answer: Schema.Record(Text, JsonValue),
    about: "Keys for a terminal that this connection types in; `data` is base64. Answers with an empty object."
  }),
  defineOperation({
    name: "terminal.resize",
    role: "operator",
    mutates: false,
    answeredBy: "connection",
    input: { sub: Text, columns: Ordinal, rows: Ordinal },
    answer: Schema.Record(Text, JsonValue),
    about: "The size of the window of whoever types. Answers with an empty object."
  })
] as const
