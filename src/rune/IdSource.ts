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
/** The character codes of the digits. */
const digits: Uint8Array = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0))

/** Two digits of each byte. */
const hexOf = (bytes: Uint8Array): Uint8Array => {
  const hex = new Uint8Array(bytes.length * 2)
  for (let at = 0; at < bytes.length; at++) {
    hex[at * 2] = digits[bytes[at]! >> 4]!
    hex[at * 2 + 1] = digits[bytes[at]! & 15]!
  }
  return hex
}

/** Sixteen digits as a string in one piece, which JSON.stringify takes half as long over as over one joined from parts. */
const textOf = (hex: Uint8Array, at: number): string =>
  String.fromCharCode(
    hex[at]!,
    hex[at + 1]!,
    hex[at + 2]!,
    hex[at + 3]!,
    hex[at + 4]!,
    hex[at + 5]!,
    hex[at + 6]!,
    hex[at + 7]!,
    hex[at + 8]!,
    hex[at + 9]!,
    hex[at + 10]!,
    hex[at + 11]!,
    hex[at + 12]!,
    hex[at + 13]!,
    hex[at + 14]!,
    hex[at + 15]!
  )

/** One call to the generator serves 512 ids. */
export const secureIdSource = (): IdSource => {
  let hex: Uint8Array = new Uint8Array(0)
  let offset = 0
  return {
    hex16: () => {
      if (offset === hex.length) {
        hex = hexOf(globalThis.crypto.getRandomValues(new Uint8Array(POOL_BYTES)))
        offset = 0
      }
      const at = offset
      offset += 16
      return textOf(hex, at)
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
