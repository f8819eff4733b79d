// Brings the bytes of images and documents into a request that is about to be sent. They are read only then, so that no
// copy of them lies in memory while a request is measured, waits or is built again. One that cannot be read is told of.
import type { AttachmentPart, Message, ModelRequest, TextPart, ToolResultPart, UserMessage } from "./Canonical.ts"

export type ReadBlob = (sha256: string) => Promise<Uint8Array>

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")

type Loaded = AttachmentPart | TextPart

const unreadable = (part: AttachmentPart): TextPart => {
  const name = part.type === "file" ? ` ${part.name}` : ""
  return { type: "text", text: `[${part.type}${name} ${part.media_type}: it can no longer be read]` }
}

const loaded = async (part: AttachmentPart, read: ReadBlob | undefined): Promise<Loaded> => {
  if (part.data !== undefined || "url" in part.source) return part
  if (read === undefined) return unreadable(part)
  try {
    return { ...part, data: base64(await read(part.source.sha256)) }
  } catch {
    return unreadable(part)
  }
}

const loadedUser = async (message: UserMessage, read: ReadBlob | undefined): Promise<UserMessage> => {
  const content: Array<Loaded> = []
  for (const part of message.content) content.push(part.type === "text" ? part : await loaded(part, read))
  return { ...message, content }
}

const loadedResult = async (part: ToolResultPart, read: ReadBlob | undefined): Promise<ToolResultPart> => {
  if (part.attachments === undefined) return part
  const attachments: Array<AttachmentPart> = []
  const told: Array<string> = []
  for (const one of part.attachments) {
    const got = await loaded(one, read)
    if (got.type === "text") told.push(got.text)
    else attachments.push(got)
  }
  const { attachments: _, ...plain } = part
  const output = [part.output, ...told].filter((text) => text !== "").join("\n")
  return attachments.length === 0 ? { ...plain, output } : { ...plain, output, attachments }
}

const loadedMessage = async (message: Message, read: ReadBlob | undefined): Promise<Message> => {
  if (message.role === "user") return loadedUser(message, read)
  if (message.role === "assistant") return message
  const content: Array<ToolResultPart> = []
  for (const part of message.content) content.push(await loadedResult(part, read))
  return { ...message, content }
}

const hasAttachments = (message: Message): boolean =>
  message.role === "user"
    ? message.content.some((part) => part.type !== "text")
    : message.role === "tool" && message.content.some((part) => part.attachments !== undefined)

/** The request with the bytes of everything that is attached to it. */
export const withBytes = async (request: ModelRequest, read: ReadBlob | undefined): Promise<ModelRequest> => {
  if (!request.messages.some(hasAttachments)) return request
  const messages: Array<Message> = []
  for (const message of request.messages) messages.push(await loadedMessage(message, read))
  return { ...request, messages }
}

/** Where a provider finds an image: the bytes inside of the address itself, or an address of somebody else. */
export const addressOf = (part: AttachmentPart): string =>
  "url" in part.source ? part.source.url : `data:${part.media_type};base64,${part.data ?? ""}`
