// Verbs that are one operation each: deciding about a call, and the life of a conversation.
import type { ApprovalItem, Client } from "../../client/Client.ts"
import { showRows } from "../Pages.ts"
import { findConversation, makeRemoteVerb, type RemoteInput, type RemoteParts } from "../Remote.ts"
import { decisionRows } from "../render/Decision.ts"
import { inboxRows } from "../render/Inbox.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { type OptionTable, oneOf, UsageError, wholeNumber } from "../VerbSpec.ts"

const because = {
  reason: { type: "string", short: "r", value: "TEXT", help: "goes on record" }
} as const satisfies OptionTable

interface Waiting {
  readonly conversationId: string
  readonly callId: string
  /** Gone when nobody asks about it any more. */
  readonly item: ApprovalItem | undefined
}

const isCallId = (text: string): boolean => /^call_\d+$/.test(text)

const only = (items: ReadonlyArray<ApprovalItem>, what: string): ApprovalItem => {
  const [first] = items
  if (first === undefined) throw new UsageError(`no call ${what}waits for a decision`)
  if (items.length === 1) return first
  const names = items.map((one) => `${one.conversation_id} ${one.call_id}`)
  throw new UsageError(`${items.length} calls wait; name one of ${names.join(", ")}`)
}

/** A call by its own name, by its conversation's, by both, or the only one there is. */
const pendingCall = async (client: Client, [named = "", call]: ReadonlyArray<string>): Promise<Waiting> => {
  if (call === undefined && isCallId(named)) {
    const { items } = await client.call("approval.list", {})
    const item = only(
      items.filter((one) => one.call_id === named),
      `${named} `
    )
    return { conversationId: item.conversation_id, callId: item.call_id, item }
  }
  const conversationId = await findConversation(client, named)
  const { items } = await client.call("approval.list", { conversation_id: conversationId })
  const item = call === undefined ? only(items, "") : items.find((one) => one.call_id === call)
  return { conversationId, callId: call ?? item?.call_id ?? "", item }
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

/** What is to run instead of what was asked about: the given arguments, or the question with its answer. */
const editedOf = (
  { item }: Waiting,
  values: { readonly arguments?: string | undefined; readonly answer?: string | undefined }
): { readonly arguments?: unknown } => {
  if (values.answer !== undefined && values.arguments !== undefined) {
    throw new UsageError("--answer and --arguments do not go together")
  }
  if (values.answer !== undefined) {
    if (item !== undefined && item.tool_name !== "ask_user") throw new UsageError(`${item.call_id} is no question`)
    return { arguments: { ...(item?.arguments as object | undefined), answer: values.answer } }
  }
  if (item?.tool_name === "ask_user" && values.arguments === undefined) {
    throw new UsageError(`${item.call_id} is a question: answer it with --answer TEXT, or decline it with "echs deny"`)
  }
  return values.arguments === undefined ? {} : { arguments: parseArguments(values.arguments) }
}

/** All questions there are, each with what exactly would run and how to answer it. */
const showInbox = async ({ answer, client, terminal, values }: RemoteInput<OptionTable>): Promise<ExitCode> => {
  const { items } = await client.call("approval.list", {})
  if (values.json === true || items.length === 0) {
    answer({ items }, () => terminal.paint("quiet", "nothing waits for a decision\n"))
    return exitCode.done
  }
  const rows = items.flatMap((item, at) => [...(at === 0 ? [] : [""]), ...inboxRows(item, terminal)])
  const seen = await showRows(rows, terminal, terminal.interruption())
  return seen === "seen" ? exitCode.done : exitCode.interrupted
}

/** Whoever did not name the call has not said which one: it is shown, and asked about where somebody can answer. */
const isMeant = async (
  { item }: Waiting,
  terminal: Terminal,
  given: { readonly isNamed: boolean; readonly isJson: boolean }
): Promise<boolean> => {
  if (given.isNamed || given.isJson || item === undefined || !terminal.isAnswered) return true
  const signal = terminal.interruption()
  if ((await showRows(decisionRows(item, terminal), terminal, signal)) === "stopped") return false
  const answer = await terminal.ask(`  approve ${item.call_id}? [y]es, [n]o `, signal)
  return /^y(es)?$/i.test(answer?.trim() ?? "")
}

export const makeApprove = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "approve",
    takes: "[CONVERSATION] [CALL]",
    positionals: { min: 0, max: 2 },
    options: {
      scope: { type: "string", value: "SCOPE", help: "once (default), session or rule" },
      arguments: { type: "string", value: "JSON", help: "run with these arguments instead" },
      answer: { type: "string", value: "TEXT", help: "the answer to a question of an agent" }
    },
    example: "echs approve last call_2 --scope session",
    notes: [
      "Without arguments: lists what waits for a decision, in all conversations.",
      "At a terminal a call that is not named is shown and asked about first."
    ],
    run: async (input) => {
      const { answer, client, positionals, terminal, values } = input
      if (positionals.length === 0) return showInbox(input as unknown as RemoteInput<OptionTable>)
      const scope = oneOf("scope", values.scope, ["once", "session", "rule"]) ?? "once"
      const waiting = await pendingCall(client, positionals)
      const { callId, conversationId: id, item } = waiting
      const edited = editedOf(waiting, values)
      const isNamed = positionals.some(isCallId)
      if (!(await isMeant(waiting, terminal, { isNamed, isJson: values.json === true }))) {
        terminal.complain(`${callId} still waits\n`)
        return exitCode.interrupted
      }
      const changed = await client.call("approval.approve", {
        conversation_id: id,
        call_id: callId,
        scope,
        arguments_hash: item?.arguments_hash ?? noHash,
        ...edited
      })
      const { learnt } = changed as { readonly learnt?: boolean }
      const more = learnt === undefined ? "" : learnt ? ", and written down for good" : ", and not written down"
      answer({ conversation_id: id, call_id: callId, ...changed }, () => `${callId} approved (${scope}${more})\n`)
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
    run: async ({ answer, client, positionals, values }) => {
      const { callId, conversationId: id } = await pendingCall(client, positionals)
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
      const { reason, state } = await client.call("conversation.get", { conversation_id: id })
      const isSpent = state === "suspended" && reason === "budget_exhausted"
      const op = state === "suspended" ? "conversation.unsuspend" : "conversation.resume"
      const changed = await client.call(op, {
        conversation_id: id,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      const hint = isSpent
        ? `its budget was used up, and it stops again unless that was raised: echs budget ${id} --tokens N\n`
        : ""
      answer({ conversation_id: id, ...changed }, () => `${id} goes on\n${hint}`)
      return exitCode.done
    }
  })

export const makeFork = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "fork",
    takes: "CONVERSATION [EVENT]",
    positionals: { min: 1, max: 2 },
    options: {
      continue: { type: "boolean", help: "queued messages, plans and turns go on in the fork too" }
    },
    example: "echs fork last 17",
    notes: [
      "Without EVENT the fork begins at the last one.",
      "A fork has nothing to do until it is spoken to: what was under way is over in it, unless it is to continue."
    ],
    run: async ({ answer, client, positionals: [named = "", event], values }) => {
      const at = wholeNumber("event", event, 1)
      const id = await findConversation(client, named)
      const head = at ?? (await client.call("conversation.get", { conversation_id: id })).last_event_id
      const forked = await client.call("conversation.fork", {
        conversation_id: id,
        at_event_id: head,
        ...(values["continue"] === true ? { continue: true } : {})
      })
      answer(forked, () => `${forked.conversation_id}\n`)
      return exitCode.done
    }
  })
