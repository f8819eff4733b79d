// Durable runes that are not in the catalog yet. Taking note of one is a few assignments, because whoever appended it
// waits; fragments are not kept at all. When too much waits, runes are forgotten and the log is read instead.
import { elementAt } from "../../rune/Elements.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { limits } from "../StoreLimits.ts"
import { isFragment } from "./CatalogFold.ts"

export interface Pending {
  readonly firstEventId: number
  lastEventId: number
  lastMs: number
  runes: Array<AnyRune>
  /** The log has to be read: something is missing in between, or nobody knows. */
  behind: boolean
}

/** Nothing but fragments: they move the head of a row, which is not worth a write. */
const isGrowth = ({ behind, runes }: Pending): boolean => !behind && runes.length === 0

export class CatalogPending {
  private readonly byConversation = new Map<string, Pending>()
  private readonly runesMax: number
  private runes = 0

  constructor(runesMax: number = limits.catalogPendingRunes) {
    this.runesMax = runesMax
  }

  get size(): number {
    return this.byConversation.size
  }

  /** Those whose rows have to be written; with `all` also those that only grew by fragments. */
  conversations(which: "changed" | "all"): Array<string> {
    const ids: Array<string> = []
    for (const [id, pending] of this.byConversation) if (which === "all" || !isGrowth(pending)) ids.push(id)
    return ids
  }

  /** The newest event of a conversation that only grew by fragments since its row was written. */
  growth(conversationId: string): Pending | undefined {
    const pending = this.byConversation.get(conversationId)
    return pending !== undefined && isGrowth(pending) ? pending : undefined
  }

  /** Conversations that grew by fragments at or after a time. */
  grownSince(sinceMs: number): Array<string> {
    const ids: Array<string> = []
    for (const [id, pending] of this.byConversation) if (isGrowth(pending) && pending.lastMs >= sinceMs) ids.push(id)
    return ids
  }

  add(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    const first = elementAt(runes, 0)
    const last = elementAt(runes, runes.length - 1)
    let pending = this.byConversation.get(conversationId)
    if (pending === undefined) {
      pending = { firstEventId: first.event_id, lastEventId: 0, lastMs: 0, runes: [], behind: false }
      this.byConversation.set(conversationId, pending)
    } else if (first.event_id !== pending.lastEventId + 1) {
      this.forget(pending)
    }
    pending.lastEventId = last.event_id
    pending.lastMs = last.ts_ms
    if (!pending.behind) this.keep(pending, runes)
  }

  private keep(pending: Pending, runes: ReadonlyArray<AnyRune>): void {
    for (const rune of runes) {
      if (isFragment(rune)) continue
      pending.runes.push(rune)
      this.runes += 1
    }
    if (this.runes > this.runesMax) this.forget(pending)
  }

  /** The row of the conversation has to be folded from the log. */
  doubt(conversationId: string): void {
    const pending = this.byConversation.get(conversationId)
    if (pending !== undefined) this.forget(pending)
    else
      this.byConversation.set(conversationId, { firstEventId: 0, lastEventId: 0, lastMs: 0, runes: [], behind: true })
  }

  private forget(pending: Pending): void {
    this.runes -= pending.runes.length
    pending.runes = []
    pending.behind = true
  }

  take(conversationId: string): Pending | undefined {
    const pending = this.byConversation.get(conversationId)
    this.byConversation.delete(conversationId)
    this.runes -= pending?.runes.length ?? 0
    return pending
  }
}
