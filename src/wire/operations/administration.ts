// Operations on the server itself: its tokens, its end, its figures.
import * as Schema from "effect/Schema"
import { ConversationId } from "../../rune/Ids.ts"
import { Amount, Count, JsonValue } from "../../rune/kinds/shared.ts"
import { UsageTotals, WindowFigures } from "../Answers.ts"
import { defineOperation, roles } from "../OperationDefinition.ts"
import { optional } from "./fields.ts"

const { Array: List, NullOr, String: Text, Struct } = Schema

const TokenName = Text.check(Schema.isPattern(/^[\w.-]{1,64}$/u))

/** Figures of the whole server, by name; more may come. */
const serverFigures = Schema.Record(Text, JsonValue)

export const administrationOperations = [
  defineOperation({
    name: "token.list",
    role: "admin",
    mutates: false,
    input: {},
    /** Names and roles; the token of the data directory, which is `local`, is not among them. */
    answer: Struct({ items: List(Struct({ name: Text, role: Text })) }),
    about: "Lists names and roles of tokens, without the token of the data directory."
  }),
  defineOperation({
    name: "token.create",
    role: "admin",
    mutates: false,
    input: { name: TokenName, role: Schema.Literals(roles) },
    /** The token is told once. */
    answer: Struct({ name: Text, role: Text, token: Text }),
    about: "Creates a token. It is returned once, and is valid immediately."
  }),
  defineOperation({
    name: "token.remove",
    role: "admin",
    mutates: false,
    input: { name: TokenName },
    answer: Struct({ name: Text }),
    about: "Removes a token immediately; connections that use it are closed."
  }),
  defineOperation({
    name: "server.info",
    role: "viewer",
    mutates: false,
    input: {},
    answer: Struct({
      version: Text,
      pid: Count,
      started_ms: Count,
      /** Answers in conversations that name no model. */
      model: Text,
      /** What holds commands; null on a server without commands. */
      sandbox: NullOr(Struct({ level: Text, detail: Text, contained: Schema.Boolean }))
    }),
    about: "Version, process, default model and sandbox of the server."
  }),
  defineOperation({
    name: "server.stop",
    role: "admin",
    mutates: false,
    input: { reason: optional(Text) },
    answer: Struct({ stopping: Schema.Boolean }),
    about: "Stops the server cleanly."
  }),
  defineOperation({
    name: "server.fibers",
    role: "admin",
    mutates: false,
    input: {},
    /** A tree in reading order: whatever is deeper belongs to the nearest item above that is not. */
    answer: Struct({
      items: List(Struct({ depth: Count, fiber_id: optional(Count), name: Text })),
      left_out: Count
    }),
    about:
      "What the server is doing now, for debugging: each active conversation, its agents, their turns, and the model call, tools and hooks of each."
  }),
  defineOperation({
    name: "stats",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId), window: optional(Text) },
    /** Of a conversation, or of the server; `window` where one was asked for. */
    answer: Schema.Union([
      Struct({
        agents_alive: Count,
        cost_usd: NullOr(Amount),
        last_event_id: Count,
        tool_calls: Count,
        turns: Count,
        usage: UsageTotals,
        window: optional(WindowFigures)
      }),
      serverFigures
    ]),
    about:
      "Figures of a conversation or of the server; with a window (`90s`, `15m`, `24h`, `7d`), only those of that period."
  })
] as const
