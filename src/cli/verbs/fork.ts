// `echs fork`: starts a new conversation as a copy of another, up to an event.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { wholeNumber } from "../VerbSpec.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "fork",
    takes: "CONVERSATION [EVENT]",
    positionals: { min: 1, max: 2 },
    options: {
      continue: { type: "boolean", help: "also continue queued messages, plans and turns in the fork" }
    },
    example: "echs fork last 17",
    notes: [
      "EVENT defaults to the last event of the conversation.",
      "A fork is idle: work that was in progress is ended in the copy unless --continue is given."
    ],
    run: async ({ answer, client, positionals: [named = "", event], values }) => {
      const at = wholeNumber("event", event, 1)
      const id = await findConversation(client, named, parts.workingDirectory())
      const head = at ?? (await client.call("conversation.get", { conversation_id: id })).last_event_id
      const forked = await client.call("conversation.fork", {
        conversation_id: id,
        at_event_id: head,
        ...(values["continue"] === true ? { continue: true } : {})
      })
      answer(forked, () => `${forked.conversation_id}\n`)
      return exitCode.done
    }
  })
