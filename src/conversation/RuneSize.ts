// Whether runes fit into the log, found out before they are folded in: a command that asks for too much is refused
// by name, and the conversation is none the worse for it. Nearly always a cheap upper bound settles it; only what
// might not fit is written out to be measured.
import type { Refusal } from "../machine/decide/Decide.ts"
import type { Rune } from "../rune/Rune.ts"

export interface SizeLimits {
  readonly runeBytesMax: number
  readonly batchBytesMax: number
}

/** The worst a UTF-16 unit can become in JSON: a six-character escape. */
const bytesPerUnitMax = 6
const bytesPerScalarMax = 26

/** No JSON text of the value has more bytes than this. */
export const bytesBound = (value: unknown): number => {
  if (typeof value === "string") return value.length * bytesPerUnitMax + 2
  if (typeof value !== "object" || value === null) return bytesPerScalarMax
  let sum = 2
  if (Array.isArray(value)) {
    for (const member of value) sum += bytesBound(member) + 1
    return sum
  }
  for (const key in value) {
    sum += key.length * bytesPerUnitMax + 4 + bytesBound((value as Readonly<Record<string, unknown>>)[key])
  }
  return sum
}

const bytesOf = (rune: Rune): number => Buffer.byteLength(JSON.stringify(rune))

const refusal = (what: string, bytes: number, bytesMax: number): Refusal => ({
  code: "limit_exceeded",
  message: `${what} of ${bytes} bytes exceeds the limit of ${bytesMax}`,
  data: { limit: bytesMax, bytes }
})

/** Why the runes of one command do not fit; nothing when they do. */
export const oversize = (runes: ReadonlyArray<Rune>, limits: SizeLimits): Refusal | undefined => {
  let total = 0
  for (const rune of runes) {
    const bound = bytesBound(rune)
    const bytes = bound <= limits.runeBytesMax ? bound : bytesOf(rune)
    if (bytes > limits.runeBytesMax) return refusal(`${rune.kind}`, bytes, limits.runeBytesMax)
    total += bytes
  }
  if (total <= limits.batchBytesMax) return undefined
  const exact = runes.reduce((sum, rune) => sum + bytesOf(rune), 0)
  return exact <= limits.batchBytesMax ? undefined : refusal("a batch", exact, limits.batchBytesMax)
}
