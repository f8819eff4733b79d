// The state of a conversation as it was right after one of its events, by the one fold, from the log.
import { evolve } from "../machine/evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"
import type { AnyRune } from "../rune/Rune.ts"

/** Pages are read one after the other, so that a long log holds nobody up. */
export const stateAt = async (
  conversationId: ConversationId,
  pages: AsyncIterable<{ readonly runes: ReadonlyArray<AnyRune> }>,
  atEventId: number
): Promise<ConversationState> => {
  const state = emptyConversation(conversationId)
  for await (const { runes } of pages) {
    for (const rune of runes) {
      if (rune.event_id > atEventId) return state
      evolve(state, rune)
    }
  }
  return state
}
