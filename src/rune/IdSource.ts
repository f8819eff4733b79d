/**
 * Where random identifiers come from. A service, so that a test can own it: the
 * secure source draws from the platform's generator through a small pool, the
 * seeded one repeats the same ids for the same seed.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

export interface IdSource {
  /** Sixteen lower-case hexadecimal digits, 64 bits of entropy. */
  readonly hex16: () => string
}

export class Ids extends Context.Service<Ids, IdSource>()("echs/rune/Ids") {}

const POOL_BYTES = 4096
const hexPairs: ReadonlyArray<string> = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** One call to the generator serves 512 ids. */
export const secureIdSource = (): IdSource => {
  const pool = new Uint8Array(POOL_BYTES)
  let offset = POOL_BYTES
  return {
    hex16: () => {
      if (offset === POOL_BYTES) {
        globalThis.crypto.getRandomValues(pool)
        offset = 0
      }
      let hex = ""
      for (const end = offset + 8; offset < end; offset++) hex += hexPairs[pool[offset]!]
      return hex
    }
  }
}

/** Deterministic ids for tests and simulations (splitmix64); never for production. */
export const seededIdSource = (seed: number): IdSource => {
  let state = BigInt.asUintN(64, BigInt(seed))
  return {
    hex16: () => {
      state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
      let mixed = state
      mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n)
      mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn)
      return (mixed ^ (mixed >> 31n)).toString(16).padStart(16, "0")
    }
  }
}

export const layerSecure: Layer.Layer<Ids> = Layer.sync(Ids, secureIdSource)
export const layerSeeded = (seed: number): Layer.Layer<Ids> => Layer.sync(Ids, () => seededIdSource(seed))
