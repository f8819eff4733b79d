// The numbers that families of runes carry in frame headers. They are on disk: a number is never changed or used
// again, a new family takes the next one. 0 is what a family of a newer build reads as.
import type { Family } from "../../rune/KindDefinition.ts"

export const familyNumber: { readonly [F in Family]: number } = {
  session: 1,
  agent: 2,
  turn: 3,
  tool: 4,
  hook: 5,
  plan: 6,
  harness: 7,
  config: 8,
  system: 9,
  checkpoint: 10
}

export const UNKNOWN_FAMILY = 0

export const familyNames = Object.keys(familyNumber) as ReadonlyArray<Family>

/** The numbers of the families, as a reader's filter wants them. */
export const familySet = (families: Iterable<Family>): ReadonlySet<number> => {
  const numbers = new Set<number>()
  for (const family of families) numbers.add(familyNumber[family])
  return numbers
}
