// Builds the body of a Responses request from a canonical one. Stateless: nothing is stored at the provider, so
// reasoning travels encrypted in our own history and is sent back as it came.
import type {
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseFunctionCallOutputItemList,
  ResponseInputFile,
  ResponseInputImage,
  ResponseInputItem
} from "openai/resources/responses/responses"
import { addressOf } from "../Attachments.ts"
import type {
  AssistantMessage,
  AssistantPart,
  AttachmentPart,
  Message,
  ModelRequest,
  OpaquePart,
  ToolResultPart
} from "../Canonical.ts"
import { wellFormedHistory } from "../History.ts"
import type { ModelInfo } from "../ModelInfo.ts"
import { originOf } from "../Provider.ts"

export const itemFormat = "openai.response_item"

export interface ResponsesOptions {
  readonly provider: string
  readonly info: ModelInfo
  /** Off for organisations that may not see summaries of reasoning. */
  readonly reasoningSummary: boolean
}

/** Parsed form of an opaque item, if this provider and model made it and it can be sent back. */
const replayable = (part: OpaquePart, origin: string): ResponseInputItem | undefined => {
  if (part.format !== itemFormat || part.origin !== origin) return undefined
  const item: ResponseInputItem = JSON.parse(part.json)
  // Without its encrypted content a reasoning item is only a name for something the provider did not keep.
  return item.type === "reasoning" && typeof item.encrypted_content !== "string" ? undefined : item
}

const partItem = (part: AssistantPart, origin: string): ResponseInputItem | undefined => {
  if (part.type === "opaque") return replayable(part, origin)
  if (part.type === "text") {
    return { role: "assistant", content: part.text, ...(part.phase === undefined ? {} : { phase: part.phase }) }
  }
  return { type: "function_call", call_id: part.call_id, name: part.tool_name, arguments: part.arguments }
}

/** A reasoning item that nothing follows is refused, so trailing ones are left out. */
const assistantItems = (message: AssistantMessage, origin: string): ReadonlyArray<ResponseInputItem> => {
  const items = message.content.map((part) => partItem(part, origin)).filter((item) => item !== undefined)
  const end = items.findLastIndex((item) => item.type !== "reasoning")
  return items.slice(0, end + 1)
}

const attachmentItem = (part: AttachmentPart): ResponseInputImage | ResponseInputFile =>
  part.type === "image"
    ? { type: "input_image", detail: "auto", image_url: addressOf(part) }
    : { type: "input_file", filename: part.name, file_data: addressOf(part) }

const outputOf = ({ attachments = [], output }: ToolResultPart): string | ResponseFunctionCallOutputItemList =>
  attachments.length === 0 ? output : [{ type: "input_text", text: output }, ...attachments.map(attachmentItem)]

const messageItems = (message: Message, origin: string): ReadonlyArray<ResponseInputItem> => {
  if (message.role === "assistant") return assistantItems(message, origin)
  if (message.role === "tool") {
    return message.content.map((part) => ({
      type: "function_call_output",
      call_id: part.call_id,
      output: outputOf(part)
    }))
  }
  const content = message.content.map((part) =>
    part.type === "text" ? ({ type: "input_text", text: part.text } as const) : attachmentItem(part)
  )
  return [{ role: "user", content }]
}

const functionTools = (request: ModelRequest): Array<FunctionTool> =>
  (request.tools ?? []).map((tool) => ({
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: { ...tool.parameters },
    strict: false
  }))

const reasoningFields = (request: ModelRequest, options: ResponsesOptions): Partial<ResponseCreateParamsStreaming> => {
  if (options.info.thinking === "none") return {}
  const effort = request.reasoning?.effort
  const summary = options.reasoningSummary && options.info.thinking !== undefined && effort !== "none"
  return {
    include: ["reasoning.encrypted_content"],
    ...(effort === undefined && !summary
      ? {}
      : { reasoning: { ...(effort === undefined ? {} : { effort }), ...(summary ? { summary: "auto" } : {}) } })
  }
}

export const responsesBody = (request: ModelRequest, options: ResponsesOptions): ResponseCreateParamsStreaming => {
  const origin = originOf(options.provider, request.model)
  const tools = functionTools(request)
  const cacheKey = request.metadata?.conversationId
  return {
    model: request.model,
    stream: true,
    store: false,
    input: wellFormedHistory(request.messages).flatMap((message) => messageItems(message, origin)),
    ...(request.instructions === undefined ? {} : { instructions: request.instructions.toWellFormed() }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(request.maxOutputTokens === undefined ? {} : { max_output_tokens: request.maxOutputTokens }),
    ...(cacheKey === undefined ? {} : { prompt_cache_key: cacheKey.slice(0, 64) }),
    ...reasoningFields(request, options)
  }
}
