// Images and files that come with a message, before it is taken: their bytes are kept as blobs, what they are is read from
// the bytes, and a message that its model cannot be shown is refused here, by name. Nothing of them goes into a rune.
import type { BlobRef, Content, ContentPart } from "../../rune/kinds/shared.ts"
import { isImageType, mediaLimits, pdfType, shortText, sniffMedia, textType } from "../../rune/Media.ts"
import type { InputContent, InputPart } from "../../wire/Input.ts"
import type { AttachmentPort } from "./Context.ts"
import { BadRequest, LimitExceeded } from "./OperationErrors.ts"

type Given = Exclude<InputPart, { readonly type: "text" }>

const refuse = (message: string, data?: Readonly<Record<string, unknown>>): never => {
  throw new BadRequest(message, data)
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const decoded = (data: string): Uint8Array =>
  base64Pattern.test(data) && data !== ""
    ? Buffer.from(data, "base64")
    : refuse("the data of an attachment is not base64")

const nameOf = (part: Given): string =>
  part.type === "file" ? part.name.slice(0, mediaLimits.nameCharsMax).toWellFormed() || "file" : "the image"

const shownTypes = "attach an image (PNG, JPEG, GIF, WebP), a PDF document or text"

const sizeChecked = (part: Given, type: string, bytes: number): void => {
  const max = isImageType(type) ? mediaLimits.imageBytesMax : mediaLimits.fileBytesMax
  if (bytes > max) refuse(`${nameOf(part)} has ${bytes} bytes; at most ${max} can be shown to a model`, { limit: max })
}

const bytesOf = async (part: Given, port: AttachmentPort): Promise<Uint8Array> => {
  if (part.data !== undefined) return decoded(part.data)
  if (part.type === "file" && part.text !== undefined) return Buffer.from(part.text.toWellFormed(), "utf8")
  const { blob } = part
  if (blob === undefined)
    return refuse(`${nameOf(part)} has no data: give it as base64, or as a blob that was uploaded`)
  return port.read(blob.sha256).catch(() => refuse(`there is no blob ${blob.sha256}: upload it first`))
}

const textPart = async (name: string, bytes: Uint8Array, port: AttachmentPort): Promise<ContentPart> => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  const part = { type: "file", name, media_type: textType } as const
  if (text.length <= mediaLimits.fileTextCharsMax) return { ...part, text }
  const blob = await kept(port, bytes, textType)
  const whole = `read_file "blob:${blob.sha256}" has all ${blob.bytes} bytes`
  return { ...part, text: shortText(text, mediaLimits.fileTextCharsMax, whole), blob }
}

const kept = (port: AttachmentPort, bytes: Uint8Array, type: string): Promise<BlobRef> =>
  port.keep(bytes, type).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new LimitExceeded(`the attachment cannot be stored: ${why}`)
  })

/** Keeps bytes for a message to come. */
export const uploaded = (port: AttachmentPort, bytes: Uint8Array): Promise<BlobRef> => {
  const type = sniffMedia(bytes)
  return kept(port, bytes, type)
}

/** An address is handed to the provider as it is: nothing here fetches it. */
const linked = (url: string): ContentPart => {
  const isSound = url.length <= mediaLimits.urlCharsMax && URL.canParse(url) && new URL(url).protocol === "https:"
  return isSound
    ? { type: "image", media_type: "image/*", url }
    : refuse(`an image is given by its bytes, or by an https address of at most ${mediaLimits.urlCharsMax} characters`)
}

const stored = async (part: Given, port: AttachmentPort): Promise<ContentPart> => {
  if (part.type === "image" && part.url !== undefined) return linked(part.url)
  const bytes = await bytesOf(part, port)
  const type = sniffMedia(bytes)
  sizeChecked(part, type, bytes.length)
  if (isImageType(type)) return { type: "image", media_type: type, blob: await kept(port, bytes, type) }
  if (part.type === "image") return refuse(`the image is ${type} and no PNG, JPEG, GIF or WebP: attach it as a file`)
  if (type === textType) return textPart(nameOf(part), bytes, port)
  if (type !== pdfType) return refuse(`${nameOf(part)} is ${type}: ${shownTypes}`)
  return { type: "file", name: nameOf(part), media_type: type, blob: await kept(port, bytes, type) }
}

const cannotSee = (model: string, what: "images" | "files"): never =>
  refuse(
    `${model} cannot be shown ${what}: choose a model that can; if it can, say so with models."${model}".${what} in config.json`,
    { reason: "model_cannot_see", model, needs: what }
  )

const needOf = (part: ContentPart): "images" | "files" | undefined => {
  if (part.type === "image") return "images"
  return part.type === "file" && part.text === undefined ? "files" : undefined
}

/** The message as it is written down. Refuses what its model cannot be shown. */
export const withAttachments = async (
  content: InputContent,
  model: string,
  port: AttachmentPort | undefined
): Promise<Content> => {
  if (typeof content === "string") return content
  const attached = content.filter((part) => part.type !== "text")
  if (attached.length === 0) return content.filter((part) => part.type === "text")
  if (port === undefined) return refuse("this server does not store attachments")
  if (attached.length > mediaLimits.perMessageMax) {
    refuse(`a message can have at most ${mediaLimits.perMessageMax} images and files`, {
      limit: mediaLimits.perMessageMax
    })
  }
  const sight = port.sight(model)
  const parts: Array<ContentPart> = []
  for (const part of content) {
    if (part.type === "image" && !sight.images) cannotSee(model, "images")
    const made = part.type === "text" ? part : await stored(part, port)
    const need = needOf(made)
    if (need !== undefined && !sight[need]) cannotSee(model, need)
    parts.push(made)
  }
  return parts
}
