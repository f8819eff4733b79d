// Pages of a log as runes. Gaps that thinning left are reported beside them, so a reader can tell "nothing
// there" from "no longer there". A page ends before an entry that is no rune; the next one fails on it.
import * as Result from "effect/Result"
import type { Frame, Page } from "#runelog/Reader.ts"
import { type AnyRune, decode } from "../rune/Rune.ts"
import { RuneUnreadable } from "./Errors.ts"

export interface Gap {
  readonly from: number
  readonly to: number
}

export interface RunePage {
  readonly runes: ReadonlyArray<AnyRune>
  /** Ranges of ids that will not come, in order. */
  readonly gaps: ReadonlyArray<Gap>
  /** The cursor behind this page. */
  readonly next: number
  /** The newest durable event when the page was read. */
  readonly head: number
}

export const decodeFrame = (conversationId: string, frame: Frame): AnyRune | RuneUnreadable => {
  const decoded = decode(frame.body.toString("utf8"))
  if (Result.isFailure(decoded)) {
    return new RuneUnreadable({ conversationId, eventId: frame.eventId, reason: decoded.failure.message })
  }
  const { conversation_id: owner, event_id: eventId } = decoded.success
  if (owner === conversationId && eventId === frame.eventId) return decoded.success
  const reason = `it says it is event ${eventId} of ${owner}`
  return new RuneUnreadable({ conversationId, eventId: frame.eventId, reason })
}

export const decodePage = (conversationId: string, page: Page): RunePage => {
  const runes: Array<AnyRune> = []
  const gaps: Array<Gap> = []
  for (const frame of page.frames) {
    if (frame.kind === "thinned") {
      gaps.push({ from: frame.eventId, to: frame.lastEventId })
      continue
    }
    const rune = decodeFrame(conversationId, frame)
    if (rune instanceof RuneUnreadable) {
      if (runes.length === 0 && gaps.length === 0) throw rune
      return { runes, gaps, next: frame.eventId - 1, head: page.head }
    }
    runes.push(rune)
  }
  return { runes, gaps, next: page.next, head: page.head }
}
