// `echs chat`: a conversation at the terminal: streams the model's text and asks for approvals in place.
import { resolve } from "node:path"
import type { Client } from "../../client/Client.ts"
import { type ChatFiles, ChatSession } from "../chat/ChatSession.ts"
import { ChatView } from "../chat/ChatView.ts"
import { chooseConversation } from "../chat/Choose.ts"
import { gatherFacts, welcomeRows } from "../chat/Welcome.ts"
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { usageText } from "../render/RuneText.ts"
import { oneLine } from "../render/Text.ts"
import { createConversation, creationOptions } from "../shared/NewConversation.ts"
import { readRunes } from "../shared/ReadRunes.ts"
import { followTurn, withoutOutput } from "../Turn.ts"
import { type ExitCode, exitCode, type Keyboard, type Terminal, type Verb } from "../Verb.ts"
import type { OptionTable } from "../VerbSpec.ts"

export interface ChatParts extends RemoteParts {
  readonly homeDirectory: string
  readonly nowMs: () => number
  /** The branch that is checked out around the directory. */
  readonly branchOf: (directory: string) => Promise<string | undefined>
  readonly chatFiles: (data: string | undefined, directory: string) => Promise<Omit<ChatFiles, "readFile">>
}

const options = {
  ...creationOptions,
  continue: { type: "boolean", short: "c", help: "reopen the most recently used conversation of this directory" },
  resume: { type: "boolean", short: "r", help: "choose from the conversations of this directory" },
  plain: { type: "boolean", help: "line by line, without redrawing: for screen readers" }
} as const satisfies OptionTable

export const make = (parts: ChatParts): Verb => {
  let session: ChatSession | undefined
  return makeRemoteVerb(parts, {
    name: "chat",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options,
    example: "echs chat --model scripted/demo",
    notes: [
      "At a terminal: Enter sends, Esc stops the turn, /help shows commands and keys, Ctrl-C twice leaves; the conversation stays.",
      "From a pipe and with --plain: one message per line; an empty line, /quit or end of input leaves. With --json, one line per turn."
    ],
    isPatient: true,
    startsServer: true,
    onConnection: (change) => session?.connection(change),
    run: async ({ client, positionals: [named], terminal, values }) => {
      const directory = parts.workingDirectory()
      const isContinued = values.continue === true
      const chosen = await chooseConversation({
        client,
        directory,
        terminal,
        named,
        isContinued,
        isPicked: values.resume === true
      })
      const id = chosen ?? (await createConversation(client, values, directory))
      const isJson = values.json === true
      const keyboard = isJson || values.plain === true ? undefined : terminal.keyboard()
      if (keyboard === undefined) return converseByLine({ client, id, isJson, terminal })
      try {
        session = await openSession({ parts, client, id, terminal, keyboard, data: values.data })
        return await session.run()
      } finally {
        keyboard.release()
      }
    }
  })
}

/** Rows of what was said before that are shown again. */
const historyRowsMax = 200

interface Opening {
  readonly parts: ChatParts
  readonly client: Client
  readonly id: string
  readonly terminal: Terminal
  readonly keyboard: Keyboard
  readonly data: string | undefined
}

const openSession = async ({ client, data, id, keyboard, parts, terminal }: Opening): Promise<ChatSession> => {
  const directory = parts.workingDirectory()
  const [summary, screen, files] = await Promise.all([
    client.call("conversation.get", { conversation_id: id }),
    firstScreen(parts, client, id, terminal),
    parts.chatFiles(data, directory)
  ])
  const { agents, last_event_id: head, root_agent_id: root } = summary
  const view = new ChatView(terminal, root ?? agents[0]?.agent_id ?? "")
  const past = await readRunes(client, id, head)
  const rows = past.flatMap((rune) => view.rune(rune))
  const shown = rows.slice(-historyRowsMax)
  const left = rows.length > shown.length ? [terminal.paint("quiet", `— earlier: echs tail ${id} —`)] : []
  terminal.write([...screen, ...left, ...shown].map((row) => `${row}\r\n`).join(""))
  const after = past.at(-1)?.event_id ?? head
  const readFile: ChatFiles["readFile"] = (path) => parts.readFile(resolve(directory, path))
  const { nowMs } = parts
  return new ChatSession({
    client,
    terminal,
    keyboard,
    conversationId: id,
    view,
    files: { ...files, readFile },
    after,
    nowMs
  })
}

const firstScreen = async (parts: ChatParts, client: Client, conversationId: string, terminal: Terminal) => {
  const directory = parts.workingDirectory()
  const { homeDirectory: home } = parts
  const isAtHome = directory === home || directory.startsWith(`${home}/`)
  const shownDirectory = isAtHome ? `~${directory.slice(home.length)}` : directory
  const branch = await parts.branchOf(directory)
  const about = { version: parts.version, directory, shownDirectory, branch, conversationId }
  return welcomeRows(await gatherFacts(client, about), terminal)
}

const converseByLine = async ({ client, id, isJson, terminal }: Omit<Chat, "view">): Promise<ExitCode> => {
  const view = isJson ? withoutOutput(terminal) : terminal
  const { agents, last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
  view.write(`${terminal.paint("strong", id)} ${terminal.paint("quiet", agents[0]?.model ?? "")}\n`)
  return converse({ client, id, isJson, terminal, view }, head)
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
