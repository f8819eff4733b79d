// Keeps large outputs and attachments out of runes: what exceeds the limit becomes a blob, durable before the rune is
// even decided, and the rune carries its hash and its beginning. It happens to drafts, before they have a place in
// the log: a rune that was folded must be the rune that is stored.
import type { BlobRef, Content, ContentPart } from "../rune/kinds/shared.ts"
import type { DraftOf, RuneDraft } from "../rune/Rune.ts"
import type { Blobs } from "./Blobs.ts"
import { limits } from "./Limits.ts"

/** A text is measured in UTF-16 units first: at most three bytes each. */
const isLarge = (text: string | undefined): text is string =>
  text !== undefined && text.length * 3 > limits.offloadBytes && Buffer.byteLength(text) > limits.offloadBytes

/** The beginning of a text, cut so that no character is halved. */
export const previewOf = (text: string): string => {
  const bytes = Buffer.from(text.slice(0, limits.previewBytes), "utf8")
  if (bytes.length <= limits.previewBytes && text.length <= limits.previewBytes) return text
  let end = Math.min(limits.previewBytes, bytes.length)
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.toString("utf8", 0, end)
}

const isLargePart = (part: ContentPart): boolean =>
  (part.type === "image" && isLarge(part.data)) || (part.type === "file" && isLarge(part.text))

const isLargeContent = (content: Content): boolean => typeof content !== "string" && content.some(isLargePart)

/** Whether anything in the draft has to become a blob. */
export const needsOffload = (draft: RuneDraft): boolean => {
  if (draft.kind === "tool.result") return isLarge(draft.payload.output)
  if (draft.kind === "turn.queued" || draft.kind === "turn.started") return isLargeContent(draft.payload.input)
  return draft.kind === "agent.message" && isLargeContent(draft.payload.content)
}

/** The same content with every large attachment as a blob. */
export const offloadContent = async (blobs: Blobs, content: Content): Promise<Content> => {
  if (typeof content === "string" || !isLargeContent(content)) return content
  const parts: Array<ContentPart> = []
  for (const part of content) parts.push(isLargePart(part) ? await offloadPart(blobs, part) : part)
  return parts
}

const offloadPart = async (blobs: Blobs, part: ContentPart): Promise<ContentPart> => {
  if (part.type === "image" && part.data !== undefined) {
    const bytes = Buffer.from(part.data, "base64")
    // Only what decodes back to the same text may be stored decoded.
    if (bytes.toString("base64") !== part.data) return part
    const { data: _, ...rest } = part
    return { ...rest, blob: await blobs.put(bytes, { mediaType: part.media_type }) }
  }
  if (part.type === "file" && part.text !== undefined) {
    const { text, ...rest } = part
    const blob = await blobs.put(text, part.media_type === undefined ? {} : { mediaType: part.media_type })
    return { ...rest, blob }
  }
  return part
}

type ResultPayload = DraftOf<"tool.result">["payload"]

/** The same result with a large output as a blob, its beginning kept. */
export const offloadResult = async (blobs: Blobs, payload: ResultPayload): Promise<ResultPayload> => {
  if (!isLarge(payload.output)) return payload
  const blob: BlobRef = await blobs.put(payload.output, { mediaType: "text/plain; charset=utf-8" })
  return { ...payload, output: previewOf(payload.output), output_blob: blob }
}

/** The draft as it may be decided and stored; the same one when nothing in it is large. */
export const offload = async (blobs: Blobs, draft: RuneDraft): Promise<RuneDraft> => {
  if (!needsOffload(draft)) return draft
  switch (draft.kind) {
    case "tool.result":
      return { ...draft, payload: await offloadResult(blobs, draft.payload) }
    case "turn.queued":
      return { ...draft, payload: { ...draft.payload, input: await offloadContent(blobs, draft.payload.input) } }
    case "turn.started":
      return { ...draft, payload: { ...draft.payload, input: await offloadContent(blobs, draft.payload.input) } }
    case "agent.message":
      return { ...draft, payload: { ...draft.payload, content: await offloadContent(blobs, draft.payload.content) } }
    default:
      return draft
  }
}
