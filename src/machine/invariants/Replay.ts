/**
 * Whether a log always folds to the same state: from zero, twice, and on from a
 * snapshot taken anywhere. Used by tests and by verification of stored logs.
 */
import type { ConversationId } from "../../rune/Ids.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { canonicalHash } from "../Canonical.ts"
import { evolve, fold } from "../evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../State.ts"
import type { Violation } from "./World.ts"

/** What a snapshot holds: plain JSON, nothing shared with the state it was taken of. */
export const snapshotOf = (state: ConversationState): string => JSON.stringify(state)

export const restoreSnapshot = (text: string): ConversationState => JSON.parse(text) as ConversationState

export interface ReplayOptions {
  readonly conversation_id: ConversationId
  /** Take a snapshot after every this many runes; 0 takes none. */
  readonly snapshotEvery: number
}

export interface Replay {
  readonly hash: string
  readonly violations: ReadonlyArray<Violation>
}

/** Folds the log in every way that has to agree. */
export const checkReplay = (runes: ReadonlyArray<AnyRune>, options: ReplayOptions): Replay => {
  const { conversation_id: id, snapshotEvery } = options
  const violations: Array<Violation> = []
  const hash = canonicalHash(fold(runes, id))
  const head = runes.at(-1)?.event_id ?? 0
  if (canonicalHash(fold(runes, id)) !== hash) {
    violations.push({ invariant: "INV-REPLAY-DETERMINISTIC", event_id: head, detail: "two folds differ" })
  }
  let live = emptyConversation(id)
  for (const [index, rune] of runes.entries()) {
    live = evolve(live, rune)
    if (snapshotEvery === 0 || (index + 1) % snapshotEvery !== 0) continue
    const before = canonicalHash(live)
    live = restoreSnapshot(snapshotOf(live))
    if (canonicalHash(live) !== before) {
      const detail = "a snapshot reads back differently"
      violations.push({ invariant: "INV-SNAPSHOT-INTEGRITY", event_id: rune.event_id, detail })
    }
  }
  if (canonicalHash(live) !== hash) {
    const detail = "the fold through snapshots differs"
    violations.push({ invariant: "INV-REPLAY-IDEMPOTENT", event_id: head, detail })
  }
  return { hash, violations }
}
