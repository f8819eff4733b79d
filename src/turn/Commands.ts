// What the turn engine needs of the conversation it works for: its state, and a way to ask for changes. A command
// that was refused because the turn moved on is an ordinary end of the work, not a failure.
import type { Command } from "../machine/Command.ts"
import type { Refusal } from "../machine/decide/Decide.ts"
import type { ConversationState } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"

export interface Commands {
  readonly conversationId: ConversationId
  readonly state: () => ConversationState
  /** Resolves when the runes of the command are durable; rejects with a tagged error. */
  readonly submit: (command: Command) => Promise<unknown>
  /** Resolves when everything the state holds now is durable; rejects when it will not be. */
  readonly settled: () => Promise<void>
}

/** Why the machine did not want the command, if that is what the error says. */
const refusalOf = (error: unknown): Refusal | undefined => {
  const tagged = error as { readonly _tag?: unknown; readonly refusal?: Refusal } | null
  return tagged?._tag === "CommandRefused" ? tagged.refusal : undefined
}

/** Submits a command; returns the refusal, if it was refused. */
export const ask = async (commands: Commands, command: Command): Promise<Refusal | undefined> => {
  try {
    await commands.submit(command)
    return undefined
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === undefined) throw error
    return refusal
  }
}

/** Submits a command whose refusal means that the work is over; tells whether to go on. */
export const offer = async (commands: Commands, command: Command): Promise<boolean> =>
  (await ask(commands, command)) === undefined
