// Builds the body of a Chat Completions request from a canonical one, in the subset that compatible servers share.
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
  ChatCompletionUserMessageParam
} from "openai/resources/chat/completions"
import { addressOf } from "../Attachments.ts"
import type { AssistantMessage, AttachmentPart, Message, ModelRequest, ToolMessage, UserMessage } from "../Canonical.ts"
import { wellFormedHistory } from "../History.ts"
import { originOf } from "../Provider.ts"

export const reasoningFormat = "openai.chat_reasoning"

export interface ChatOptions {
  readonly provider: string
  /** Servers differ in the name of the limit; OpenAI itself refuses the old one. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly includeUsage: boolean
  /** Whether reasoning the server sent is sent back to it. */
  readonly replayReasoning: boolean
}

/** Fields of an earlier answer that carry reasoning, under the names the server itself used. */
export interface ChatReasoning {
  readonly reasoning_content?: string
  readonly reasoning?: string
  readonly reasoning_details?: ReadonlyArray<unknown>
}

const reasoningOf = (message: AssistantMessage, origin: string): ChatReasoning => {
  const part = message.content.find(
    (candidate) => candidate.type === "opaque" && candidate.format === reasoningFormat && candidate.origin === origin
  )
  return part?.type === "opaque" ? JSON.parse(part.json) : {}
}

const assistantParam = (
  message: AssistantMessage,
  reasoning: ChatReasoning
): ReadonlyArray<ChatCompletionAssistantMessageParam> => {
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
  const calls = message.content
    .filter((part) => part.type === "tool_call")
    .map((part) => ({
      type: "function" as const,
      id: part.call_id,
      function: { name: part.tool_name, arguments: part.arguments }
    }))
  if (text === "" && calls.length === 0) return []
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...reasoning
    }
  ]
}

const attachmentParam = (part: AttachmentPart): ChatCompletionContentPart =>
  part.type === "image"
    ? { type: "image_url", image_url: { url: addressOf(part) } }
    : { type: "file", file: { filename: part.name, file_data: addressOf(part) } }

/** Text alone stays a text: not every server takes a list of parts. */
const userParam = (content: UserMessage["content"]): ChatCompletionUserMessageParam => {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []))
  if (texts.length === content.length) return { role: "user", content: texts.join("\n\n") }
  return {
    role: "user",
    content: content.map((part) => (part.type === "text" ? { type: "text", text: part.text } : attachmentParam(part)))
  }
}

/** A tool's message takes text alone: what the tool showed follows as the user's, and says whose it is. */
const shownByTools = (message: ToolMessage): ReadonlyArray<ChatCompletionMessageParam> => {
  const content = message.content.flatMap(({ attachments = [], call_id: id }): UserMessage["content"] =>
    attachments.length === 0
      ? []
      : [{ type: "text", text: `Attached to the result of the call ${id}:` }, ...attachments]
  )
  return content.length === 0 ? [] : [userParam(content)]
}

const partsOf = ({ content }: ChatCompletionUserMessageParam): Array<ChatCompletionContentPart> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content

/** What tools showed and what the user says next are one message: some servers refuse two of the same role in a row. */
const merged = (params: ReadonlyArray<ChatCompletionMessageParam>): Array<ChatCompletionMessageParam> => {
  const out: Array<ChatCompletionMessageParam> = []
  for (const param of params) {
    const last = out.at(-1)
    if (last?.role === "user" && param.role === "user")
      out[out.length - 1] = { role: "user", content: [...partsOf(last), ...partsOf(param)] }
    else out.push(param)
  }
  return out
}

const messageParams = (
  message: Message,
  origin: string,
  options: ChatOptions
): ReadonlyArray<ChatCompletionMessageParam> => {
  if (message.role === "assistant") {
    return assistantParam(message, options.replayReasoning ? reasoningOf(message, origin) : {})
  }
  if (message.role === "tool") {
    const results = message.content.map(
      (part) => ({ role: "tool", tool_call_id: part.call_id, content: part.output }) as const
    )
    return [...results, ...shownByTools(message)]
  }
  return [userParam(message.content)]
}

const functionTools = (request: ModelRequest): Array<ChatCompletionFunctionTool> =>
  (request.tools ?? []).map((tool) => ({
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: { ...tool.parameters } }
  }))

const systemParam = (request: ModelRequest): ReadonlyArray<ChatCompletionMessageParam> =>
  request.instructions === undefined || request.instructions === ""
    ? []
    : [{ role: "system", content: request.instructions.toWellFormed() }]

export const chatBody = (request: ModelRequest, options: ChatOptions): ChatCompletionCreateParamsStreaming => {
  const origin = originOf(options.provider, request.model)
  const tools = functionTools(request)
  const effort = request.reasoning?.effort
  return {
    model: request.model,
    stream: true,
    messages: [
      ...systemParam(request),
      ...merged(wellFormedHistory(request.messages).flatMap((message) => messageParams(message, origin, options)))
    ],
    ...(options.includeUsage ? { stream_options: { include_usage: true } } : {}),
    ...(tools.length === 0 ? {} : { tools }),
    ...(request.maxOutputTokens === undefined ? {} : { [options.maxTokensField]: request.maxOutputTokens }),
    ...(effort === undefined ? {} : { reasoning_effort: effort })
  }
}
