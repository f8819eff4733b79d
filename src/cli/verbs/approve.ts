// `echs approve`: allows a tool call that waits for a decision; without arguments, lists all that wait.
import { showRows } from "../Pages.ts"
import { makeRemoteVerb, type RemoteInput, type RemoteParts } from "../Remote.ts"
import { decisionRows } from "../render/Decision.ts"
import { inboxRows } from "../render/Inbox.ts"
import { isCallId, type PendingCall, pendingCall } from "../shared/PendingCall.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { type OptionTable, oneOf, UsageError } from "../VerbSpec.ts"

/** Sent for a call that no longer waits: the server reports its outcome before it checks the hash. */
const noHash = "0".repeat(64)

const parseArguments = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError("--arguments must be JSON")
  }
}

/** Replacement arguments: those given, or the arguments of a question with its answer added. */
const editedOf = (
  { item }: PendingCall,
  values: { readonly arguments?: string | undefined; readonly answer?: string | undefined }
): { readonly arguments?: unknown } => {
  if (values.answer !== undefined && values.arguments !== undefined) {
    throw new UsageError("--answer and --arguments cannot be combined")
  }
  if (values.answer !== undefined) {
    if (item !== undefined && item.tool_name !== "ask_user") throw new UsageError(`${item.call_id} is not a question`)
    return { arguments: { ...(item?.arguments as object | undefined), answer: values.answer } }
  }
  if (item?.tool_name === "ask_user" && values.arguments === undefined) {
    throw new UsageError(`${item.call_id} is a question: answer it with --answer TEXT, or decline it with "echs deny"`)
  }
  return values.arguments === undefined ? {} : { arguments: parseArguments(values.arguments) }
}

/** Lists every pending decision: what exactly would run, and how to answer. */
const showInbox = async ({ answer, client, terminal, values }: RemoteInput<OptionTable>): Promise<ExitCode> => {
  const { items } = await client.call("approval.list", {})
  if (values.json === true || items.length === 0) {
    answer({ items }, () => terminal.paint("quiet", "nothing is waiting for a decision\n"))
    return exitCode.done
  }
  const rows = items.flatMap((item, at) => [...(at === 0 ? [] : [""]), ...inboxRows(item, terminal)])
  const seen = await showRows(rows, terminal, terminal.interruption())
  return seen === "seen" ? exitCode.done : exitCode.interrupted
}

/** Shows a call that was not named and asks for confirmation, where a person can answer. */
const isConfirmed = async (
  { item }: PendingCall,
  terminal: Terminal,
  given: { readonly isNamed: boolean; readonly isJson: boolean }
): Promise<boolean> => {
  if (given.isNamed || given.isJson || item === undefined || !terminal.isAnswered) return true
  const signal = terminal.interruption()
  if ((await showRows(decisionRows(item, terminal), terminal, signal)) === "stopped") return false
  const answer = await terminal.ask(`  approve ${item.call_id}? [y]es, [n]o `, signal)
  return /^y(es)?$/i.test(answer?.trim() ?? "")
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "approve",
    takes: "[CONVERSATION] [CALL]",
    positionals: { min: 0, max: 2 },
    options: {
      scope: { type: "string", value: "SCOPE", help: "how long the permission lasts: once (default), session or rule" },
      arguments: { type: "string", value: "JSON", help: "run the tool with these arguments instead" },
      answer: { type: "string", value: "TEXT", help: "answer to a question asked by an agent" }
    },
    example: "echs approve last call_2 --scope session",
    notes: [
      "Without arguments, lists every pending decision of all conversations.",
      "If no call is named and the command runs at a terminal, it shows the call and asks for confirmation."
    ],
    run: async (input) => {
      const { answer, client, positionals, terminal, values } = input
      if (positionals.length === 0) return showInbox(input as unknown as RemoteInput<OptionTable>)
      const scope = oneOf("scope", values.scope, ["once", "session", "rule"]) ?? "once"
      const pending = await pendingCall(client, positionals, parts.workingDirectory())
      const { callId, conversationId: id, item } = pending
      const edited = editedOf(pending, values)
      const isNamed = positionals.some(isCallId)
      if (!(await isConfirmed(pending, terminal, { isNamed, isJson: values.json === true }))) {
        terminal.complain(`${callId} is still waiting\n`)
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
      const more = learnt === undefined ? "" : learnt ? ", rule saved" : ", rule not saved"
      answer({ conversation_id: id, call_id: callId, ...changed }, () => `${callId} approved (${scope}${more})\n`)
      return exitCode.done
    }
  })
