// How large a request is before any provider has counted it. Used to reserve the worst case of a call and to see a
// full context coming; the bill comes from the provider's own numbers.
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { AttachmentPart, Message, ModelRequest } from "./Canonical.ts"
import type { ModelInfo } from "./ModelInfo.ts"
import type { Usage } from "./Provider.ts"
import { limits } from "./ProviderLimits.ts"

/** Images cost the same whatever they show, within limits; documents cost by the page. */
export const attachmentTokens = (part: AttachmentPart): number => {
  if (part.type === "image") return limits.imageTokens
  const pages = Math.ceil(part.source.bytes / limits.documentPageBytes)
  return Math.min(limits.documentPagesMax, Math.max(1, pages)) * limits.documentPageTokens
}

/** Every message of a request is counted for each call: a sum without lists in between. */
const messageAttachmentTokens = (message: Message): number => {
  if (message.role === "assistant") return 0
  let tokens = 0
  for (const part of message.content) {
    if (part.type === "tool_result") for (const one of part.attachments ?? []) tokens += attachmentTokens(one)
    else if (part.type !== "text") tokens += attachmentTokens(part)
  }
  return tokens
}

/** Characters of a message that a model reads; opaque parts count by their whole text. */
const messageChars = (message: Message): number =>
  message.content.reduce<number>((sum, part) => {
    if (part.type === "text") return sum + part.text.length
    if (part.type === "image" || part.type === "file") return sum
    if (part.type === "tool_call") return sum + part.tool_name.length + part.arguments.length
    return sum + (part.type === "tool_result" ? part.output.length : part.json.length)
  }, 0)

const parameterChars = new WeakMap<object, number>()

/** The parameters of a tool are the same object in every request. */
const charsOfParameters = (parameters: object): number => {
  const known = parameterChars.get(parameters)
  if (known !== undefined) return known
  const chars = JSON.stringify(parameters).length
  parameterChars.set(parameters, chars)
  return chars
}

const toolChars = (request: ModelRequest): number =>
  (request.tools ?? []).reduce(
    (sum, tool) => sum + tool.name.length + tool.description.length + charsOfParameters(tool.parameters),
    0
  )

export const requestChars = (request: ModelRequest): number =>
  (request.instructions?.length ?? 0) +
  request.messages.reduce((sum, message) => sum + messageChars(message), 0) +
  toolChars(request)

/** What wrapping a message costs in any format. */
const tokensPerMessage = 8

export const estimateInputTokens = (request: ModelRequest): number =>
  Math.ceil(requestChars(request) / machineLimits.charsPerToken) +
  request.messages.length * tokensPerMessage +
  request.messages.reduce((sum, message) => sum + messageAttachmentTokens(message), 0)

/** The most a call is expected to use: its whole input at the full price, its whole output limit. */
export const worstCaseUsage = (request: ModelRequest, info: ModelInfo): Usage => ({
  input_tokens: estimateInputTokens(request),
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: request.maxOutputTokens ?? Math.min(info.maxOutputTokens, limits.outputTokensDefault),
  reasoning_tokens: 0
})
