// Submits a command whose refusal is an expected answer: the conversation moved on, or the command does not fit its
// state. Every other failure stays a failure.
import type { Command } from "../machine/Command.ts"
import type { Refusal } from "../machine/decide/Decide.ts"
import { CommandRefused } from "./CommandErrors.ts"

export interface CommandSubmitter {
  /** Resolves when the runes of the command are durable; rejects with a tagged error. */
  readonly submit: (command: Command) => Promise<unknown>
}

/** Submits a command; returns the refusal, or nothing when the command was accepted. */
export const tryCommand = async (to: CommandSubmitter, command: Command): Promise<Refusal | undefined> => {
  try {
    await to.submit(command)
    return undefined
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    return error.refusal
  }
}
