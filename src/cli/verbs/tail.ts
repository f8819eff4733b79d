// `echs tail`: follows a conversation rune by rune, from any cursor, across server restarts. A terminal gets one line per
// rune and a progress line while the model writes; a pipe gets JSON lines.
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
    help: 'start after this event id, or "tail" to start now (default: 0, the beginning)'
  },
  kind: {
    type: "string",
    short: "k",
    value: "KIND",
    multiple: true,
    help: "only this kind or family, such as tool.*; repeatable"
  },
  agent: { type: "string", short: "a", value: "AGENT", help: "only runes of this agent, given by id or id prefix" },
  visibility: { type: "string", value: "LEVEL", help: "public or internal (default: all you have access to)" },
  once: { type: "boolean", help: "stop after the last existing rune" },
  deltas: { type: "boolean", help: "show each piece of streamed text on its own line" }
} as const

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "tail",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options,
    example: "echs tail last --kind 'tool.*'",
    notes: [
      'CONVERSATION is an id, an id prefix, "last", or "*" for all conversations from now on.',
      "Ctrl-C stops it with exit code 130."
    ],
    isPatient: true,
    onConnection: tellConnection,
    run: async ({ client, positionals: [named = ""], values, terminal }) => {
      const conversationId = await findConversation(client, named, parts.workingDirectory())
      const signal = terminal.interruption()
      const visibility = oneOf("visibility", values.visibility, ["public", "internal"])
      const show =
        values.json === true || !terminal.isWatched
          ? jsonLines(terminal)
          : personLines(terminal, values.deltas === true)
      const tail = client.tail(conversationId, {
        after: cursorOf(values.after ?? (conversationId === "*" ? "tail" : undefined)),
        signal,
        // Text before it is durable is for people; records are what a program is given.
        live: show.isLive && values.deltas !== true,
        ...(values.kind === undefined ? {} : { kinds: values.kind }),
        ...(visibility === undefined ? {} : { visibility })
      })
      for await (const item of tail) {
        if ("caught_up" in item && values.once === true) break
        if (isWanted(item, values.agent)) show.item(item)
        await terminal.drained()
      }
      terminal.status(undefined)
      return signal.aborted ? exitCode.interrupted : exitCode.done
    }
  })

const cursorOf = (text: string | undefined): number | "tail" => {
  if (text === "tail") return "tail"
  if (text !== undefined && !/^\d+$/.test(text)) throw new UsageError('--after must be an event id or "tail"')
  return wholeNumber("after", text) ?? 0
}

const isWanted = (item: TailItem, agent: string | undefined): boolean => {
  if (agent === undefined || !("rune" in item)) return true
  const { agent_id: id = "" } = item.rune
  return id.startsWith(agent) || id.startsWith(`agt_${agent}`)
}

interface Shown {
  readonly isLive: boolean
  readonly item: (item: TailItem) => void
}

const jsonLines = (terminal: Terminal): Shown => ({
  isLive: false,
  item: (item) => {
    if ("rune" in item) terminal.write(`${JSON.stringify(item.rune)}\n`)
    else if ("gap" in item) terminal.write(`${JSON.stringify({ gap: item.gap })}\n`)
    else if ("failed" in item) terminal.write(`${JSON.stringify({ failed: item.failed })}\n`)
  }
})

const personLines = (terminal: Terminal, withDeltas: boolean): Shown => {
  const lines = new RuneLines(terminal)
  const showRune = (rune: AnyRune): void => {
    const progress = lines.progress(rune)
    if (withDeltas || !isDelta(rune)) {
      terminal.status(undefined)
      terminal.write(`${lines.line(rune)}\n`)
    } else terminal.status(progress)
  }
  const show = (item: TailItem): void => {
    if ("rune" in item) showRune(item.rune)
    else if ("live" in item) terminal.status(lines.liveProgress(item.live))
    else if ("gap" in item) {
      const { from, reason, to } = item.gap
      terminal.write(`${terminal.paint("quiet", `      events ${from} to ${to} are not available: ${reason}`)}\n`)
    } else if ("failed" in item) {
      const { conversation_id: id, error } = item.failed
      terminal.write(`${terminal.paint("notice", `cannot follow ${id}: ${error.message}`)}\n`)
    }
  }
  return { isLive: true, item: show }
}

const tellConnection = (change: ConnectionChange, terminal: Terminal): void => {
  if (!terminal.isWatched) return
  terminal.status(change.type === "lost" ? terminal.paint("notice", "connection lost, reconnecting …") : undefined)
}
