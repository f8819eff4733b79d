// Builds the body of a Messages request from a canonical one: thinking blocks back where they were, byte for byte,
// tool results first in the user message that follows their calls, cache breakpoints at the stable ends.
import type {
  Base64ImageSource,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  Tool,
  ToolResultBlockParam
} from "@anthropic-ai/sdk/resources/messages"
import type {
  AssistantMessage,
  AssistantPart,
  AttachmentPart,
  Effort,
  Message,
  ModelRequest,
  ToolResultPart
} from "../Canonical.ts"
import { wellFormedHistory } from "../History.ts"
import type { ModelInfo } from "../ModelInfo.ts"
import { originOf } from "../Provider.ts"
import { limits } from "../ProviderLimits.ts"

export const blockFormat = "anthropic.content_block"

export interface MessagesOptions {
  readonly provider: string
  readonly info: ModelInfo & { readonly known: boolean }
  readonly eagerToolInput: boolean
}

/** Sent when the history ends with the model's own words: newer models refuse to go on from them. */
export const continuation = "Continue."

/** Sent first when the history begins with the model's own words, which the API refuses. */
export const beginning = "(The beginning of this conversation is no longer available.)"

type UserBlock = TextBlockParam | ToolResultBlockParam | ImageBlockParam | DocumentBlockParam
type ImageMediaType = Base64ImageSource["media_type"]

interface Turn {
  readonly role: "user" | "assistant"
  readonly content: Array<ContentBlockParam>
}

const ephemeral = { type: "ephemeral" } as const

const isThinking = (block: ContentBlockParam): boolean =>
  block.type === "thinking" || block.type === "redacted_thinking"

const assistantBlock = (part: AssistantPart, origin: string): ContentBlockParam | undefined => {
  if (part.type === "text") return { type: "text", text: part.text }
  if (part.type === "tool_call") {
    return { type: "tool_use", id: part.call_id, name: part.tool_name, input: JSON.parse(part.arguments) }
  }
  return part.format === blockFormat && part.origin === origin ? JSON.parse(part.json) : undefined
}

/** Thinking that leads to nothing is refused at the end of a message, so it is left out there. */
const assistantBlocks = (message: AssistantMessage, origin: string): Array<ContentBlockParam> => {
  const blocks = message.content.map((part) => assistantBlock(part, origin)).filter((block) => block !== undefined)
  return blocks.slice(0, blocks.findLastIndex((block) => !isThinking(block)) + 1)
}

const attachmentBlock = (part: AttachmentPart): ImageBlockParam | DocumentBlockParam => {
  const data = part.data ?? ""
  if (part.type === "file") {
    return { type: "document", source: { type: "base64", media_type: "application/pdf", data }, title: part.name }
  }
  if ("url" in part.source) return { type: "image", source: { type: "url", url: part.source.url } }
  return { type: "image", source: { type: "base64", media_type: part.media_type as ImageMediaType, data } }
}

const resultContent = ({ attachments = [], output }: ToolResultPart): NonNullable<ToolResultBlockParam["content"]> =>
  attachments.length === 0 ? output : [{ type: "text", text: output }, ...attachments.map(attachmentBlock)]

const userBlocks = (message: Exclude<Message, AssistantMessage>): Array<UserBlock> =>
  message.role === "user"
    ? message.content.map((part) => (part.type === "text" ? { type: "text", text: part.text } : attachmentBlock(part)))
    : message.content.map((part) => ({
        type: "tool_result",
        tool_use_id: part.call_id,
        content: resultContent(part),
        ...(part.is_error === true ? { is_error: true } : {})
      }))

const turns = (messages: ReadonlyArray<Message>, origin: string): Array<Turn> => {
  const out: Array<Turn> = []
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user"
    const content = message.role === "assistant" ? assistantBlocks(message, origin) : userBlocks(message)
    const last = out.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else out.push({ role, content })
  }
  return out
}

/** A paused turn is continued by sending it back as it is; any other final assistant message needs a user's word. */
const endsPaused = (turn: Turn): boolean => turn.content.at(-1)?.type === "server_tool_use"

