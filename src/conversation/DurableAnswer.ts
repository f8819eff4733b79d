// What is told of a conversation is on disk. Memory runs ahead of the log by the appends under way: an answer taken from
// it is held until they have landed, so that nobody hears of an event that a crash could still undo, and every event id
// that leaves the process is one from which a reader can follow.
import type { ConversationState } from "../machine/State.ts"
import { LogRefused } from "./ConversationErrors.ts"
import type { Conversations } from "./Conversations.ts"

/** How often an answer is taken again because the log refused what it told of. */
const refusalsMax = 3

/** Resolves with what `tell` made of the state, plain data, once all of it is durable. Looking starts nothing. */
export const durableAnswer = async <A>(
  conversations: Pick<Conversations, "look">,
  conversationId: string,
  tell: (state: ConversationState) => A
): Promise<A> => {
  for (let refusals = 0; ; refusals += 1) {
    const { actor, state } = await conversations.look(conversationId)
    const told = tell(state)
    if (actor.durableHead === state.head) return told
    // The state moves on while this waits, and what was told may share parts with it.
    const kept = structuredClone(told)
    try {
      await actor.settled()
      return kept
    } catch (error) {
      // What the log refused never happened: the next look reads the log.
      if (!(error instanceof LogRefused) || refusals >= refusalsMax) throw error
    }
  }
}
