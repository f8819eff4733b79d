// Where a conversation was at a time, found by halving: a long log costs a handful of reads of one rune each. Clocks that
// were set back make it later than it could be, never wrong about order.
import type { AnyRune } from "../../rune/Rune.ts"
import type { RunePage } from "./Page.ts"

export interface SinceSource {
  readonly readNow: (
    conversationId: string,
    options: { readonly after: number; readonly bytesMax: number }
  ) => Promise<RunePage>
  readonly headNow: (conversationId: string) => Promise<number>
}

/** The first rune behind the cursor; thinned ranges in between are passed over. */
const runeBehind = async (source: SinceSource, conversationId: string, after: number): Promise<AnyRune | undefined> => {
  for (let cursor = after; ; ) {
    const page = await source.readNow(conversationId, { after: cursor, bytesMax: 1 })
    if (page.runes[0] !== undefined || page.next === cursor) return page.runes[0]
    cursor = page.next
  }
}

/** The cursor in front of the first rune at or after a time; the head when there is none. */
export const cursorSince = async (source: SinceSource, conversationId: string, sinceMs: number): Promise<number> => {
  let low = 0
  let high = await source.headNow(conversationId)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const rune = await runeBehind(source, conversationId, middle)
    if (rune !== undefined && rune.ts_ms < sinceMs) low = rune.event_id
    else high = middle
  }
  return low
}
