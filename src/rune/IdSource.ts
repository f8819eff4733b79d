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
  /** `run_` and such digits. One is made for every rune, so it comes in one piece and without a detour. */
  readonly runeId: () => string
}

export class Ids extends Context.Service<Ids, IdSource>()("echs/rune/Ids") {}

const POOL_BYTES = 4096
/** The character codes of the digits. */
const digits: Uint8Array = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0))

/** Random bytes, eight at a time; one call to the generator serves 512 ids. */
class Pool {
  bytes: Uint8Array = new Uint8Array(0)
  private next = 0

  /** Where the next eight are. */
  draw(): number {
    if (this.next === this.bytes.length) {
      this.bytes = globalThis.crypto.getRandomValues(new Uint8Array(POOL_BYTES))
      this.next = 0
    }
    const at = this.next
    this.next += 8
    return at
  }
}

const high = (byte: number): number => digits[byte >> 4] ?? 0
const low = (byte: number): number => digits[byte & 15] ?? 0

/** Written out, because a list of codes would take longer than all the rest. */
const runeIdOf = (bytes: Uint8Array, at: number): string => {
  const a = bytes[at] ?? 0
  const b = bytes[at + 1] ?? 0
  const c = bytes[at + 2] ?? 0
  const d = bytes[at + 3] ?? 0
  const e = bytes[at + 4] ?? 0
  const f = bytes[at + 5] ?? 0
  const g = bytes[at + 6] ?? 0
  const h = bytes[at + 7] ?? 0
  return String.fromCharCode(
    114,
    117,
    110,
    95,
    high(a),
    low(a),
    high(b),
    low(b),
    high(c),
    low(c),
    high(d),
    low(d),
    high(e),
    low(e),
    high(f),
    low(f),
    high(g),
    low(g),
    high(h),
    low(h)
  )
}

export const secureIdSource = (): IdSource => {
  const pool = new Pool()
  const runeId = (): string => {
    const at = pool.draw()
    return runeIdOf(pool.bytes, at)
  }
  return { hex16: () => runeId().slice("run_".length), runeId }
}

/** Deterministic ids for tests and simulations (splitmix64); never for production. */
export const seededIdSource = (seed: number): IdSource => {
  let state = BigInt.asUintN(64, BigInt(seed))
  const hex16 = (): string => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
    let mixed = state
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n)
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn)
    return (mixed ^ (mixed >> 31n)).toString(16).padStart(16, "0")
  }
  return { hex16, runeId: () => `run_${hex16()}` }
}

export const layerSecure: Layer.Layer<Ids> = Layer.sync(Ids, secureIdSource)
export const layerSeeded = (seed: number): Layer.Layer<Ids> => Layer.sync(Ids, () => seededIdSource(seed))
