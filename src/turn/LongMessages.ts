// A message that is too long for its model: the request has its beginning and its end, and says under which name a tool
// reads all of it. The log keeps the message as it is; whoever has a larger model is sent more of it.
import type { Message, ModelRequest } from "../provider/Canonical.ts"
import type { ModelCatalog } from "../provider/ModelCatalog.ts"
import type { BlobRef } from "../rune/kinds/shared.ts"
import { shortText } from "../rune/Media.ts"
import { limits } from "./TurnLimits.ts"

export type KeepText = (text: string) => Promise<BlobRef>

/** Characters that one message may have for a model; no limit while nobody knows its size. */
export const messageCharsMax = (catalog: ModelCatalog, fullName: string): number => {
  const { contextTokens, isSizeAssumed } = catalog.lookup(fullName)
  return isSizeAssumed === true
    ? Number.POSITIVE_INFINITY
    : Math.floor(contextTokens * limits.messageShare * limits.charsPerToken)
}

const charsOf = (message: Message): number =>
  message.role === "user"
    ? message.content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0)
    : 0

const isLong = (message: Message, charsMax: number): boolean => charsOf(message) > charsMax

export const hasLongMessage = ({ messages }: ModelRequest, charsMax: number): boolean =>
  messages.some((message) => isLong(message, charsMax))

const shortMessage = async (message: Message, charsMax: number, keep: KeepText | undefined): Promise<Message> => {
  if (message.role !== "user" || !isLong(message, charsMax)) return message
  const content = []
  const share = charsMax / charsOf(message)
  for (const part of message.content) {
    if (part.type !== "text") content.push(part)
    else {
      // No room for the whole is no reason to lose the rest.
      const blob = await keep?.(part.text).catch(() => undefined)
      const whole =
        blob === undefined ? "ask for the rest" : `read_file "blob:${blob.sha256}" has all ${blob.bytes} bytes`
      content.push({ ...part, text: shortText(part.text, Math.floor(part.text.length * share), whole) })
    }
  }
  return { ...message, content }
}

/** The request with every message short enough for the model. */
export const withShortMessages = async (
  request: ModelRequest,
  charsMax: number,
  keep: KeepText | undefined
): Promise<ModelRequest> => {
  if (!hasLongMessage(request, charsMax)) return request
  const messages: Array<Message> = []
  for (const message of request.messages) messages.push(await shortMessage(message, charsMax, keep))
  return { ...request, messages }
}
