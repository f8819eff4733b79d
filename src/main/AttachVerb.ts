// `echs attach`: shows the terminal of an outside agent here. One person types, others watch; leaving it leaves it running.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../cli/Remote.ts"
import { type ExitCode, exitCode, programExit, type Verb } from "../cli/Verb.ts"
import { passThrough } from "../harness/front/PassThrough.ts"
import { codeOf } from "./RunVerb.ts"

/** Control and ]. */
const leaveKey = 0x1d

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "attach",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: { view: { type: "boolean", help: "watch without typing" } },
    example: "echs attach last",
    notes: [
      "Control-] leaves the agent running. Without CONVERSATION, attaches to the only one that runs.",
      "If another terminal is already typing, this one is read-only."
    ],
    run: async ({ client, positionals: [named], terminal, values }): Promise<ExitCode> => {
      const wanted = named === undefined ? undefined : await findConversation(client, named, parts.workingDirectory())
      const { items } = await client.call("harness.list", wanted === undefined ? {} : { conversation_id: wanted })
      const [item, another] = items.filter(({ attached }) => attached)
      if (item === undefined) {
        terminal.complain("echs attach: no outside agent is running\n")
        return exitCode.notFound
      }
      if (another !== undefined) {
        const rows = items.map(({ conversation_id, harness, state }) => `  ${conversation_id} ${harness} ${state}\n`)
        terminal.complain(`echs attach: several are running; name one\n${rows.join("")}`)
        return exitCode.usage
      }
      const { stdin, stdout } = process
      const role = values.view === true ? ("viewer" as const) : ("typist" as const)
      const end = await passThrough({ directory: item.directory, role, isOwner: false, stdin, stdout, leaveKey })
      if (end._tag === "Exited") return programExit(codeOf(end.exit))
      terminal.complain(
        end._tag === "Left" ? `detached from ${item.conversation_id}; it keeps running\n` : "the connection was lost\n"
      )
      return end._tag === "Left" ? exitCode.done : exitCode.failed
    }
  })
