// Makes any recorded history acceptable to any provider: every tool call is followed by exactly one result, in
// call order; no result without its call; unique ids; no empty message; no text that cannot be encoded. A
// conversation that was killed, steered or moved between providers at any moment goes through here.

import { parseArguments } from "./Arguments.ts"
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  ToolCallPart,
  ToolResultPart,
  UserMessage
} from "./Canonical.ts"

/** Stands in for a result that was never recorded. */
export const missingResult = "No result of this call was recorded. Its outcome is unknown."

const emptyOutput = "(no output)"

const idPattern = /^[A-Za-z0-9_-]{1,64}$/
const namePattern = /^[A-Za-z0-9_-]{1,64}$/

/** A short fingerprint, so that two ids that differ only in refused characters stay different. */
const fingerprint = (value: string): string => {
  let hash = 0x811c9dc5
  for (let at = 0; at < value.length; at++) hash = Math.imul(hash ^ value.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(36)
}

const safeId = (id: string): string =>
  idPattern.test(id) ? id : `${id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 48)}_${fingerprint(id)}`

const safeName = (name: string): string =>
  namePattern.test(name) ? name : name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed_tool"

/** Arguments every server can parse: what the model wrote if that is an object, else a record of it. */
const safeArguments = (written: string): string => {
  const outcome = parseArguments(written)
  if (outcome._tag === "Unusable") return JSON.stringify({ unparsed_arguments: written.toWellFormed().slice(0, 4096) })
  return written.trim() === "" ? "{}" : JSON.stringify(outcome.value)
}

const soundParts = (parts: UserMessage["content"]): UserMessage["content"] =>
  parts
    .filter((part) => part.type !== "text" || part.text.trim() !== "")
    .map((part) => (part.type === "text" ? { ...part, text: part.text.toWellFormed() } : part))

interface Call {
  readonly recordedId: string
  readonly part: ToolCallPart
}

/** Renames the calls of one message so that no id was used before. */
const renamed = (message: AssistantMessage, taken: Set<string>): ReadonlyArray<AssistantPart | Call> =>
  message.content.map((part) => {
    if (part.type !== "tool_call") return part
    const base = safeId(part.call_id)
    let id = base
    for (let copy = 2; taken.has(id); copy++) id = `${base.slice(0, 60)}_${copy}`
    taken.add(id)
    const safe = { call_id: id, tool_name: safeName(part.tool_name), arguments: safeArguments(part.arguments) }
    return { recordedId: part.call_id, part: { ...part, ...safe } }
  })

const isCall = (part: AssistantPart | Call): part is Call => "recordedId" in part

const answer = (call: Call, results: Array<ToolResultPart>): ToolResultPart => {
  const at = results.findIndex((result) => result.call_id === call.recordedId)
  const [found] = at === -1 ? [] : results.splice(at, 1)
  if (found === undefined) {
    return { type: "tool_result", call_id: call.part.call_id, output: missingResult, is_error: true }
  }
  const output = found.output.toWellFormed()
  return { ...found, call_id: call.part.call_id, output: output.trim() === "" ? emptyOutput : output }
}

const keepsAnything = (part: AssistantPart): boolean => part.type !== "text" || part.text.trim() !== ""

/** One assistant message with everything that was recorded before the next one. */
const batch = (message: AssistantMessage, rest: ReadonlyArray<Message>, taken: Set<string>): ReadonlyArray<Message> => {
  const parts = renamed(message, taken)
  const results = rest.flatMap((later) => (later.role === "tool" ? later.content : []))
  const answers = parts.filter(isCall).map((call) => answer(call, results))
  const content = parts
    .map((part) =>
      isCall(part) ? part.part : part.type === "text" ? { ...part, text: part.text.toWellFormed() } : part
    )
    .filter(keepsAnything)
  return [
    ...(content.length === 0 ? [] : [{ role: "assistant" as const, content }]),
    ...(answers.length === 0 ? [] : [{ role: "tool" as const, content: answers }]),
    ...rest.filter((later) => later.role === "user")
  ]
}

const cleanUser = (message: Message): ReadonlyArray<Message> => {
  if (message.role !== "user") return [message]
  const content = soundParts(message.content)
  return content.length === 0 ? [] : [{ role: "user", content }]
}

/** Joins neighbors of the same role, which some servers refuse and none needs. */
const joined = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const out: Array<Message> = []
  for (const message of messages) {
    const last = out.at(-1)
    if (last?.role === "user" && message.role === "user") {
      const both: UserMessage = { role: "user", content: [...last.content, ...message.content] }
      out[out.length - 1] = both
    } else out.push(message)
  }
  return out
}

/** Index of the first assistant message from `from` on, or the length. */
const nextAssistant = (messages: ReadonlyArray<Message>, from: number): number => {
  let at = from
  while (at < messages.length && messages[at]?.role !== "assistant") at++
  return at
}

/** The history as it may be sent. Applying it twice changes nothing more. */
export const wellFormedHistory = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const taken = new Set<string>()
  const first = nextAssistant(messages, 0)
  const out: Array<Message> = messages.slice(0, first).filter((message) => message.role === "user")
  for (let at = first; at < messages.length; ) {
    const end = nextAssistant(messages, at + 1)
    const message = messages[at]
    if (message?.role === "assistant") out.push(...batch(message, messages.slice(at + 1, end), taken))
    at = end
  }
  return joined(out.flatMap(cleanUser))
}
