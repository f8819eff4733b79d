// What was shown against what the log holds. Pieces of a text may be gone when the whole text is on record: the log says so
// by a gap that it reports. Anything else that was shown and is missing or different is lost.
import type { AnyRune, Gap } from "../../client/Client.ts"
import { isDelta } from "../render/RuneText.ts"

export interface Stored {
  readonly runes: ReadonlyArray<AnyRune>
  readonly gaps: ReadonlyArray<Gap>
}

export interface Comparison {
  readonly lost: number
  readonly repeated: number
}

export const compare = (seen: ReadonlyArray<AnyRune>, { gaps, runes }: Stored): Comparison => {
  const byId = new Map(runes.map((rune) => [rune.event_id, JSON.stringify(rune)]))
  const isReplaced = (rune: AnyRune): boolean =>
    isDelta(rune) && gaps.some(({ from, to }) => from <= rune.event_id && rune.event_id <= to)
  const isKept = (rune: AnyRune): boolean => byId.get(rune.event_id) === JSON.stringify(rune)
  return {
    lost: seen.filter((rune) => !isKept(rune) && !isReplaced(rune)).length,
    repeated: seen.length - new Set(seen.map((rune) => rune.event_id)).size
  }
}
