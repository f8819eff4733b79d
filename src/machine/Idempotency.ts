/**
 * How much a conversation remembers of commands that came with a key: all of them for
 * a day. Beyond what it can hold in a day a new key is refused: a command that is not
 * taken is safer than one whose repetition would be taken again.
 */
import { elementAt } from "../rune/Elements.ts"
import { limits } from "./MachineLimits.ts"
import type { Outcome } from "./State.ts"

const perOutcome = 256
const perChar = 2
const keyCharsMax = 256

/** Bytes that remembering a key takes, about. */
const bytesOf = (key: string): number => perOutcome + perChar * key.length

/** So many fit whatever their keys are; below it nobody has to add up. */
const surelyFit = Math.floor(limits.idempotencyBytesMax / (perOutcome + perChar * keyCharsMax))

export const isExpired = ({ ts_ms: tsMs }: Pick<Outcome, "ts_ms">, atMs: number): boolean =>
  tsMs <= atMs - limits.idempotencyTtlMs

/** How many of the oldest have to go so that these fit, and one more with the key. */
export const outcomesBeyond = (outcomes: ReadonlyArray<Pick<Outcome, "key">>, key: string): number => {
  if (outcomes.length < surelyFit) return 0
  let bytes = outcomes.reduce((sum, outcome) => sum + bytesOf(outcome.key), bytesOf(key))
  let count = 0
  for (; bytes > limits.idempotencyBytesMax && count < outcomes.length; count += 1)
    bytes -= bytesOf(elementAt(outcomes, count).key)
  return count
}
