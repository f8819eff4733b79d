// Every log that a test of the runtime produces is read back from the store, checked against the invariants, and
// folded in every way that has to agree: live, from zero, and on from snapshots.
import { expect } from "vitest"
import { canonicalHash } from "#src/machine/Canonical.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { InvariantChecker, type Violation } from "#src/machine/invariants/Invariants.ts"
import { checkReplay } from "#src/machine/invariants/Replay.ts"
import type { ConversationState } from "#src/machine/State.ts"
import type { ConversationId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import type { Gap } from "#src/store/runes/Page.ts"
import type { RuneStore } from "#src/store/runes/RuneStore.ts"

export const readLog = async (store: RuneStore, id: ConversationId): Promise<ReadonlyArray<AnyRune>> => {
  const runes: Array<AnyRune> = []
  for await (const page of store.pagesNow(id, { after: 0 })) runes.push(...page.runes)
  return runes
}

export interface StoredLog {
  readonly runes: ReadonlyArray<AnyRune>
  /** Ranges that thinning left out. */
  readonly gaps: ReadonlyArray<Gap>
}

export const readStored = async (store: RuneStore, id: ConversationId): Promise<StoredLog> => {
  const runes: Array<AnyRune> = []
  const gaps: Array<Gap> = []
  for await (const page of store.pagesNow(id, { after: 0 })) {
    runes.push(...page.runes)
    gaps.push(...page.gaps)
  }
  return { runes, gaps }
}

/** What the runes break, where the gaps between them are known. */
const violationsOf = ({ gaps, runes }: StoredLog): ReadonlyArray<Violation> => {
  const checker = new InvariantChecker()
  let next = 0
  for (const rune of runes) {
    while (gaps[next] !== undefined && gaps[next]!.from < rune.event_id) checker.skip(gaps[next++]!)
    checker.check(rune)
  }
  return checker.violations
}

/** Snapshots after every rune of a short log, and at fewer places of a long one. */
const snapshotEvery = (length: number): number => Math.max(1, Math.ceil(length / 60))

export interface CheckedLog {
  readonly id: ConversationId
  readonly runes: ReadonlyArray<AnyRune>
  readonly hash: string
}

/** Checks one log; a live state, where there is one, must be the fold of it. */
export const checkRunes = (id: ConversationId, runes: ReadonlyArray<AnyRune>, live?: ConversationState): CheckedLog =>
  checkStored(id, { runes, gaps: [] }, live)

export const checkStored = (id: ConversationId, stored: StoredLog, live?: ConversationState): CheckedLog => {
  const { runes } = stored
  const replay = checkReplay(runes, { conversation_id: id, snapshotEvery: snapshotEvery(runes.length) })
  const violations = [...violationsOf(stored), ...replay.violations]
  expect(violations, `invariants of ${id}`).toEqual([])
  if (live !== undefined) expect(canonicalHash(live), `live state of ${id}`).toBe(replay.hash)
  expect(canonicalHash(fold(runes, id)), `fold of ${id}`).toBe(replay.hash)
  return { id, runes, hash: replay.hash }
}
