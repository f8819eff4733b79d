// Runes to entries: checks that they are runes of this conversation in a row, writes each as the JSON that
// goes over the wire, and gives the frame its header. All of a batch or nothing.

import * as Result from "effect/Result"
import type { Entry } from "#runelog/commit/Entry.ts"
import { type AnyRune, decodeValue, encode, encodeCurrent, isCurrent } from "../../rune/Rune.ts"
import type { StreamedText } from "../../rune/StreamedText.ts"
import { RuneInvalid } from "../StoreErrors.ts"
import { entryOf } from "./FrameHeader.ts"

export type Encoded = ReadonlyArray<Entry> | RuneInvalid

const refused = (conversationId: string, rune: AnyRune, reason: string): RuneInvalid =>
  new RuneInvalid({ conversationId, eventId: rune.event_id, kind: rune.kind, reason })

const placeFault = (conversationId: string, rune: AnyRune, eventId: number): string | undefined => {
  if (rune.conversation_id !== conversationId) return `it belongs to ${rune.conversation_id}`
  return rune.event_id === eventId ? undefined : `event ${eventId} comes next`
}

/** The JSON of a rune that is not of this build; an error when no newer one knows it either. */
const encodeUncommon = (rune: AnyRune): string | Error => {
  const checked = decodeValue(rune)
  return Result.isFailure(checked) ? checked.failure : encode(rune)
}

const encodeOne = (rune: AnyRune): string | StreamedText | Error => {
  try {
    return isCurrent(rune) ? encodeCurrent(rune) : encodeUncommon(rune)
  } catch (error) {
    return error as Error
  }
}

export const encodeRunes = (conversationId: string, runes: ReadonlyArray<AnyRune>): Encoded => {
  // Of its length from the start: one that grows takes room for seventeen.
  const entries = new Array<Entry>(runes.length)
  const first = runes[0]?.event_id ?? 0
  for (let at = 0; at < runes.length; at++) {
    const rune = runes[at]
    if (rune === undefined) break
    const misplaced = placeFault(conversationId, rune, first + at)
    if (misplaced !== undefined) return refused(conversationId, rune, misplaced)
    const body = encodeOne(rune)
    if (body instanceof Error) return refused(conversationId, rune, body.message)
    entries[at] = entryOf(rune, body)
  }
  return entries
}
