// Runes to entries: checks that they are runes of this conversation in a row, writes each as the JSON that
// goes over the wire, and gives the frame its header. All of a batch or nothing.
import * as Result from "effect/Result"
import type { Entry } from "#runelog/Entry.ts"
import { type AnyRune, decodeValue, encode, isCurrent } from "../rune/Rune.ts"
import { RuneInvalid } from "./Errors.ts"
import { entryOf } from "./FrameHeader.ts"

export type Encoded =
  | { readonly _tag: "Entries"; readonly entries: ReadonlyArray<Entry>; readonly chars: number }
  | { readonly _tag: "Refused"; readonly error: RuneInvalid }

const refused = (conversationId: string, rune: AnyRune, reason: string): Encoded => ({
  _tag: "Refused",
  error: new RuneInvalid({ conversationId, eventId: rune.event_id, kind: rune.kind, reason })
})

const placeFault = (conversationId: string, rune: AnyRune, eventId: number): string | undefined => {
  if (rune.conversation_id !== conversationId) return `it belongs to ${rune.conversation_id}`
  return rune.event_id === eventId ? undefined : `event ${eventId} comes next`
}

/** Why something is no rune that this build or a newer one knows. */
const faultOf = (rune: AnyRune): string | undefined => {
  const checked = decodeValue(rune)
  return Result.isFailure(checked) ? checked.failure.message : undefined
}

const encodeOne = (rune: AnyRune): string | Error => {
  try {
    return encode(rune)
  } catch (error) {
    return error as Error
  }
}

export const encodeRunes = (conversationId: string, runes: ReadonlyArray<AnyRune>): Encoded => {
  const entries: Array<Entry> = []
  const first = runes.length === 0 ? 0 : runes[0]!.event_id
  let chars = 0
  for (let at = 0; at < runes.length; at++) {
    const rune = runes[at]!
    const misplaced = placeFault(conversationId, rune, first + at)
    if (misplaced !== undefined) return refused(conversationId, rune, misplaced)
    const fault = isCurrent(rune) ? undefined : faultOf(rune)
    if (fault !== undefined) return refused(conversationId, rune, fault)
    const body = encodeOne(rune)
    if (typeof body !== "string") return refused(conversationId, rune, body.message)
    chars += body.length
    entries.push(entryOf(rune, body))
  }
  return { _tag: "Entries", entries, chars }
}
