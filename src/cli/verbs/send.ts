// `echs send`, `echs steer` and `echs chat`: saying something to an agent, alone or in a conversation at the terminal
// with its text as it comes and its questions asked in place.
import { basename, resolve } from "node:path"
import type { Client } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { usageText } from "../render/RuneText.ts"
import { oneLine } from "../render/Text.ts"
import { followTurn } from "../Turn.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { type OptionTable, UsageError, type Values } from "../VerbSpec.ts"

const creation = {
  model: { type: "string", short: "m", value: "MODEL", help: "provider/name, for a new conversation" },
  title: { type: "string", value: "TEXT", help: "of a new conversation" },
  workspace: { type: "string", short: "w", value: "DIRECTORY", help: "of a new conversation (default: this one)" },
  "unsafe-workspace": { type: "boolean", help: "work there also when it is a home or belongs to the system" },
  instructions: { type: "string", value: "TEXT", help: "for the agent of a new conversation" }
} as const satisfies OptionTable

type Creation = Partial<Values<typeof creation>>

export const createConversation = async (
  client: Client,
  values: Creation,
  workingDirectory: string
): Promise<string> => {
  const { model, title, workspace, instructions } = values
  const { conversation_id: id } = await client.call("conversation.create", {
    workspace: resolve(workingDirectory, workspace ?? ""),
    ...(values["unsafe-workspace"] === true ? { unsafe_workspace: true } : {}),
    ...(model === undefined ? {} : { model }),
    ...(title === undefined ? {} : { title }),
    ...(instructions === undefined ? {} : { instructions })
  })
  return id
}

const sendOptions = {
  ...creation,
  new: { type: "boolean", short: "n", help: "begin a new conversation; TEXT is then all it takes" },
  wait: { type: "boolean", help: "follow the turn to its end" },
  agent: { type: "string", value: "AGENT", help: "the agent to speak to (default: the root)" },
  image: {
    type: "string",
    value: "FILE",
    multiple: true,
    help: "an image to show: PNG, JPEG, GIF or WebP; again for more"
  },
  file: {
    type: "string",
    value: "FILE",
    multiple: true,
    help: "a PDF document or a text to send along; again for more"
  },
  key: { type: "string", value: "KEY", help: "idempotency key: the same key posts once" }
} as const satisfies OptionTable

type Attached = Pick<Values<typeof sendOptions>, "file" | "image">

