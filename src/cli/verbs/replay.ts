// `echs replay`: prints the state of a conversation right after any event, computed by the fold the server uses.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { readRunes } from "../shared/ReadRunes.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { wholeNumber } from "../VerbSpec.ts"

export interface ReplayParts extends RemoteParts {
  /** Folds runes, from the first one on, into the state of their conversation. */
  readonly fold: (conversationId: string, runes: ReadonlyArray<unknown>) => Promise<unknown>
}

export const make = (parts: ReplayParts): Verb =>
  makeRemoteVerb(parts, {
    name: "replay",
    takes: "CONVERSATION [EVENT]",
    positionals: { min: 1, max: 2 },
    options: {},
    example: "echs replay last 17",
    notes: ["Prints the state of the conversation right after EVENT (default: the last event) as JSON."],
    run: async ({ answer, client, positionals: [named = "", event] }) => {
      const until = wholeNumber("event", event, 1)
      const id = await findConversation(client, named, parts.workingDirectory())
      const runes = await readRunes(client, id, until)
      const state = await parts.fold(id, runes)
      answer(
        { conversation_id: id, event_id: runes.at(-1)?.event_id ?? 0, state },
        () => `${JSON.stringify(state, null, 2)}\n`
      )
      return exitCode.done
    }
  })
