// `echs tail`: a conversation rune by rune, from any cursor, across restarts of the server. For people one line a rune
// and a line of progress while a model speaks; in a pipe JSON lines.
import type { AnyRune, ConnectionChange, TailItem } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { RuneLines } from "../render/RuneLine.ts"
import { isDelta } from "../render/RuneText.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { oneOf, UsageError, wholeNumber } from "../VerbSpec.ts"

const options = {
  after: {
    type: "string",
    value: "EVENT",
    help: 'begin after this event id; "tail" begins now (default 0, the beginning)'
  },
  kind: {
    type: "string",
    short: "k",
    value: "KIND",
    multiple: true,
    help: "only this kind, or family such as tool.*; may be repeated"
  },
  agent: { type: "string", short: "a", value: "AGENT", help: "only runes of this agent, by the beginning of its id" },
  visibility: { type: "string", value: "LEVEL", help: "public, or internal (default: all you may see)" },
  once: { type: "boolean", help: "stop when everything that is there has been shown" },
  deltas: { type: "boolean", help: "show every piece of streamed text as a line of its own" }
} as const

export const makeTail = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "tail",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options,
    example: "echs tail last --kind 'tool.*'",
    notes: [
      'CONVERSATION is an id, the beginning of one, "last", or "*" for all of them, from now on.',
      "Ctrl-C ends it with exit code 130."
    ],
    isPatient: true,
    onConnection: tellConnection,
    run: async ({ client, positionals: [named = ""], values, terminal }) => {
      const conversationId = await findConversation(client, named)
      const signal = terminal.interruption()
      const visibility = oneOf("visibility", values.visibility, ["public", "internal"])
      const show =
        values.json === true || !terminal.isWatched
          ? jsonLines(terminal)
          : personLines(terminal, values.deltas === true)
      const tail = client.tail(conversationId, {
        after: cursorOf(values.after ?? (conversationId === "*" ? "tail" : undefined)),
        signal,
        ...(values.kind === undefined ? {} : { kinds: values.kind }),
        ...(visibility === undefined ? {} : { visibility })
      })
      for await (const item of tail) {
        if ("caught_up" in item && values.once === true) break
        if (isWanted(item, values.agent)) show(item)
        await terminal.drained()
      }
      terminal.status(undefined)
      return signal.aborted ? exitCode.interrupted : exitCode.done
    }
  })

const cursorOf = (text: string | undefined): number | "tail" => {
  if (text === "tail") return "tail"
  if (text !== undefined && !/^\d+$/.test(text)) throw new UsageError('--after is an event id or "tail"')
  return wholeNumber("after", text) ?? 0
}

const isWanted = (item: TailItem, agent: string | undefined): boolean => {
  if (agent === undefined || !("rune" in item)) return true
  const { agent_id: id = "" } = item.rune
  return id.startsWith(agent) || id.startsWith(`agt_${agent}`)
}

const jsonLines =
  (terminal: Terminal) =>
  (item: TailItem): void => {
    if ("rune" in item) terminal.write(`${JSON.stringify(item.rune)}\n`)
    else if ("gap" in item) terminal.write(`${JSON.stringify({ gap: item.gap })}\n`)
    else if ("failed" in item) terminal.write(`${JSON.stringify({ failed: item.failed })}\n`)
  }

const personLines = (terminal: Terminal, withDeltas: boolean) => {
  const lines = new RuneLines(terminal)
  const showRune = (rune: AnyRune): void => {
    const progress = lines.progress(rune)
    if (withDeltas || !isDelta(rune)) {
      terminal.status(undefined)
      terminal.write(`${lines.line(rune)}\n`)
    } else terminal.status(progress)
  }
  return (item: TailItem): void => {
    if ("rune" in item) showRune(item.rune)
    else if ("gap" in item) {
      const { from, reason, to } = item.gap
      terminal.write(`${terminal.paint("quiet", `      ${from} to ${to} will not come: ${reason}`)}\n`)
    } else if ("failed" in item) {
      const { conversation_id: id, error } = item.failed
      terminal.write(`${terminal.paint("notice", `${id} cannot be followed: ${error.message}`)}\n`)
    }
  }
}

const tellConnection = (change: ConnectionChange, terminal: Terminal): void => {
  if (!terminal.isWatched) return
  terminal.status(change.type === "lost" ? terminal.paint("notice", "connection lost, trying again …") : undefined)
}
