// What the turn engine needs of the conversation it works for: its state, and a way to ask for changes. A command
// that was refused because the turn moved on is an ordinary end of the work, not a failure.
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"

export interface Commands {
  readonly conversationId: ConversationId
  readonly state: () => ConversationState
  /** Resolves when the runes of the command are durable; rejects with a tagged error. */
  readonly submit: (command: Command) => Promise<{ readonly event_id: number }>
}

/** Whether the error says that the machine did not want the command any more. */
export const isRefusal = (error: unknown): boolean =>
  (error as { readonly _tag?: unknown } | null)?._tag === "CommandRefused"

/** Submits a command whose refusal means that the work is over; tells whether to go on. */
export const offer = async (commands: Commands, command: Command): Promise<boolean> => {
  try {
    await commands.submit(command)
    return true
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  }
}
