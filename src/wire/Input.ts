/**
 * What a client says: text, or parts with images and files. Their bytes come as base64 or as a blob that was uploaded
 * before; what they are is read from the bytes, so a media type may be left out and is never believed.
 */
import * as Schema from "effect/Schema"
import { Sha256Hex } from "../rune/Ids.ts"
import { Count } from "../rune/kinds/shared.ts"

const optional = Schema.optionalKey

/** Bytes that the server has, by their hash. */
const Uploaded = Schema.Struct({
  sha256: Sha256Hex,
  bytes: optional(Count),
  media_type: optional(Schema.String)
})

export const InputPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("image"),
    media_type: optional(Schema.String),
    data: optional(Schema.String),
    url: optional(Schema.String),
    blob: optional(Uploaded)
  }),
  Schema.Struct({
    type: Schema.Literal("file"),
    name: Schema.String,
    media_type: optional(Schema.String),
    data: optional(Schema.String),
    text: optional(Schema.String),
    blob: optional(Uploaded)
  })
])
export type InputPart = typeof InputPart.Type

export const InputContent = Schema.Union([Schema.String, Schema.Array(InputPart)])
export type InputContent = typeof InputContent.Type
