// Reads the runes of a conversation from the first, as `replay` and `audit` need them.
import type { AnyRune, Client } from "../../client/Client.ts"

/** Every rune up to and including the event, or all of them. */
export const readRunes = async (
  client: Client,
  conversationId: string,
  until: number | undefined
): Promise<ReadonlyArray<AnyRune>> => {
  const runes: Array<AnyRune> = []
  for await (const item of client.tail(conversationId)) {
    if ("caught_up" in item) break
    if (!("rune" in item)) continue
    if (until !== undefined && item.rune.event_id > until) break
    runes.push(item.rune)
  }
  return runes
}
