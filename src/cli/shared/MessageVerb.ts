// The verb behind `send` and `steer`: posts a message with its attachments and, if asked to, follows the turn.
import { basename, resolve } from "node:path"
import type { Client } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { followTurn, withoutOutput } from "../Turn.ts"
import { type ExitCode, exitCode, type Verb } from "../Verb.ts"
import { type OptionTable, UsageError, type Values } from "../VerbSpec.ts"
import { createConversation, creationOptions } from "./NewConversation.ts"

const sendOptions = {
  ...creationOptions,
  new: { type: "boolean", short: "n", help: "start a new conversation; TEXT is then the only argument" },
  wait: { type: "boolean", help: "follow the turn until it ends" },
  agent: { type: "string", value: "AGENT", help: "agent to address (default: the root agent)" },
  image: {
    type: "string",
    value: "FILE",
    multiple: true,
    help: "attach an image: PNG, JPEG, GIF or WebP; repeatable"
  },
  file: {
    type: "string",
    value: "FILE",
    multiple: true,
    help: "attach a PDF or text file; repeatable"
  },
  key: { type: "string", value: "KEY", help: "idempotency key: a repeated key posts the message once" }
} as const satisfies OptionTable

type Attached = Pick<Values<typeof sendOptions>, "file" | "image">

/** Uploads attachments first: a message itself has a small size limit. */
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

export const makeMessageVerb = (
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
        throw new UsageError(isNew ? "expected one argument: TEXT" : "expected two arguments: CONVERSATION TEXT")
      const isAlone = values.image === undefined && values.file === undefined
      if (text.trim() === "" && isAlone) throw new UsageError("TEXT is empty")
      const content = isAlone ? text : await withFiles(parts, client, text, values)
      const id = isNew
        ? await createConversation(client, values, parts.workingDirectory())
        : await findConversation(client, positionals[0] ?? "", parts.workingDirectory())
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
        terminal: values.json === true ? withoutOutput(terminal) : terminal,
        conversationId: id,
        after: posted.event_id,
        ...(posted.turn_id === undefined ? {} : { turnId: posted.turn_id }),
        signal: terminal.interruption()
      })
      answer({ conversation_id: id, ...posted, outcome }, () => "")
      return outcomeExit(outcome?.kind)
    }
  })
