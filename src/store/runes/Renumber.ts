// Runes of one conversation as runes of another: new ids, dense from where the new log stands, and every reference to
// an event moved with it. A reference to an event that did not come along points to the last one before it that did.
import type { IdSource } from "../../rune/IdSource.ts"
import { type ConversationId, makeRuneId } from "../../rune/Ids.ts"
import type { Path } from "../../rune/KindDefinition.ts"
import { lookup } from "../../rune/Kinds.ts"
import type { AnyRune } from "../../rune/Rune.ts"

const replaceAt = (value: unknown, path: Path, map: (eventId: number) => number): unknown => {
  if (path.length === 0) return typeof value === "number" ? map(value) : value
  if (value === null || typeof value !== "object") return value
  const [key, ...rest] = path
  if (key === "*") return Array.isArray(value) ? value.map((item) => replaceAt(item, rest, map)) : value
  const record = value as Readonly<Record<string, unknown>>
  if (key === undefined || !Object.hasOwn(record, key)) return value
  return { ...record, [key]: replaceAt(record[key], rest, map) }
}

export interface RenumberOptions {
  readonly conversationId: ConversationId
  readonly ids: IdSource
  /** The id of the first rune. */
  readonly firstEventId: number
}

export class Renumber {
  private readonly options: RenumberOptions
  /** Old ids of the runes that came along, ascending; the new ids follow from their places. */
  private readonly kept: Array<number> = []

  constructor(options: RenumberOptions) {
    this.options = options
  }

  /** The id of the next rune. */
  get nextEventId(): number {
    return this.options.firstEventId + this.kept.length
  }

  /** The new id of an event; that of the last one before it when it did not come along, 0 when there is none. */
  eventId(old: number): number {
    let low = 0
    let high = this.kept.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.kept[middle] ?? 0) <= old) low = middle + 1
      else high = middle
    }
    return low === 0 ? 0 : this.options.firstEventId + low - 1
  }

  /** The rune in its new place. Runes come in ascending order; keys of commands stay with the original. */
  move(rune: AnyRune): AnyRune {
    const { conversationId, ids } = this.options
    const eventId = this.nextEventId
    this.kept.push(rune.event_id)
    const { cause, idempotency_hash: _hash, idempotency_key: _key, payload, ...rest } = rune
    const movedCause = cause === undefined ? 0 : this.eventId(cause)
    const moved = {
      ...rest,
      event_id: eventId,
      rune_id: makeRuneId(ids),
      conversation_id: conversationId,
      ...(movedCause === 0 ? {} : { cause: movedCause }),
      payload: this.movePayload(rune.kind, payload)
    }
    return moved as AnyRune
  }

  private movePayload(kind: string, payload: unknown): unknown {
    // A field of a kind that a newer build added cannot be known here.
    const paths = lookup(kind)?.references ?? []
    const map = (eventId: number): number => Math.max(1, this.eventId(eventId))
    return paths.reduce((value, path) => replaceAt(value, path, map), payload)
  }
}
