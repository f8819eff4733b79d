// Images and documents on their way to a model: shown to one that can see them, as far as a request has room for them, and
// otherwise told of in words. The newest are shown first; where an older one is left out, a tool can still read it.
import type { TranscriptItem } from "../machine/State.ts"
import type * as Provider from "../provider/Canonical.ts"
import { attachmentTokens } from "../provider/Estimate.ts"
import { limits as providerLimits } from "../provider/ProviderLimits.ts"
import { attachmentText } from "../rune/Content.ts"
import type { Attachment, ContentPart } from "../rune/kinds/shared.ts"
import { isImageType, pdfType } from "../rune/Media.ts"

/** What a model can be shown. */
export interface Sight {
  readonly images: boolean
  readonly files: boolean
  /** Nothing is shown, and that is no matter of what the model can see: attachments are named and no more. */
  readonly isNaming?: true
}

export const blind: Sight = { images: false, files: false }
export const naming: Sight = { ...blind, isNaming: true }

type Attached = Exclude<ContentPart, { readonly type: "text" }> | Attachment

/** As a provider takes it; nothing where there is nothing to show. */
const partOf = (part: Attached): Provider.AttachmentPart | undefined => {
  const { blob } = part
  if (part.type === "image") {
    if ("url" in part && part.url !== undefined && blob === undefined)
      return { type: "image", media_type: part.media_type, source: { url: part.url } }
    if (blob === undefined || !isImageType(part.media_type)) return undefined
    return { type: "image", media_type: part.media_type, source: { sha256: blob.sha256, bytes: blob.bytes } }
  }
  if (blob === undefined || part.media_type !== pdfType) return undefined
  const source = { sha256: blob.sha256, bytes: blob.bytes }
  return { type: "file", name: part.name, media_type: part.media_type, source }
}

const told = (part: Attached, why: string): Provider.TextPart => ({
  type: "text",
  text: `[${attachmentText(part)}${why === "" ? "" : `: ${why}`}]`
})

/** One attachment as this model gets it. */
export const shownPart = (part: Attached, sight: Sight): Provider.AttachmentPart | Provider.TextPart => {
  if (part.type === "file" && "text" in part && part.text !== undefined) {
    return { type: "text", text: `${part.name}:\n${part.text}` }
  }
  const made = partOf(part)
  if (sight.isNaming === true) return told(part, "")
  if (made === undefined) return told(part, part.type === "image" ? "it was not kept" : "no model can be shown it")
  if (made.type === "image" && !sight.images) return told(part, "this model cannot see images")
  if (made.type === "file" && !sight.files) return told(part, "this model cannot read documents")
  return made
}

const attachmentsIn = (item: TranscriptItem): ReadonlyArray<Attached> => {
  if (item.type === "user") {
    return typeof item.content === "string"
      ? []
      : (item.content as ReadonlyArray<ContentPart>).flatMap((part) => (part.type === "text" ? [] : [part]))
  }
  if (item.type !== "assistant") return []
  return item.calls.flatMap((call) => (call.result?.attachments ?? []) as ReadonlyArray<Attachment>)
}

/** Tokens of what comes with an item, as far as it is no text. */
export const attachedTokens = (item: TranscriptItem): number =>
  attachmentsIn(item).reduce((sum, part) => {
    const made = partOf(part)
    return made === undefined ? sum : sum + attachmentTokens(made)
  }, 0)

const bytesOf = ({ source }: Provider.AttachmentPart): number => ("bytes" in source ? source.bytes : 0)

/** Takes attachments as long as a request has room for them. */
class Room {
  private left: number = providerLimits.attachmentsMax
  private bytes: number = providerLimits.attachmentBytesMax

  takes(part: Provider.AttachmentPart): boolean {
    if (this.left === 0 || bytesOf(part) > this.bytes) return false
    this.left -= 1
    this.bytes -= bytesOf(part)
    return true
  }
}

const named = (part: Provider.AttachmentPart): string => {
  const name = part.type === "file" ? ` ${part.name}` : ""
  const where = "url" in part.source ? part.source.url : `blob:${part.source.sha256}`
  return `[${part.type}${name} ${part.media_type}, ${where}: an older one, no longer shown; read_file shows it again]`
}

const roomyUser = (message: Provider.UserMessage, room: Room): Provider.UserMessage => ({
  ...message,
  content: message.content
    .toReversed()
    .map((part) => (part.type === "text" || room.takes(part) ? part : ({ type: "text", text: named(part) } as const)))
    .toReversed()
})

const roomyResult = (part: Provider.ToolResultPart, room: Room): Provider.ToolResultPart => {
  const { attachments, ...plain } = part
  if (attachments === undefined) return part
  const kept = new Set(attachments.toReversed().filter((one) => room.takes(one)))
  const output = [part.output, ...attachments.filter((one) => !kept.has(one)).map(named)].join("\n")
  const shown = attachments.filter((one) => kept.has(one))
  return shown.length === 0 ? { ...plain, output } : { ...plain, output, attachments: shown }
}

export const hasAttachments = (message: Provider.Message): boolean =>
  message.role === "user"
    ? message.content.some((part) => part.type !== "text")
    : message.role === "tool" && message.content.some((part) => part.attachments !== undefined)

/** The messages with no more attachments than a provider takes: the newest. */
export const withinRoom = (messages: ReadonlyArray<Provider.Message>): ReadonlyArray<Provider.Message> => {
  if (!messages.some(hasAttachments)) return messages
  const room = new Room()
  return messages
    .toReversed()
    .map((message): Provider.Message => {
      if (message.role === "user") return roomyUser(message, room)
      if (message.role === "assistant") return message
      const content = message.content.toReversed().map((part) => roomyResult(part, room))
      return { ...message, content: content.toReversed() }
    })
    .toReversed()
}