/** Text with what is sent along, uploaded first: a message has room for little. */
const withFiles = async (parts: RemoteParts, client: Client, text: string, { file = [], image = [] }: Attached) => {
  const uploaded = async (path: string) => {
    const bytes = await parts.readFile(resolve(parts.workingDirectory(), path)).catch((cause: unknown) => {
      throw new UsageError(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`)
    })
    return client.upload(bytes)
  }
  const images = []
  for (const path of image) images.push({ type: "image" as const, blob: await uploaded(path) })
  const files = []
  for (const path of file) files.push({ type: "file" as const, name: basename(path), blob: await uploaded(path) })
  return [{ type: "text" as const, text }, ...images, ...files]
}

const outcomeExit = (kind: string | undefined): ExitCode => {
  if (kind === undefined) return exitCode.interrupted
  return kind === "turn.completed" ? exitCode.done : exitCode.failed
}

const silent = (terminal: Terminal): Terminal => ({ ...terminal, write: () => {} })

const makeSpeaker = (
  parts: RemoteParts,
  words: { readonly name: "send" | "steer"; readonly mode: "queue" | "steer"; readonly example: string }
): Verb =>
  makeRemoteVerb(parts, {
    name: words.name,
    takes: words.name === "send" ? "CONVERSATION TEXT (or --new TEXT)" : "CONVERSATION TEXT",
    positionals: { min: 1, max: 2 },
    options: sendOptions,
    example: words.example,
    run: async ({ answer, client, positionals, terminal, values }) => {
      const isNew = values.new === true
      const text = positionals[isNew ? 0 : 1]
      if (text === undefined || positionals.length !== (isNew ? 1 : 2))
        throw new UsageError(isNew ? "takes TEXT" : "takes CONVERSATION and TEXT")
      const isAlone = values.image === undefined && values.file === undefined
      if (text.trim() === "" && isAlone) throw new UsageError("TEXT is empty: say something")
      const content = isAlone ? text : await withFiles(parts, client, text, values)
      const id = isNew
        ? await createConversation(client, values, parts.workingDirectory())
        : await findConversation(client, positionals[0] ?? "")
      const posted = await client.call(
        "message.post",
        {
          conversation_id: id,
          content,
          mode: words.mode,
          ...(values.agent === undefined ? {} : { agent_id: values.agent })
        },
        values.key === undefined ? {} : { idempotencyKey: values.key }
      )
      if (values.wait !== true) {
        const where = posted.turn_id ?? `queued at ${posted.queued ?? 0}`
        answer({ conversation_id: id, ...posted }, () => `${id} ${where}\n`)
        return exitCode.done
      }
      const outcome = await followTurn({
        client,
        terminal: values.json === true ? silent(terminal) : terminal,
        conversationId: id,
        after: posted.event_id,
        ...(posted.turn_id === undefined ? {} : { turnId: posted.turn_id }),
        signal: terminal.interruption()
      })
      answer({ conversation_id: id, ...posted, outcome }, () => "")
      return outcomeExit(outcome?.kind)
    }
  })

export const makeSend = (parts: RemoteParts): Verb =>
  makeSpeaker(parts, { name: "send", mode: "queue", example: "echs send --new --wait 'what is in this directory?'" })

export const makeSteer = (parts: RemoteParts): Verb =>
  makeSpeaker(parts, { name: "steer", mode: "steer", example: "echs steer last 'use the other file instead'" })

export const makeChat = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "chat",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: creation,
    example: "echs chat --model scripted/demo",
    notes: [
      "An empty line, /quit or the end of the input ends it; the conversation stays. With --json it prints one line a turn."
    ],
    isPatient: true,
    run: async ({ client, positionals: [named], terminal, values }) => {
      const id =
        named === undefined
          ? await createConversation(client, values, parts.workingDirectory())
          : await findConversation(client, named)
      const isJson = values.json === true
      const view = isJson ? silent(terminal) : terminal
      const { agents, last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
      view.write(`${terminal.paint("strong", id)} ${terminal.paint("quiet", agents[0]?.model ?? "")}\n`)
      return converse({ client, id, isJson, terminal, view }, head)
    }
  })

interface Talk {
  readonly client: Client
  readonly id: string
  readonly isJson: boolean
  readonly terminal: Terminal
  readonly view: Terminal
}

const converse = async ({ client, id, isJson, terminal, view }: Talk, head: number): Promise<ExitCode> => {
  const signal = terminal.interruption()
  for (let after = head; ; ) {
    const text = await terminal.ask(terminal.paint("accent", "› "), signal)
    if (signal.aborted) return exitCode.interrupted
    if (text === undefined || text.trim() === "" || text.trim() === "/quit") return exitCode.done
    const posted = await client.call("message.post", { conversation_id: id, content: text })
    const turn = posted.turn_id === undefined ? {} : { turnId: posted.turn_id }
    const outcome = await followTurn({ client, terminal: view, conversationId: id, after, ...turn, signal })
    if (outcome === undefined) {
      terminal.complain(`\nthe turn goes on without you: echs tail ${id}\n`)
      return exitCode.interrupted
    }
    after = outcome.event_id
    const { usage } = await client.call("conversation.get", { conversation_id: id })
    if (isJson) terminal.write(`${JSON.stringify({ conversation_id: id, ...outcome })}\n`)
    else view.write(`${terminal.paint("quiet", oneLine(usageText(usage)))}\n`)
  }
}
