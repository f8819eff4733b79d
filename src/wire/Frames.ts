/**
 * What goes over the socket besides requests: the first frame, answers, and the
 * frames that are pushed. Readers ignore fields they do not know.
 */
import * as Schema from "effect/Schema"
import { OpenEnvelope } from "../rune/Envelope.ts"
import { AgentId, ConversationId } from "../rune/Ids.ts"
import { Count, JsonValue, Ordinal } from "../rune/kinds/shared.ts"
import { AttentionItem } from "./Answers.ts"
import { errorCodes, type WireError } from "./Codes.ts"
import { roles } from "./Operations.ts"

const optional = Schema.optionalKey
const AnyObject = Schema.Record(Schema.String, JsonValue)

export const Hello = Schema.Struct({
  id: Schema.String,
  op: Schema.Literal("hello"),
  protocol: Schema.Literal(1),
  token: optional(Schema.String),
  ticket: optional(Schema.String),
  client: optional(Schema.Struct({ name: Schema.String, version: optional(Schema.String) }))
})

export const Welcome = Schema.Struct({
  protocol: Schema.Literal(1),
  server: Schema.String,
  principal: Schema.String,
  role: Schema.Literals(roles),
  limits: Schema.Record(Schema.String, Schema.Finite)
})

export const ErrorBody = Schema.Struct({
  code: Schema.Literals(Object.keys(errorCodes) as ReadonlyArray<keyof typeof errorCodes>),
  message: Schema.String,
  data: optional(AnyObject)
})

/** Null where the message was so malformed that its id is not known. */
const AnswerId = Schema.NullOr(Schema.String)

export const Answer = Schema.Union([
  Schema.Struct({ id: AnswerId, ok: AnyObject }),
  Schema.Struct({ id: AnswerId, error: ErrorBody })
])

export const Gap = Schema.Struct({
  /** Where all conversations are followed. */
  conversation_id: optional(ConversationId),
  from: Ordinal,
  to: Ordinal,
  reason: Schema.String
})

export const LiveText = Schema.Struct({
  conversation_id: optional(ConversationId),
  agent_id: AgentId,
  turn_id: Schema.String,
  /** Whose answer it is part of, and how many characters of it come before: durable deltas replace it by this place. */
  request_id: Schema.String,
  offset: Count,
  text: Schema.String
})

export const AttentionChange = Schema.Struct({
  change: Schema.Literals(["raised", "changed", "resolved"]),
  ...AttentionItem.fields
})

export const TerminalFrame = Schema.Struct({
  /** What the program wrote, in base64; characters may be torn between two frames. */
  output: optional(Schema.String),
  /** The program has ended, or nobody knows how it did. Nothing comes after this. */
  ended: optional(Schema.Struct({ exit_code: Schema.NullOr(Schema.Int), signal: Schema.NullOr(Schema.Int) }))
})

const pushed = <Fields extends Schema.Struct.Fields>(fields: Fields) => Schema.Struct({ sub: Schema.String, ...fields })

export const Pushed = Schema.Union([
  pushed({ rune: OpenEnvelope }),
  /** An event of the view `state_events` or `agent_events`. */
  pushed({ event: AnyObject }),
  pushed({ caught_up: Schema.Struct({ head: Count }) }),
  pushed({ gap: Gap }),
  pushed({ live: LiveText }),
  pushed({ attention: AttentionChange }),
  pushed({ terminal: TerminalFrame }),
  /** The subscription cannot go on; or, where all conversations are followed, the part of it that is named. */
  pushed({ conversation_id: optional(ConversationId), error: ErrorBody })
])

export const Ticket = Schema.Struct({ ticket: Schema.String, expires_ms: Count })

/** Fields of a hello, as they come: nothing of them is checked yet. */
export type HelloFields = { readonly [Field in keyof typeof Hello.Encoded]?: unknown }

/** Frames as the server writes them; what is inside an answer, an event or the data of an error has a schema of its own. */
export type WelcomeFrame = { readonly id: string | null; readonly ok: typeof Welcome.Encoded }
export type ErrorFrame = { readonly id: string | null; readonly error: WireError }

type Subscribed<Body> = { readonly sub: string } & Body

export type PushedFrame =
  | Subscribed<{ readonly event: object }>
  | Subscribed<{ readonly caught_up: { readonly head: number } }>
  | Subscribed<{ readonly gap: typeof Gap.Encoded }>
  | Subscribed<{ readonly live: typeof LiveText.Encoded }>
  | Subscribed<{ readonly attention: typeof AttentionChange.Encoded }>
  | Subscribed<{ readonly terminal: typeof TerminalFrame.Encoded }>
  | Subscribed<{ readonly conversation_id?: string; readonly error: WireError }>
