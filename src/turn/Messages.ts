// Between the machine's view of a conversation and the providers': requests one way, answers the other. Data that
// only its own provider understands passes through untouched.
import type { ResponseItem, ToolFacts } from "../machine/Command.ts"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { type AssistantPart, assembleRequest, type RequestMessage } from "../machine/view/Request.ts"
import type * as Provider from "../provider/Canonical.ts"
import type { ToolCallEvent } from "../provider/Provider.ts"
import { blind, type Sight, shownPart, withinRoom } from "./MediaParts.ts"

const OPAQUE = "opaque"

interface OpaqueData {
  readonly format: string
  readonly json: string
}

const isOpaqueData = (data: unknown): data is OpaqueData =>
  typeof data === "object" &&
  data !== null &&
  typeof (data as OpaqueData).format === "string" &&
  typeof (data as OpaqueData).json === "string"

const providerPart = (part: AssistantPart): ReadonlyArray<Provider.AssistantPart> => {
  switch (part.type) {
    case "text": {
      const phase = (part.native?.data as { readonly phase?: Provider.TextPart["phase"] } | undefined)?.phase
      return [{ type: "text", text: part.text, ...(phase === undefined ? {} : { phase }) }]
    }
    case "reasoning": {
      const data = part.native?.data
      if (part.native === undefined || !isOpaqueData(data)) return []
      return [
        { type: OPAQUE, format: data.format, json: data.json, origin: `${part.native.provider}/${part.native.model}` }
      ]
    }
    case "tool_call":
      return [
        {
          type: "tool_call",
          call_id: part.wire_call_id,
          tool_name: part.tool_name,
          arguments: JSON.stringify(part.arguments)
        }
      ]
  }
}

/** Results of one batch are one message. */
const addToolResult = (
  messages: Array<Provider.Message>,
  message: Extract<RequestMessage, { readonly role: "tool" }>,
  sight: Sight
): void => {
  const shown = (message.attachments ?? []).map((one) => shownPart(one, sight))
  const words = shown.flatMap((one) => (one.type === "text" ? [one.text] : []))
  const attachments = shown.filter((one) => one.type !== "text")
  const part: Provider.ToolResultPart = {
    type: "tool_result",
    call_id: message.wire_call_id,
    output: [message.content, ...words].filter((text) => text !== "").join("\n"),
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(message.status === "success" ? {} : { is_error: true })
  }
  const last = messages[messages.length - 1]
  if (last?.role === "tool") messages[messages.length - 1] = { role: "tool", content: [...last.content, part] }
  else messages.push({ role: "tool", content: [part] })
}

/** A model should not take another agent's words for those of the person it works for. */
const userParts = (
  { content, from_agent_id: from }: Extract<RequestMessage, { readonly role: "user" }>,
  sight: Sight
): Provider.UserMessage["content"] => {
  const head = from === undefined ? "" : `Message from agent ${from}:\n\n`
  if (typeof content === "string") return [{ type: "text", text: `${head}${content}` }]
  const parts = content.map((part) => (part.type === "text" ? part : shownPart(part, sight)))
  return head === "" ? parts : [{ type: "text", text: head.trim() }, ...parts]
}

export interface AssembledRequest {
  readonly instructions: string | undefined
  readonly messages: ReadonlyArray<Provider.Message>
}

/** Everything the agent's next model call has to know, as far as the model can see it. */
export const assemble = (state: ConversationState, agent: AgentState, sight: Sight = blind): AssembledRequest => {
  const messages: Array<Provider.Message> = []
  let instructions: string | undefined
  for (const message of assembleRequest(state, agent)) {
    if (message.role === "system") instructions = message.content
    else if (message.role === "user")
      messages.push({
        role: "user",
        content: userParts(message, sight),
        ...(message.note === undefined ? {} : { note: message.note })
      })
    else if (message.role === "tool") addToolResult(messages, message, sight)
    else messages.push({ role: "assistant", content: message.parts.flatMap(providerPart) })
  }
  return { instructions, messages: withinRoom(messages) }
}

/** What was made of the arguments of each call, by call id. */
export type ParsedCalls = ReadonlyMap<string, ToolCallEvent["parsed"]>

/** Arguments in the only form that may be used, or the reason why there is none. */
const argumentsOf = (
  part: Provider.ToolCallPart,
  parsed: ToolCallEvent["parsed"] | undefined
): Pick<Extract<ResponseItem, { readonly type: "tool_call" }>, "arguments_text" | "unusable"> => {
  if (parsed === undefined) return { arguments_text: part.arguments }
  if (parsed._tag === "Parsed") return { arguments_text: JSON.stringify(parsed.value) }
  const code = parsed.reason === "too_large" ? "arguments_too_large" : "invalid_arguments"
  return { arguments_text: part.arguments, unusable: { code, message: parsed.message } }
}

export interface Origin {
  readonly provider: string
  readonly model: string
}

const responseItem = (
  part: Provider.AssistantPart,
  origin: Origin,
  calls: ParsedCalls,
  factsOf: (toolName: string) => ToolFacts | undefined
): ResponseItem => {
  if (part.type === "text") {
    const native = part.phase === undefined ? {} : { native: { ...origin, data: { phase: part.phase } } }
    return { type: "text", text: part.text, ...native }
  }
  if (part.type === OPAQUE) {
    return { type: "reasoning", native: { ...origin, data: { format: part.format, json: part.json } } }
  }
  const tool = factsOf(part.tool_name)
  return {
    type: "tool_call",
    provider_call_id: part.call_id,
    tool_name: part.tool_name,
    ...argumentsOf(part, calls.get(part.call_id)),
    ...(tool === undefined ? {} : { tool })
  }
}

/** A model's answer as the machine takes it. */
export const responseItems = (
  parts: ReadonlyArray<Provider.AssistantPart>,
  origin: Origin,
  calls: ParsedCalls,
  factsOf: (toolName: string) => ToolFacts | undefined
): ReadonlyArray<ResponseItem> => parts.map((part) => responseItem(part, origin, calls, factsOf))
