/**
 * Identifiers of runes and of what they speak about: branded schemas with their
 * patterns, and generators that take their randomness as an argument. Every
 * pattern is safe in a file name, in JSON without escaping and in a URL.
 */
import * as Schema from "effect/Schema"
import type { IdSource } from "./IdSource.ts"

const patterned = (pattern: RegExp) => Schema.String.check(Schema.isPattern(pattern))

/** Position of a rune in its conversation: dense, starting at 1. */
export const EventId = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
export type EventId = typeof EventId.Type

export const RuneId = patterned(/^run_[0-9a-f]{16}$/u).pipe(Schema.brand("RuneId"))
export type RuneId = typeof RuneId.Type

export const ConversationId = patterned(/^conv_[0-9a-z]{8,64}$/u).pipe(Schema.brand("ConversationId"))
export type ConversationId = typeof ConversationId.Type

export const AgentId = patterned(/^agt_[0-9a-z]{4,64}$/u).pipe(Schema.brand("AgentId"))
export type AgentId = typeof AgentId.Type

export const TurnId = patterned(/^turn_[1-9][0-9]{0,14}$/u).pipe(Schema.brand("TurnId"))
export type TurnId = typeof TurnId.Type

/** Ours, `call_<n>` for native calls; outside agents keep the id their own runtime gave. */
export const CallId = patterned(/^[A-Za-z0-9_.:-]{1,128}$/u).pipe(Schema.brand("CallId"))
export type CallId = typeof CallId.Type

export const RequestId = patterned(/^req_[0-9a-f]{16}$/u).pipe(Schema.brand("RequestId"))
export type RequestId = typeof RequestId.Type

export const HookRunId = patterned(/^hookrun_[0-9a-z_]{1,64}$/u).pipe(Schema.brand("HookRunId"))
export type HookRunId = typeof HookRunId.Type

export const PlanId = patterned(/^plan_[0-9a-z]{1,64}$/u).pipe(Schema.brand("PlanId"))
export type PlanId = typeof PlanId.Type

export const TaskId = patterned(/^[A-Za-z0-9_.-]{1,64}$/u).pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type

export const CheckpointId = patterned(/^chk_[1-9][0-9]{0,14}$/u).pipe(Schema.brand("CheckpointId"))
export type CheckpointId = typeof CheckpointId.Type

/** Chosen by a client; opaque to us. */
export const IdempotencyKey = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(256))

/** SHA-256 of a canonical JSON text, in lower-case hex. */
export const Sha256Hex = patterned(/^[0-9a-f]{64}$/u)

/**
 * A text in one piece. JSON.stringify takes twice as long over a rune that holds a
 * string which was joined from parts.
 */
const inOnePiece = (text: string): string => String.fromCharCode(...Array.from(text, (one) => one.charCodeAt(0)))

export const makeRuneId = (source: IdSource): RuneId => source.runeId() as RuneId
export const makeConversationId = (source: IdSource): ConversationId =>
  inOnePiece(`conv_${source.hex16()}`) as ConversationId
export const makeAgentId = (source: IdSource): AgentId => inOnePiece(`agt_${source.hex16()}`) as AgentId
export const makeRequestId = (source: IdSource): RequestId => inOnePiece(`req_${source.hex16()}`) as RequestId
export const makePlanId = (source: IdSource): PlanId => inOnePiece(`plan_${source.hex16()}`) as PlanId

/** Turn, call, hook run and checkpoint ids are counted, not drawn: the fold of the log alone decides them. */
export const turnIdOf = (ordinal: number): TurnId => `turn_${ordinal}` as TurnId
export const callIdOf = (ordinal: number): CallId => `call_${ordinal}` as CallId
export const hookRunIdOf = (ordinal: number): HookRunId => `hookrun_${ordinal}` as HookRunId

export const checkpointIdOf = (ordinal: number): CheckpointId => `chk_${ordinal}` as CheckpointId

/** The ordinal inside a counted id, or 0 when the id was not made by counting. */
export const ordinalOf = (id: string): number => {
  const digits = /_([1-9][0-9]{0,14})$/u.exec(id)
  return digits === null ? 0 : Number(digits[1])
}

/** A run of a tool is known by the rune that asked for it. */
export const toolRunIdOf = (runeId: string): string => `toolrun_${runeId.slice("rne_".length)}`

export const isConversationId: (input: unknown) => input is ConversationId = Schema.is(ConversationId)
export const isAgentId: (input: unknown) => input is AgentId = Schema.is(AgentId)
export const isTurnId: (input: unknown) => input is TurnId = Schema.is(TurnId)
export const isRuneId: (input: unknown) => input is RuneId = Schema.is(RuneId)
export const isRequestId: (input: unknown) => input is RequestId = Schema.is(RequestId)
export const isCallId: (input: unknown) => input is CallId = Schema.is(CallId)
