// What can be said of a message without knowing who it is for.
import type { Content, ContentPart } from "./kinds/shared.ts"

type Said =
  | string
  | ReadonlyArray<{ readonly type: "text"; readonly text: string } | { readonly type: "image" | "file" }>

/** Nothing is said and nothing comes with it: no provider takes such a message, and nobody can answer it. */
export const isEmptyContent = (content: Said): boolean =>
  typeof content === "string"
    ? content.trim() === ""
    : content.every((part) => part.type === "text" && part.text.trim() === "")

export const emptyContent = "the message is empty: add text, an image or a file"
export const emptyGoal = "the goal is empty: describe what to do"

type Named = DeepRead<Exclude<ContentPart, { readonly type: "text" }>>
type DeepRead<T> = T extends object ? { readonly [K in keyof T]: DeepRead<T[K]> } : T

/** An image or a file in words, with the name by which a tool can read it. */
export const attachmentText = (part: Named): string => {
  const what = [part.type, part.type === "file" ? part.name : "", part.media_type ?? ""].filter((one) => one !== "")
  const { blob } = part
  const where = part.type === "image" && part.url !== undefined ? [part.url] : []
  const size = blob === undefined ? where : [`${blob.bytes} bytes`, `blob:${blob.sha256}`]
  return [what.join(" "), ...size].join(", ")
}

const partText = (part: ContentPart): string => {
  if (part.type === "text") return part.text
  return part.type === "file" && part.text !== undefined ? `${part.name}:\n${part.text}` : `[${attachmentText(part)}]`
}

/** All of a message in words; what is no text is named. */
export const contentText = (content: Content): string =>
  typeof content === "string" ? content : content.map(partText).join("\n")
