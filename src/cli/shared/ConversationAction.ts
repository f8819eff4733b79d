// Verbs that send one operation about one conversation, with an optional reason and nothing else.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import type { OptionTable } from "../VerbSpec.ts"

export const reasonOption = {
  reason: { type: "string", short: "r", value: "TEXT", help: "reason, kept in the log" }
} as const satisfies OptionTable

export interface ConversationAction {
  readonly name: string
  readonly op:
    | "turn.interrupt"
    | "conversation.pause"
    | "conversation.close"
    | "conversation.archive"
    | "conversation.restore"
  /** What the conversation is afterwards, as in "conv_1 paused". */
  readonly done: string
}

export const makeConversationAction = (parts: RemoteParts, { done, name, op }: ConversationAction): Verb =>
  makeRemoteVerb(parts, {
    name,
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: reasonOption,
    example: `echs ${name} last`,
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const id = await findConversation(client, named, parts.workingDirectory())
      const changed = await client.call(op, {
        conversation_id: id,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      answer({ conversation_id: id, ...changed }, () => `${id} ${done}\n`)
      return exitCode.done
    }
  })
