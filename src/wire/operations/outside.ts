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
      "Registers client-run tools for the lifetime of the connection. `open` lists their unfinished calls, `waiting` those that have started."
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
    about: "Submits the result of a call of a client-run tool."
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
      "Creates a conversation for an outside agent and returns how to start its program, on the machine of the server. Call `harness.attach` when it runs."
  }),
  defineOperation({
    name: "harness.attach",
    role: "operator",
    mutates: true,
    input: conversation,
    answer: Changed,
    about: "Reports that the program of an outside agent runs; the server follows it from then on."
  }),
  defineOperation({
    name: "harness.list",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId) },
    answer: Struct({ items: List(OutsideAgentItem) }),
    about: "Lists outside agents whose program runs or is starting."
  }),
  defineOperation({
    name: "harness.send",
    role: "operator",
    mutates: true,
    input: { ...conversation, text: Text },
    answer: Changed,
    about:
      "Types text into an outside agent as soon as it accepts input: not while it starts, and not into one of its dialogs. A `user_prompt` event confirms the delivery."
  }),
  defineOperation({
    name: "harness.interrupt",
    role: "operator",
    mutates: true,
    input: conversation,
    answer: Changed,
    about: "Interrupts an outside agent, with the interrupt key of its program."
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
      "Subscribes to the terminal of an outside agent: first its current screen, then the output of its program, in pushed frames with `terminal`. `unsubscribe` leaves it running."
  }),
  defineOperation({
    name: "terminal.input",
    role: "operator",
    mutates: false,
    answeredBy: "connection",
    input: { sub: Text, data: Text },
    answer: Schema.Record(Text, JsonValue),
    about: "Sends keys to a terminal of this connection; `data` is base64. Answers with an empty object."
  }),
  defineOperation({
    name: "terminal.resize",
    role: "operator",
    mutates: false,
    answeredBy: "connection",
    input: { sub: Text, columns: Ordinal, rows: Ordinal },
    answer: Schema.Record(Text, JsonValue),
    about: "Sets the window size of the typing client. Answers with an empty object."
  })
] as const
