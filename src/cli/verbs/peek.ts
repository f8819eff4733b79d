// `echs peek`: what an agent is doing right now, from its events alone: no model is asked. The same for agents of ECHS and
// for outside ones.
import type { Client } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { objectOf, textOf } from "../render/Describing.ts"
import { usageText } from "../render/RuneText.ts"
import { duration, fitEnd, oneLine } from "../render/Text.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { wholeNumber } from "../VerbSpec.ts"

interface Peek {
  conversation_id: string
  state: string
  since_ms: number
  /** Tools that have started and not ended. */
  tools_running: Array<string>
  tools_completed: number
  tools_failed: number
  last_prompt: string | null
  messages: Array<string>
  waits_for: Array<string>
  usage: unknown
}

const defaultMessages = 3

/** One event of the view `agent_events`, folded in. */
export const addEvent = (peek: Peek, raw: unknown, messagesMax: number): void => {
  const { event, ts_ms } = objectOf(raw)
  const said = objectOf(event)
  const tool = textOf(said["tool_name"])
  switch (said["type"]) {
    case "state_change":
      peek.state = textOf(said["sub_state"]) || textOf(said["state"])
      peek.since_ms = Number(ts_ms)
      if (peek.state === "idle" || peek.state === "exited") peek.tools_running = []
      return
    case "session_ended":
      peek.state = "exited"
      peek.since_ms = Number(ts_ms)
      return
    case "user_prompt":
      peek.last_prompt = textOf(said["text"])
      return
    case "agent_message":
      peek.messages = [...peek.messages, textOf(said["content"])].slice(-messagesMax)
      return
    case "tool_started":
      peek.tools_running.push(tool)
      return
    case "tool_completed": {
      const at = peek.tools_running.indexOf(tool)
      if (at >= 0) peek.tools_running.splice(at, 1)
      peek.tools_completed += 1
      if (said["success"] === false) peek.tools_failed += 1
      return
    }
    default:
  }
}

export const emptyPeek = (conversationId: string): Peek => ({
  conversation_id: conversationId,
  state: "initialized",
  since_ms: 0,
  tools_running: [],
  tools_completed: 0,
  tools_failed: 0,
  last_prompt: null,
  messages: [],
  waits_for: [],
  usage: null
})

const look = async (client: Client, id: string, messagesMax: number): Promise<Peek> => {
  const { pending_approvals: pending, usage } = await client.call("conversation.get", { conversation_id: id })
  const peek = emptyPeek(id)
  for await (const item of client.tail(id, { view: "agent_events" })) {
    if ("caught_up" in item) break
    if ("event" in item) addEvent(peek, item.event, messagesMax)
  }
  const titles = (Array.isArray(pending) ? pending : []).map((one) => textOf(objectOf(one)["call_id"]))
  return { ...peek, usage, waits_for: titles }
}

const peekText = (peek: Peek, terminal: Terminal, nowMs: number): string => {
  const { paint } = terminal
  const running = peek.tools_running.length === 0 ? "" : `  ${peek.tools_running.join(", ")}`
  const since = peek.since_ms === 0 ? "" : ` for ${duration(Math.max(0, nowMs - peek.since_ms))}`
  const shortened = (text: string): string => fitEnd(oneLine(text), Math.max(20, terminal.columns() - 4))
  return [
    `${paint("strong", peek.conversation_id)}  ${peek.state}${paint("quiet", since)}${running}`,
    ...peek.waits_for.map((call) => `  ${paint("notice", "?")} ${call} waits for a decision`),
    ...(peek.last_prompt === null ? [] : [`  ${paint("accent", ">")} ${shortened(peek.last_prompt)}`]),
    ...peek.messages.map((text) => `    ${shortened(text)}`),
    `  ${paint("quiet", `${peek.tools_completed} tools, ${peek.tools_failed} failed  ${usageText(peek.usage)}`)}`,
    ""
  ].join("\n")
}

export const make = (parts: RemoteParts & { readonly nowMs: () => number }): Verb =>
  makeRemoteVerb(parts, {
    name: "peek",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: {
      messages: { type: "string", value: "N", help: `messages to show (default: ${defaultMessages})` }
    },
    example: "echs peek last",
    run: async ({ answer, client, positionals: [named = "last"], terminal, values }) => {
      const messagesMax = wholeNumber("messages", values.messages, 1) ?? defaultMessages
      const id = await findConversation(client, named, parts.workingDirectory())
      const peek = await look(client, id, messagesMax)
      answer(peek, () => peekText(peek, terminal, parts.nowMs()))
      return exitCode.done
    }
  })
