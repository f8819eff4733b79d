// The only source of chance in the simulated disk: the same seed gives the same crash for ever.

export interface Random {
  /** A number in [0, 1). */
  readonly next: () => number
  /** An integer in [0, bound). */
  readonly below: (bound: number) => number
}

const mix = (value: number): number => {
  let mixed = Math.imul(value ^ (value >>> 15), value | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return (mixed ^ (mixed >>> 14)) >>> 0
}

/** Mulberry32. `stream` separates the draws of one file from those of another under the same seed. */
export const makeRandom = (seed: number, stream = 0): Random => {
  let state = (mix(seed + 0x9e3779b9) ^ mix(Math.imul(stream + 1, 0x85ebca6b))) | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    return mix(state) / 2 ** 32
  }
  return { next, below: (bound) => Math.floor(next() * bound) }
}
