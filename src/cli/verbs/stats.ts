// `echs stats`: prints figures of the server, or of one conversation.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { number } from "../render/Text.ts"
import { exitCode, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "stats",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: {},
    example: "echs stats last",
    run: async ({ answer, client, positionals: [named], terminal }) => {
      const scope =
        named === undefined ? {} : { conversation_id: await findConversation(client, named, parts.workingDirectory()) }
      const stats = await client.call("stats", scope)
      answer(stats, () => {
        const rows = flat(stats)
        const width = Math.max(0, ...rows.map(([name]) => name.length))
        return rows.map(([name, value]) => `${terminal.paint("quiet", name.padEnd(width))}  ${value}\n`).join("")
      })
      return exitCode.done
    }
  })

/** Nested figures as rows named by their paths. */
const flat = (value: Readonly<Record<string, unknown>>, prefix = ""): ReadonlyArray<readonly [string, string]> =>
  Object.entries(value).flatMap(([name, member]) => {
    const path = `${prefix}${name}`
    if (typeof member === "object" && member !== null)
      return flat(member as Readonly<Record<string, unknown>>, `${path}.`)
    return [[path, typeof member === "number" ? number(member) : String(member)] as const]
  })