const bounded = (list: Array<Turn>): Array<Turn> => {
  const first: Array<Turn> =
    list[0]?.role === "user" ? [] : [{ role: "user", content: [{ type: "text", text: beginning }] }]
  const last = list.at(-1)
  const needsUser = last?.role === "assistant" && !endsPaused(last)
  return [
    ...first,
    ...list,
    ...(needsUser ? [{ role: "user" as const, content: [{ type: "text" as const, text: continuation }] }] : [])
  ]
}

/** Marks the end of the last two user messages: what lies before them does not change any more. */
const withBreakpoints = (list: Array<Turn>): Array<MessageParam> => {
  const marked = new Set(
    list
      .map((turn, at) => (turn.role === "user" ? at : -1))
      .filter((at) => at >= 0)
      .slice(-2)
  )
  return list.map((turn, at): MessageParam => {
    if (!marked.has(at)) return { role: turn.role, content: turn.content }
    const content = turn.content.map((block, index) =>
      index === turn.content.length - 1 && !isThinking(block) ? { ...block, cache_control: ephemeral } : block
    ) as Array<ContentBlockParam>
    return { role: turn.role, content }
  })
}

const tools = (request: ModelRequest, options: MessagesOptions): Array<Tool> =>
  (request.tools ?? []).map((tool) => ({
    name: tool.name,
    description: tool.description,
    input_schema: { ...tool.parameters, type: "object" },
    ...(options.eagerToolInput ? { eager_input_streaming: true } : {})
  }))

const budgetOf: { readonly [E in Exclude<Effort, "none">]: number } = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768
}

type ThinkingFields = Pick<MessageCreateParamsStreaming, "thinking" | "output_config">

/** With a manual budget the API wants the open tool loop to begin with thinking; a loop begun elsewhere has none. */
const loopLacksThinking = (list: ReadonlyArray<Turn>): boolean => {
  const last = list.findLast((turn) => turn.role === "assistant")
  const open = last?.content.some((block) => block.type === "tool_use") ?? false
  const first = last?.content[0]
  return open && first !== undefined && !isThinking(first)
}

const budgetThinking = (request: ModelRequest, maxTokens: number, list: ReadonlyArray<Turn>): ThinkingFields => {
  const effort = request.reasoning?.effort
  const wanted = request.reasoning?.budgetTokens ?? (effort === undefined || effort === "none" ? 0 : budgetOf[effort])
  const budget = Math.min(wanted, maxTokens - 1024)
  if (budget < 1024 || loopLacksThinking(list)) return {}
  return { thinking: { type: "enabled", budget_tokens: budget } }
}

const thinkingFields = (
  request: ModelRequest,
  options: MessagesOptions,
  maxTokens: number,
  list: ReadonlyArray<Turn>
): ThinkingFields => {
  const effort = request.reasoning?.effort
  const { thinking, known } = options.info
  if (thinking === "none" || (!known && request.reasoning === undefined)) return {}
  if (thinking === "budget" || request.reasoning?.budgetTokens !== undefined)
    return budgetThinking(request, maxTokens, list)
  if (effort === "none") return { thinking: { type: "disabled" } }
  return {
    // Without it, newer models say nothing between their tool calls.
    thinking: { type: "adaptive", display: "summarized" },
    ...(effort === undefined ? {} : { output_config: { effort: effort === "minimal" ? "low" : effort } })
  }
}

const systemFields = (request: ModelRequest): Pick<MessageCreateParamsStreaming, "system"> =>
  request.instructions === undefined || request.instructions.trim() === ""
    ? {}
    : { system: [{ type: "text", text: request.instructions.toWellFormed(), cache_control: ephemeral }] }

export const messagesBody = (request: ModelRequest, options: MessagesOptions): MessageCreateParamsStreaming => {
  const list = bounded(turns(wellFormedHistory(request.messages), originOf(options.provider, request.model)))
  const maxTokens = request.maxOutputTokens ?? Math.min(options.info.maxOutputTokens, limits.outputTokensDefault)
  const definitions = tools(request, options)
  return {
    model: request.model,
    stream: true,
    max_tokens: maxTokens,
    messages: withBreakpoints(list),
    ...systemFields(request),
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...thinkingFields(request, options, maxTokens, list)
  }
}
