// Pages of a log as runes. Gaps that thinning left are reported beside them, so a reader can tell "nothing
// there" from "no longer there". A page ends before an entry that is no rune; the next one fails on it. The entries of
// a page are parsed as one array: replay is measured against bare JSON.parse, and one call beats hundreds.

import { isAscii } from "node:buffer"
import * as Result from "effect/Result"
import type { Frame, Page } from "#runelog/segment/Reader.ts"
import { type AnyRune, decode, decodeValue, isCurrent } from "../../rune/Rune.ts"
import { RuneUnreadable } from "../StoreErrors.ts"

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

export const COMMA = 0x2c
export const OPEN = 0x5b
export const CLOSE = 0x5d

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
  const entries: Array<Frame> = []
  const gaps: Array<Gap> = []
  for (const frame of page.frames) {
    if (frame.kind === "entry") entries.push(frame)
    else gaps.push({ from: frame.eventId, to: frame.lastEventId })
  }
  const runes = entries.length === 0 ? [] : decodeAll(conversationId, entries)
  return runes === undefined ? decodeEach(conversationId, page) : { runes, gaps, next: page.next, head: page.head }
}

/** The runes of all entries; nothing when one of them is not what it should be. */
const decodeAll = (conversationId: string, entries: ReadonlyArray<Frame>): Array<AnyRune> | undefined => {
  const values = parseAll(entries)
  return values === undefined ? undefined : runesOf(conversationId, values, (at) => entries[at]?.eventId ?? 0)
}

/** Values that are runes of the conversation with these event ids; nothing when one is not. */
export const runesOf = (
  conversationId: string,
  values: ReadonlyArray<unknown>,
  eventIdAt: (at: number) => number
): Array<AnyRune> | undefined => {
  const runes = values as Array<AnyRune>
  for (let at = 0; at < values.length; at++) {
    const rune = runeOf(values[at])
    if (rune === undefined || rune.event_id !== eventIdAt(at) || rune.conversation_id !== conversationId) {
      return undefined
    }
    runes[at] = rune
  }
  return runes
}

const runeOf = (value: unknown): AnyRune | undefined => {
  if (isCurrent(value)) return value
  const decoded = decodeValue(value)
  return Result.isFailure(decoded) ? undefined : decoded.success
}

const parseAll = (entries: ReadonlyArray<Frame>): ReadonlyArray<unknown> | undefined => {
  let length = 1 + entries.length
  for (const { body } of entries) length += body.length
  const text = Buffer.allocUnsafe(length)
  let at = 0
  for (const { body } of entries) {
    text[at] = at === 0 ? OPEN : COMMA
    at += 1 + body.copy(text, at + 1)
  }
  text[at] = CLOSE
  const values = parsed(text)
  return values?.length === entries.length ? values : undefined
}

/** The values of a JSON array; nothing when it is none. */
export const parsed = (text: Buffer): ReadonlyArray<unknown> | undefined => {
  try {
    return JSON.parse(text.toString(isAscii(text) ? "latin1" : "utf8"))
  } catch {
    return undefined
  }
}

/** The runes up to the first entry that is none; that one is the error of the page that begins with it. */
const decodeEach = (conversationId: string, page: Page): RunePage => {
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
