// `echs chat`: a conversation at the terminal: streams the model's text and asks for approvals in place.
import type { Client } from "../../client/Client.ts"
import { gatherFacts, welcomeRows } from "../chat/Welcome.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { usageText } from "../render/RuneText.ts"
import { oneLine } from "../render/Text.ts"
import { createConversation, creationOptions } from "../shared/NewConversation.ts"
import { followTurn, withoutOutput } from "../Turn.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"

export interface ChatParts extends RemoteParts {
  readonly homeDirectory: string
  /** The branch that is checked out around the directory. */
  readonly branchOf: (directory: string) => Promise<string | undefined>
}

export const make = (parts: ChatParts): Verb =>
  makeRemoteVerb(parts, {
    name: "chat",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: creationOptions,
    example: "echs chat --model scripted/demo",
    notes: [
      "An empty line, /quit or end of input leaves the chat; the conversation stays open.",
      "With --json, prints one line per turn."
    ],
    isPatient: true,
    startsServer: true,
    run: async ({ client, positionals: [named], terminal, values }) => {
      const id =
        named === undefined
          ? await createConversation(client, values, parts.workingDirectory())
          : await findConversation(client, named)
      const isJson = values.json === true
      const view = isJson ? withoutOutput(terminal) : terminal
      const { agents, last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
      if (terminal.isAnswered && !isJson) view.write(`${(await firstScreen(parts, client, id, terminal)).join("\n")}\n`)
      view.write(`${terminal.paint("strong", id)} ${terminal.paint("quiet", agents[0]?.model ?? "")}\n`)
      return converse({ client, id, isJson, terminal, view }, head)
    }
  })

const firstScreen = async (parts: ChatParts, client: Client, conversationId: string, terminal: Terminal) => {
  const directory = parts.workingDirectory()
  const { homeDirectory: home } = parts
  const isAtHome = directory === home || directory.startsWith(`${home}/`)
  const shownDirectory = isAtHome ? `~${directory.slice(home.length)}` : directory
  const branch = await parts.branchOf(directory)
  const about = { version: parts.version, directory, shownDirectory, branch, conversationId }
  return welcomeRows(await gatherFacts(client, about), terminal)
}

interface Chat {
  readonly client: Client
  readonly id: string
  readonly isJson: boolean
  readonly terminal: Terminal
  readonly view: Terminal
}

const converse = async ({ client, id, isJson, terminal, view }: Chat, head: number): Promise<ExitCode> => {
  const signal = terminal.interruption()
  for (let after = head; ; ) {
    const text = await terminal.ask(terminal.paint("accent", "› "), signal)
    if (signal.aborted) return exitCode.interrupted
    if (text === undefined || text.trim() === "" || text.trim() === "/quit") return exitCode.done
    const posted = await client.call("message.post", { conversation_id: id, content: text })
    const turn = posted.turn_id === undefined ? {} : { turnId: posted.turn_id }
    const outcome = await followTurn({ client, terminal: view, conversationId: id, after, ...turn, signal })
    if (outcome === undefined) {
      terminal.complain(`\nthe turn is still running; follow it with: echs tail ${id}\n`)
      return exitCode.interrupted
    }
    after = outcome.event_id
    const { usage } = await client.call("conversation.get", { conversation_id: id })
    if (isJson) terminal.write(`${JSON.stringify({ conversation_id: id, ...outcome })}\n`)
    else view.write(`${terminal.paint("quiet", oneLine(usageText(usage)))}\n`)
  }
}
