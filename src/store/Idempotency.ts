// What became of a command that came with a key. Key and body hash travel in the runes the command caused, so the
// answer is in the log; this only finds it. A key is remembered for 24 hours.
import type { AnyRune } from "../rune/Rune.ts"
import { limits } from "./Limits.ts"

export interface Outcome {
  readonly key: string
  /** Of the command's body; the same key with another one is a conflict. */
  readonly hash: string
  readonly conversationId: string
  readonly firstEventId: number
  readonly lastEventId: number
  readonly tsMs: number
}

export type Judgement =
  /** The key is new, or was forgotten. */
  | { readonly _tag: "Fresh" }
  | { readonly _tag: "Repeat"; readonly outcome: Outcome }
  | { readonly _tag: "Conflict"; readonly outcome: Outcome }

export const isExpired = (outcome: { readonly tsMs: number }, nowMs: number): boolean =>
  outcome.tsMs + limits.idempotencyTtlMs <= nowMs

/** What a command with this key and body is, given what is remembered of the key. */
export const judge = (
  outcome: Outcome | undefined,
  command: { readonly hash: string; readonly nowMs: number }
): Judgement => {
  if (outcome === undefined || isExpired(outcome, command.nowMs)) return { _tag: "Fresh" }
  return outcome.hash === command.hash ? { _tag: "Repeat", outcome } : { _tag: "Conflict", outcome }
}

/** The outcomes in a stretch of runes, each key once, the newest use of it. */
export const outcomesOf = (runes: Iterable<AnyRune>): ReadonlyMap<string, Outcome> => {
  const found = new Map<string, Outcome>()
  for (const rune of runes) noteOutcome(found, rune)
  return found
}

/** The later use of a key goes on with the earlier one, or replaces it. */
export const mergeOutcome = (before: Outcome | undefined, after: Outcome): Outcome => {
  const goesOn =
    before !== undefined &&
    before.conversationId === after.conversationId &&
    before.hash === after.hash &&
    before.firstEventId <= after.firstEventId &&
    !isExpired(before, after.tsMs)
  return goesOn ? { ...after, firstEventId: before.firstEventId, tsMs: before.tsMs } : after
}

/** Adds a rune to what is known of keys; the oldest are forgotten when there are too many. */
export const noteOutcome = (known: Map<string, Outcome>, rune: AnyRune): void => {
  const key = rune.idempotency_key
  if (key === undefined) return
  const { conversation_id: conversationId, event_id: eventId, ts_ms: tsMs } = rune
  const hash = rune.idempotency_hash ?? ""
  const outcome = { key, hash, conversationId, firstEventId: eventId, lastEventId: eventId, tsMs }
  const merged = mergeOutcome(known.get(key), outcome)
  known.delete(key)
  known.set(key, merged)
  if (known.size > limits.idempotencyKeysMax) known.delete(known.keys().next().value!)
}

/** The outcome of a key in a stretch of runes, unless it is too old to count. */
export const findOutcome = (
  runes: Iterable<AnyRune>,
  wanted: { readonly key: string; readonly nowMs: number }
): Outcome | undefined => {
  const outcome = outcomesOf(runes).get(wanted.key)
  return outcome === undefined || isExpired(outcome, wanted.nowMs) ? undefined : outcome
}
