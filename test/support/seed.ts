// The seed of a random test: printed, so that a failure can be repeated, and taken from SEED= to do so.
import { randomInt } from "node:crypto"

export const seedFor = (test: string): number => {
  const given = process.env["SEED"]
  if (given !== undefined && given !== "" && !/^[0-9]{1,10}$/.test(given)) {
    throw new Error(`SEED is "${given}"; it must be a whole number below 2^32`)
  }
  const seed = given === undefined || given === "" ? randomInt(2 ** 32) : Number(given) >>> 0
  process.stdout.write(`seed: ${test} SEED=${seed}\n`)
  return seed
}

/** A small generator with a 32-bit state (mulberry32): the same seed gives the same numbers in [0, 1) everywhere. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
