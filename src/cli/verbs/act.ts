// Verbs that are one operation each: deciding about a call, and the life of a conversation.
import type { Client } from "../../client/Client.ts"
import { type OptionTable, oneOf, UsageError, wholeNumber } from "../Kit.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"

const because = {
  reason: { type: "string", short: "r", value: "TEXT", help: "goes on record" }
} as const satisfies OptionTable

/** The only call that waits, when none is named. */
const pendingCall = async (client: Client, conversationId: string, named: string | undefined) => {
  const { items } = await client.call("approval.list", { conversation_id: conversationId })
  if (named !== undefined) return { callId: named, item: items.find((one) => one.call_id === named) }
  const [only] = items
  if (only === undefined || items.length > 1) {
    throw new UsageError(
      only === undefined
        ? "no call waits for a decision"
        : `${items.length} calls wait; name one of ${items.map((one) => one.call_id).join(", ")}`
    )
  }
  return { callId: only.call_id, item: only }
}

/** For a call that nobody asks about any more: the server says what became of it before it looks at this. */
const noHash = "0".repeat(64)

const parseArguments = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError("--arguments is JSON")
  }
}

export const makeApprove = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "approve",
    takes: "CONVERSATION [CALL]",
    positionals: { min: 1, max: 2 },
    options: {
      scope: { type: "string", value: "SCOPE", help: "once (default), session or rule" },
      arguments: { type: "string", value: "JSON", help: "run with these arguments instead" }
    },
    example: "echs approve last call_2 --scope session",
    run: async ({ answer, client, positionals: [named = "", call], values }) => {
      const scope = oneOf("scope", values.scope, ["once", "session", "rule"]) ?? "once"
      const edited = values.arguments === undefined ? {} : { arguments: parseArguments(values.arguments) }
      const id = await findConversation(client, named)
      const { callId, item } = await pendingCall(client, id, call)
      const changed = await client.call("approval.approve", {
        conversation_id: id,
        call_id: callId,
        scope,
        arguments_hash: item?.arguments_hash ?? noHash,
        ...edited
      })
      answer({ conversation_id: id, call_id: callId, ...changed }, () => `${callId} approved (${scope})\n`)
      return exitCode.done
    }
  })

export const makeDeny = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "deny",
    takes: "CONVERSATION [CALL]",
    positionals: { min: 1, max: 2 },
    options: { ...because, interrupt: { type: "boolean", help: "also end the turn" } },
    example: "echs deny last call_2 --reason 'not in this directory'",
    run: async ({ answer, client, positionals: [named = "", call], values }) => {
      const id = await findConversation(client, named)
      const { callId } = await pendingCall(client, id, call)
      const changed = await client.call("approval.deny", {
        conversation_id: id,
        call_id: callId,
        ...(values.reason === undefined ? {} : { reason: values.reason }),
        ...(values.interrupt === true ? { interrupt: true } : {})
      })
      answer({ conversation_id: id, call_id: callId, ...changed }, () => `${callId} denied\n`)
      return exitCode.done
    }
  })

/** Operations on one conversation that take a reason and nothing else. */
const simple = {
  interrupt: { op: "turn.interrupt", done: "interrupted" },
  pause: { op: "conversation.pause", done: "paused" },
  close: { op: "conversation.close", done: "closed" },
  archive: { op: "conversation.archive", done: "archived" },
  restore: { op: "conversation.restore", done: "restored" }
} as const

export const makeSimple = (parts: RemoteParts, name: keyof typeof simple): Verb =>
  makeRemoteVerb(parts, {
    name,
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: because,
    example: `echs ${name} last`,
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const id = await findConversation(client, named)
      const { done, op } = simple[name]
      const changed = await client.call(op, {
        conversation_id: id,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      answer({ conversation_id: id, ...changed }, () => `${id} ${done}\n`)
      return exitCode.done
    }
  })

/** Goes on after a pause, and after a suspension too: to a person they are both "go on". */
export const makeResume = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "resume",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: because,
    example: "echs resume last",
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const id = await findConversation(client, named)
      const { state } = await client.call("conversation.get", { conversation_id: id })
      const op = state === "suspended" ? "conversation.unsuspend" : "conversation.resume"
      const changed = await client.call(op, {
        conversation_id: id,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      answer({ conversation_id: id, ...changed }, () => `${id} goes on\n`)
      return exitCode.done
    }
  })

export const makeFork = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "fork",
    takes: "CONVERSATION [EVENT]",
    positionals: { min: 1, max: 2 },
    options: {},
    example: "echs fork last 17",
    notes: ["Without EVENT the fork begins at the last one."],
    run: async ({ answer, client, positionals: [named = "", event] }) => {
      const at = wholeNumber("event", event, 1)
      const id = await findConversation(client, named)
      const head = at ?? (await client.call("conversation.get", { conversation_id: id })).last_event_id
      const forked = await client.call("conversation.fork", { conversation_id: id, at_event_id: head })
      answer(forked, () => `${forked.conversation_id}\n`)
      return exitCode.done
    }
  })
