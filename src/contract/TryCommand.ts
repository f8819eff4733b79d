// Submits a command whose refusal is an expected answer: the conversation moved on, or the command does not fit its
// state. Every other failure stays a failure.
import type { Command } from "../machine/Command.ts"
import type { Refusal } from "../machine/decide/Decide.ts"

export interface CommandSubmitter {
  /** Resolves when the runes of the command are durable; rejects with a tagged error. */
  readonly submit: (command: Command) => Promise<unknown>
}

const refusalOf = (error: unknown): Refusal | undefined => {
  const tagged = error as { readonly _tag?: unknown; readonly refusal?: Refusal } | null
  return tagged?._tag === "CommandRefused" ? tagged.refusal : undefined
}

/** Submits a command; returns the refusal, or nothing when the command was accepted. */
export const tryCommand = async (to: CommandSubmitter, command: Command): Promise<Refusal | undefined> => {
  try {
    await to.submit(command)
    return undefined
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === undefined) throw error
    return refusal
  }
}
