// A conversation of very many runes, made in no time: the runes of one real turn, again and again, each time as the next
// turn, written through the store.
import type { ConversationId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { BenchRuntime } from "../runtime/openRuntime.ts"

const batchTurns = 100

/** The same rune as part of a later turn. */
const later = (rune: AnyRune, turn: number, shift: number): AnyRune => {
  const text = JSON.stringify(rune)
    .replaceAll('"turn_2"', `"turn_${turn}"`)
    .replace(/"run_[0-9a-f]+"/, `"run_${(shift + rune.event_id).toString(16).padStart(16, "0")}"`)
    .replace(/"req_([0-9a-z]+)"/g, `"req_${turn.toString(16).padStart(16, "0")}"`)
  const copy = JSON.parse(text) as AnyRune & { cause?: number; event_id: number; ts_ms: number }
  copy.event_id += shift
  copy.ts_ms += turn
  if (copy.cause !== undefined) copy.cause += shift
  return copy
}

/** Its id. */
export const growConversation = async (directory: string, runes: number): Promise<string> => {
  const seen: Array<AnyRune> = []
  const runtime = await BenchRuntime.open(directory, { onRunes: (all) => seen.push(...all) })
  const id = await runtime.create("scripted/echo")
  await runtime.turn(id, "What is new?")
  await runtime.turn(id, "A question with an **answer** of some words, as people write them.")
  runtime.conversations.unload(id as ConversationId)
  const turn = seen.filter(({ turn_id }) => turn_id === "turn_2")
  const length = turn.length
  let shift = length
  for (let number = 3; shift < runes; ) {
    const batch: Array<AnyRune> = []
    for (let made = 0; made < batchTurns; made++, number++, shift += length)
      batch.push(...turn.map((rune) => later(rune, number, shift)))
    await runtime.store.runes.appendNow(id, batch)
  }
  await runtime.close()
  return id
}
