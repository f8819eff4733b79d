// Images, documents and other bytes that tools bring. What they are is read from the bytes. A model can be shown images and
// PDF documents; text becomes part of the output; anything else is kept and told of. Bytes go beside the log, never into it.
import { attachmentText } from "../rune/Content.ts"
import type { Attachment, BlobRef } from "../rune/kinds/shared.ts"
import { isImageType, mediaLimits, pdfType, sniffMedia, textType } from "../rune/Media.ts"
import type { RawMedia, ToolOutcome } from "./ToolPort.ts"

/** Keeps bytes under their hash; there may be no room. */
export type KeepMedia = (bytes: Uint8Array, mediaType: string) => Promise<BlobRef>

type Kept = { readonly text: string } | { readonly attachment: Attachment }

const sizeProblem = (type: string, bytes: number): string | undefined => {
  const max = isImageType(type) ? mediaLimits.imageBytesMax : mediaLimits.fileBytesMax
  return bytes <= max ? undefined : `it has more than the ${max} bytes that can be shown to a model`
}

const attachmentOf = (media_type: string, name: string, blob: BlobRef): Attachment =>
  isImageType(media_type) ? { type: "image", media_type, blob } : { type: "file", name, media_type, blob }

const keepOne = async ({ bytes, name = "" }: RawMedia, keep: KeepMedia | undefined): Promise<Kept> => {
  const type = sniffMedia(bytes)
  const label = name.slice(0, mediaLimits.nameCharsMax).toWellFormed()
  if (type === textType) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
    return { text: label === "" ? text : `${label}\n${text}` }
  }
  const told = [type, label, `${bytes.length} bytes`].filter((one) => one !== "").join(", ")
  const blob = bytes.length > mediaLimits.fileBytesMax ? undefined : await keep?.(bytes, type).catch(() => undefined)
  if (blob === undefined) return { text: `[${told}: it was not kept]` }
  const attachment = attachmentOf(type, label === "" ? "document" : label, { ...blob, media_type: type })
  const problem = sizeProblem(type, bytes.length)
  if (problem !== undefined) return { text: `[${attachmentText(attachment)}: ${problem}]` }
  const isShown = isImageType(type) || type === pdfType
  return isShown ? { attachment } : { text: `[${attachmentText(attachment)}: it cannot be shown to a model]` }
}

/** The outcome with its bytes kept: what can be shown is attached, the rest is told in the output. */
export const withMediaKept = async (outcome: ToolOutcome, keep: KeepMedia | undefined): Promise<ToolOutcome> => {
  const { media, ...plain } = outcome
  if (media === undefined) return outcome
  const texts: Array<string> = []
  const attachments: Array<Attachment> = []
  for (const one of media) {
    if (attachments.length >= mediaLimits.perMessageMax) {
      texts.push(`[${media.length} images and files; only ${mediaLimits.perMessageMax} are shown]`)
      break
    }
    const kept = await keepOne(one, keep)
    if ("text" in kept) texts.push(kept.text)
    else attachments.push(kept.attachment)
  }
  const output = [plain.output ?? "", ...texts].filter((text) => text !== "").join("\n")
  return { ...plain, output, ...(attachments.length === 0 ? {} : { attachments }) }
}
