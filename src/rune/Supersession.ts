/**
 * Which deltas a later rune makes worthless. A delta and the rune that repeats it
 * in full share a key; storage may drop the delta once the other is durable.
 */
import type { SupersessionScope } from "./KindDefinition.ts"
import { lookup } from "./Kinds.ts"
import type { AnyRune } from "./Rune.ts"

const scopeKey = (scope: SupersessionScope, rune: AnyRune): string | undefined => {
  if (scope === "turn") return rune.turn_id === undefined ? undefined : `turn ${rune.turn_id}`
  const callId = (rune.payload as { readonly call_id?: unknown }).call_id
  return typeof callId === "string" ? `call ${callId}` : undefined
}

/** The key of the scope a delta belongs to; nothing for any other rune. */
export const deltaKey = (rune: AnyRune): string | undefined => {
  const definition = lookup(rune.kind)
  if (definition === undefined || definition.runeClass !== "delta" || definition.scope === undefined) return undefined
  return scopeKey(definition.scope, rune)
}

/** The key of the scope whose earlier deltas this rune repeats; nothing if it repeats none. */
export const supersededKey = (rune: AnyRune): string | undefined => {
  const definition = lookup(rune.kind)
  if (definition === undefined || definition.supersedes === undefined || definition.scope === undefined)
    return undefined
  return scopeKey(definition.scope, rune)
}

/** Event ids of the deltas that later runes of the same sequence supersede, ascending. */
export const supersededDeltas = (runes: Iterable<AnyRune>): ReadonlyArray<number> => {
  const open = new Map<string, Array<number>>()
  const superseded: Array<number> = []
  for (const rune of runes) {
    const delta = deltaKey(rune)
    if (delta !== undefined) {
      const ids = open.get(delta)
      if (ids === undefined) open.set(delta, [rune.event_id])
      else ids.push(rune.event_id)
      continue
    }
    const key = supersededKey(rune)
    const ids = key === undefined ? undefined : open.get(key)
    if (key === undefined || ids === undefined) continue
    for (const id of ids) superseded.push(id)
    open.delete(key)
  }
  return superseded.sort((left, right) => left - right)
}
