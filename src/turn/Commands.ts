// What the turn engine needs of the conversation it works for: its state, and a way to ask for changes.
import type { CommandSubmitter } from "../contract/TryCommand.ts"
import type { ConversationState } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"

export interface Commands extends CommandSubmitter {
  readonly conversationId: ConversationId
  readonly state: () => ConversationState
  /** Resolves when everything the state holds now is durable; rejects when it will not be. */
  readonly settled: () => Promise<void>
}
