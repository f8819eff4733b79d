// Builds the body of a Chat Completions request from a canonical one, in the subset that compatible servers share.
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam
} from "openai/resources/chat/completions"
import type { AssistantMessage, Message, ModelRequest } from "../Canonical.ts"
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

const messageParams = (
  message: Message,
  origin: string,
  options: ChatOptions
): ReadonlyArray<ChatCompletionMessageParam> => {
  if (message.role === "assistant") {
    return assistantParam(message, options.replayReasoning ? reasoningOf(message, origin) : {})
  }
  if (message.role === "tool") {
    return message.content.map((part) => ({ role: "tool", tool_call_id: part.call_id, content: part.output }))
  }
  return [{ role: "user", content: message.content.map((part) => part.text).join("\n\n") }]
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
      ...wellFormedHistory(request.messages).flatMap((message) => messageParams(message, origin, options))
    ],
    ...(options.includeUsage ? { stream_options: { include_usage: true } } : {}),
    ...(tools.length === 0 ? {} : { tools }),
    ...(request.maxOutputTokens === undefined ? {} : { [options.maxTokensField]: request.maxOutputTokens }),
    ...(effort === undefined ? {} : { reasoning_effort: effort })
  }
}
