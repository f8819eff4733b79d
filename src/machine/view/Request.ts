/**
 * From state to what a model is sent: one canonical list of messages, with the
 * outputs of a batch right after the answer that asked for them, in call order.
 * Every call in the list has its output and every output its call, whatever the
 * log went through; anything else would make a provider refuse the conversation.
 */

import { attachmentText, contentText } from "../../rune/Content.ts"
import { mappedTo } from "../../rune/Elements.ts"
import type { AgentId, CallId } from "../../rune/Ids.ts"
import type { Attachment, Content, ErrorInfo } from "../../rune/kinds/shared.ts"
import type { ToolResultStatus } from "../../rune/kinds/tool.ts"
import type { AssistantItem } from "../../rune/kinds/turn.ts"
import { canonicalJson } from "../Canonical.ts"
import { effectsText, shortened } from "../evolve/DoneEffects.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, CallRecord, ConversationState, DeepReadonly, TranscriptItem } from "../State.ts"

type Native = Extract<AssistantItem, { readonly type: "text" }>["native"]

export type AssistantPart =
  | { readonly type: "text"; readonly text: string; readonly native?: Native }
  | { readonly type: "reasoning"; readonly text?: string; readonly native?: Native }
  | {
      readonly type: "tool_call"
      readonly call_id: CallId
      /** The id to use on the wire: the provider's own where it is usable and unique, else ours. */
      readonly wire_call_id: string
      readonly tool_name: string
      readonly arguments: unknown
      readonly native?: Native
    }

export type RequestMessage =
  | { readonly role: "system"; readonly content: string }
  | {
      readonly role: "user"
      readonly content: Content
      readonly from_agent_id?: AgentId
      /** Nobody's input: what has changed where the agent works, or what a person had run again. */
      readonly note?: true
    }
  | { readonly role: "assistant"; readonly parts: ReadonlyArray<AssistantPart> }
  | {
      readonly role: "tool"
      readonly call_id: CallId
      readonly wire_call_id: string
      readonly tool_name: string
      readonly status: ToolResultStatus
      readonly content: string
      readonly attachments?: ReadonlyArray<Attachment>
    }

const usableWireId = /^[A-Za-z0-9_-]{1,64}$/u

/** Wire ids of all calls that will be sent: unique, whatever ids the model made up. */
const assignWireIds = (transcript: ReadonlyArray<TranscriptItem>): ReadonlyMap<CallId, string> => {
  const taken = new Set<string>()
  const assigned = new Map<CallId, string>()
  for (const item of transcript) {
    if (item.type !== "assistant") continue
    for (const { call_id: callId, provider_call_id: providerId } of item.calls) {
      const isFree = providerId !== undefined && usableWireId.test(providerId) && !taken.has(providerId)
      const wireId = isFree ? providerId : callId
      taken.add(wireId)
      assigned.set(callId, wireId)
    }
  }
  return assigned
}

const errorText = (error: DeepReadonly<ErrorInfo> | undefined): string =>
  error === undefined ? "" : `${error.code}: ${error.message}`

const notes: Readonly<Record<ToolResultStatus, string>> = {
  success: "",
  error: "The call failed.",
  timeout: "The call timed out.",
  cancelled: "The call was cancelled.",
  denied: "The call was not allowed.",
  unknown: "The outcome of the call is unknown: it may or may not have taken effect. Check before doing it again.",
  sandbox_violation: "The sandbox stopped the call."
}

/** What the model reads as a call's output. */
export const toolContent = (record: CallRecord): { readonly status: ToolResultStatus; readonly content: string } => {
  const { result } = record
  if (result === undefined) return { status: "unknown", content: notes.unknown }
  const output = result.output ?? ""
  if (result.status === "success") return { status: "success", content: output }
  const lines = [notes[result.status], errorText(result.error), output].filter((line) => line !== "")
  return { status: result.status, content: lines.join("\n") }
}

/** Of a turn, or of a retry, whose request was refused for an image or a file in it. */
export const ATTACHMENT_REFUSED = "attachment_refused"

const refusedText = (part: Parameters<typeof attachmentText>[0]): string =>
  `[${attachmentText(part)}: the provider refused it, and it is not shown]`

/** What a call that went well brought besides its words; a failure is told in words alone. */
const answerOf = (
  record: CallRecord,
  isRefused: boolean
): Pick<Extract<RequestMessage, { readonly role: "tool" }>, "attachments" | "content" | "status"> => {
  const told = toolContent(record)
  const attachments = record.result?.attachments as ReadonlyArray<Attachment> | undefined
  if (attachments === undefined || told.status !== "success") return told
  if (!isRefused) return { ...told, attachments }
  return { ...told, content: [told.content, ...attachments.map(refusedText)].join("\n") }
}

/** A message without what the provider refused to take with it. */
const withoutRefused = (content: Content): Content =>
  typeof content === "string"
    ? content
    : content.map((part) =>
        part.type === "text" || (part.type === "file" && part.text !== undefined)
          ? part
          : { type: "text", text: refusedText(part) }
      )

interface Assembly {
  readonly messages: Array<RequestMessage>
  readonly wireIds: ReadonlyMap<CallId, string>
  /** What was done and is not among the messages. */
  readonly effects: string
  /** The attachments of items up to this event were refused. */
  readonly refusedUpto: number
}

const isRefused = ({ refusedUpto }: Assembly, { event_id: eventId }: TranscriptItem): boolean => eventId <= refusedUpto

const SUMMARY = "Summary of the conversation so far"

const callPart = (assembly: Assembly, record: CallRecord, native: Native): AssistantPart => ({
  type: "tool_call",
  call_id: record.call_id,
  wire_call_id: mappedTo(assembly.wireIds, record.call_id),
  tool_name: record.tool_name,
  arguments: record.arguments,
  ...(native === undefined ? {} : { native })
})

