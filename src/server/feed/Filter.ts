// Which runes a follower wants: by kind, by family, by how private they are. The kind is read from the bytes of the
// rune, which are not parsed for it.
import type { Frame } from "../../conversation/Reading.ts"

export interface RuneFilter {
  readonly visibility: "public" | "internal"
  /** Kinds, or families as `turn.*`; all when absent. */
  readonly kinds: ReadonlyArray<string> | undefined
}

const KIND_MARK = Buffer.from('"kind":"')
/** The kind stands near the front of a rune: keys have a fixed order and what precedes it is short. */
const KIND_WITHIN = 400

export const kindOf = (body: Buffer): string => {
  const at = body.subarray(0, KIND_WITHIN).indexOf(KIND_MARK)
  if (at < 0) return ""
  const start = at + KIND_MARK.length
  return body.toString("latin1", start, body.indexOf(0x22, start))
}

export const acceptsKind = (kinds: ReadonlyArray<string> | undefined): ((kind: string) => boolean) => {
  if (kinds === undefined) return () => true
  const exact = new Set(kinds.filter((kind) => !kind.endsWith(".*")))
  const families = kinds.filter((kind) => kind.endsWith(".*")).map((kind) => kind.slice(0, -1))
  return (kind) => exact.has(kind) || families.some((family) => kind.startsWith(family))
}

export const acceptsFrame = ({ kinds }: RuneFilter): ((frame: Frame) => boolean) => {
  if (kinds === undefined) return () => true
  const accepts = acceptsKind(kinds)
  return (frame) => accepts(kindOf(frame.body))
}

export const filterKey = ({ kinds, visibility }: RuneFilter): string => JSON.stringify([visibility, kinds ?? null])
