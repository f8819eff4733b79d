/**
 * One JSON text per value, whatever order its keys were set in, and the hash of
 * that text. Equal states, equal arguments, equal hashes.
 */
import { hash } from "node:crypto"

/** Keys of one object are never equal. */
const byCodeUnit = (left: string, right: string): number => (left < right ? -1 : 1)

/** JSON with sorted keys and without undefined members. The value must be plain JSON. */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null"
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  const members: Array<string> = []
  for (const key of Object.keys(value).sort(byCodeUnit)) {
    const member = (value as Readonly<Record<string, unknown>>)[key]
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
  }
  return `{${members.join(",")}}`
}

/** SHA-256 of the canonical text, in lower-case hex. */
export const canonicalHash = (value: unknown): string => hash("sha256", canonicalJson(value), "hex")

/** Whether arrays and objects nest deeper than `levels`; walks without recursion. */
export const isDeeperThan = (value: unknown, levels: number): boolean => {
  let layer: Array<unknown> = [value]
  for (let depth = 0; layer.length > 0; depth++) {
    const next: Array<unknown> = []
    for (const one of layer) {
      if (one !== null && typeof one === "object") for (const member of Object.values(one)) next.push(member)
    }
    if (depth >= levels && next.length > 0) return true
    layer = next
  }
  return false
}
