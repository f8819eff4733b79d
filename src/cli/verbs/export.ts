// `echs export`: prints a conversation as JSON lines.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { wholeNumber } from "../VerbSpec.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "export",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: { after: { type: "string", value: "EVENT", help: "start after this event id" } },
    example: "echs export last > conversation.jsonl",
    notes: ["Prints one rune per line as JSON, with or without --json."],
    run: async ({ client, positionals: [named = ""], terminal, values }) => {
      const id = await findConversation(client, named, parts.workingDirectory())
      const signal = terminal.interruption()
      for await (const item of client.tail(id, { after: wholeNumber("after", values.after) ?? 0, signal })) {
        if ("caught_up" in item) return exitCode.done
        if ("rune" in item) terminal.write(`${JSON.stringify(item.rune)}\n`)
        await terminal.drained()
      }
      return signal.aborted ? exitCode.interrupted : exitCode.done
    }
  })
