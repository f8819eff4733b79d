// What the commands of a chat work with.
import type { Client } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"

/** What a command may do with the chat. */
export interface ChatCommands {
  readonly client: () => Client
  readonly conversationId: () => string
  readonly terminal: () => Terminal
  readonly lastOutput: () => string
  readonly send: (text: string, mode: "queue" | "steer") => Promise<void>
  readonly stop: () => void
  readonly edit: () => void
  readonly leave: () => void
}