type AssistantEntry = Extract<TranscriptItem, { readonly type: "assistant" }>

const partsOf = (assembly: Assembly, entry: AssistantEntry): ReadonlyArray<AssistantPart> => {
  const parts: Array<AssistantPart> = []
  let at = 0
  for (const item of entry.items) {
    const native = item.native === undefined ? {} : { native: item.native as Native }
    if (item.type === "text") {
      const text = entry.content.slice(at, at + item.chars)
      at += item.chars
      if (text !== "") parts.push({ type: "text", text, ...native })
    } else if (item.type === "reasoning") {
      parts.push({ type: "reasoning", ...(item.text === undefined ? {} : { text: item.text }), ...native })
    } else {
      const record = entry.calls.find((one) => one.call_id === item.call_id)
      if (record !== undefined) parts.push(callPart(assembly, record, item.native as Native))
    }
  }
  return parts
}

/** Told as what happened beside the conversation: the model did not ask for it. */
const addRerun = (assembly: Assembly, entry: AssistantEntry): void => {
  for (const record of entry.calls) {
    const { attachments = [], content } = answerOf(record, isRefused(assembly, entry))
    const args = shortened(canonicalJson(record.arguments), limits.effectArgumentsCharsMax)
    const text = `[A person had the call ${record.tool_name} ${args} run again. Its result:]\n${content}`
    const said = attachments.length === 0 ? text : [{ type: "text" as const, text }, ...attachments]
    assembly.messages.push({ role: "user", content: said, note: true })
  }
}

const addAssistant = (assembly: Assembly, entry: AssistantEntry): void => {
  const parts = partsOf(assembly, entry)
  // Thoughts alone are no message to a provider.
  if (!parts.some((part) => part.type !== "reasoning")) return
  assembly.messages.push({ role: "assistant", parts })
  for (const part of parts) {
    if (part.type !== "tool_call") continue
    const record = entry.calls.find((one) => one.call_id === part.call_id)
    if (record === undefined) continue
    const { call_id: callId, wire_call_id: wireId, tool_name: toolName } = part
    assembly.messages.push({
      role: "tool",
      call_id: callId,
      wire_call_id: wireId,
      tool_name: toolName,
      ...answerOf(record, isRefused(assembly, entry))
    })
  }
}

/** The input that is being worked on comes before the summary of what was done about it. */
const addSummary = ({ effects, messages }: Assembly, content: string): void => {
  const head =
    messages.at(-1)?.role === "user" ? `${SUMMARY}, and of what was done about the message above:` : `${SUMMARY}:`
  messages.push({ role: "user", content: [head, content, effects].filter((text) => text !== "").join("\n\n") })
}

const unfitNote = (content: Content): string => {
  const text = contentText(content)
  const begin = shortened(text, limits.unfitKeptCharsMax)
  return `[A message of ${text.length} characters was left out: it did not fit into the model's context. In short: ${begin}]`
}

const addItem = (assembly: Assembly, item: TranscriptItem): void => {
  switch (item.type) {
    case "assistant":
      if (item.rerun === true) addRerun(assembly, item)
      else addAssistant(assembly, item)
      return
    case "summary":
      addSummary(assembly, item.content)
      return
    case "note":
      assembly.messages.push({ role: "user", content: item.content, note: true })
      return
    case "user": {
      const from = item.from_agent_id === undefined ? {} : { from_agent_id: item.from_agent_id }
      const said = item.content as Content
      const shown = isRefused(assembly, item) ? withoutRefused(said) : said
      const content = item.unfit === true ? unfitNote(said) : shown
      assembly.messages.push({ role: "user", content, ...from })
    }
  }
}

/**
 * What the agent is told before all else: how its prompt begins, then its own instructions, or those of the
 * conversation when it has none. The beginning never changes, so that a provider can keep it.
 */
export const instructionsOf = (state: ConversationState, agent: AgentState): string => {
  const own = agent.instructions ?? state.session.config.instructions ?? ""
  if (agent.prompt === null) return own
  const head = agent.instructions === null ? "# Instructions for this conversation" : `# Your role: ${agent.role}`
  return own === "" ? agent.prompt.content : `${agent.prompt.content}\n\n${head}\n\n${own}`
}

/** The messages of the agent's next request. */
export const assembleRequest = (state: ConversationState, agent: AgentState): ReadonlyArray<RequestMessage> => {
  const effects = effectsText(agent)
  const assembly: Assembly = {
    messages: [],
    wireIds: assignWireIds(agent.transcript),
    effects,
    refusedUpto: agent.refused_upto ?? 0
  }
  const instructions = instructionsOf(state, agent)
  if (instructions !== "") assembly.messages.push({ role: "system", content: instructions })
  const isSummedUp = agent.transcript.some((item) => item.type === "summary")
  if (effects !== "" && !isSummedUp) assembly.messages.push({ role: "user", content: effects })
  for (const item of agent.transcript) addItem(assembly, item)
  return assembly.messages
}

/** The input that the running turn works on: the newest there is. It stays word for word while the turn runs. */
export const runningInput = (agent: AgentState): TranscriptItem | undefined =>
  agent.turn === null ? undefined : agent.transcript.findLast((item) => item.type === "user")

/**
 * Event ids after which a compaction may cut, oldest first: every answer whose
 * calls all have their results. A question that waits for its answer is never cut.
 */
export const compactionPoints = (agent: AgentState): ReadonlyArray<number> =>
  agent.transcript.flatMap((item) =>
    item.type === "assistant" && item.calls.every((call) => call.result !== undefined) ? [item.event_id] : []
  )
