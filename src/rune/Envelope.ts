/**
 * The envelope around every rune. Field order here is the order on disk and on
 * the wire. `idempotency_key` and `idempotency_hash` repeat the key and the body
 * hash of the command that caused the rune, so its outcome survives in the log.
 */
import * as Schema from "effect/Schema"
import { AgentId, ConversationId, EventId, IdempotencyKey, RuneId, Sha256Hex, TurnId } from "./Ids.ts"

export const Visibility = Schema.Literals(["public", "internal", "secret"])
export type Visibility = typeof Visibility.Type

/** Higher is more private. */
export const privacyRank: Readonly<Record<Visibility, number>> = { public: 0, internal: 1, secret: 2 }

/** Milliseconds since the epoch. */
export const TimestampMs = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const KindName = Schema.String.check(Schema.isPattern(/^[a-z]+\.[a-z_]+$/u))

export const envelopeFields = {
  event_id: EventId,
  rune_id: RuneId,
  conversation_id: ConversationId,
  agent_id: Schema.optionalKey(AgentId),
  turn_id: Schema.optionalKey(TurnId),
  kind: KindName,
  visibility: Visibility,
  ts_ms: TimestampMs,
  schema_version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  cause: Schema.optionalKey(EventId),
  idempotency_key: Schema.optionalKey(IdempotencyKey),
  idempotency_hash: Schema.optionalKey(Sha256Hex)
} as const

/** An envelope whose kind and payload are not looked at. */
export const OpenEnvelope = Schema.Struct({ ...envelopeFields, payload: Schema.Unknown })
export type OpenEnvelope = typeof OpenEnvelope.Type

export interface Envelope<Kind extends string, Payload> extends Omit<OpenEnvelope, "kind" | "payload"> {
  readonly kind: Kind
  readonly payload: Payload
}

/** Every envelope field, in the order in which it is written. */
export const envelopeKeys: ReadonlyArray<string> = [...Object.keys(envelopeFields), "payload"]
