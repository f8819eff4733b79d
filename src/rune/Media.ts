// What bytes are, by the bytes themselves: a name or a type that somebody gives is not believed. Owns the limits of images
// and files that are sent to models, which every way in shares.

export const mediaLimits = {
  /** An image; as base64 this is what the strictest provider takes. */
  imageBytesMax: 3_750_000,
  /** A document, or any other file that is handed in. */
  fileBytesMax: 20 * 1024 * 1024,
  /** Images and files that one message, or one result of a tool, may bring. */
  perMessageMax: 16,
  /** Of a text that is attached, what stands in the message itself: its beginning and its end. */
  fileTextCharsMax: 64 * 1024,
  /** Longest name of a file that is kept. */
  nameCharsMax: 200,
  /** Longest address of an image. */
  urlCharsMax: 2_048
} as const

export const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const
export type ImageType = (typeof imageTypes)[number]

export const pdfType = "application/pdf"
export const textType = "text/plain"
export const unknownType = "application/octet-stream"

export const isImageType = (type: string | undefined): type is ImageType => imageTypes.some((one) => one === type)

const signatures: ReadonlyArray<readonly [type: string, at: number, bytes: ReadonlyArray<number>]> = [
  ["image/png", 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", 0, [0xff, 0xd8, 0xff]],
  ["image/gif", 0, [0x47, 0x49, 0x46, 0x38, 0x37, 0x61]],
  ["image/gif", 0, [0x47, 0x49, 0x46, 0x38, 0x39, 0x61]],
  ["image/webp", 8, [0x57, 0x45, 0x42, 0x50]],
  [pdfType, 0, [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["audio/wav", 8, [0x57, 0x41, 0x56, 0x45]],
  ["audio/mpeg", 0, [0x49, 0x44, 0x33]],
  ["audio/ogg", 0, [0x4f, 0x67, 0x67, 0x53]],
  ["audio/flac", 0, [0x66, 0x4c, 0x61, 0x43]],
  ["application/zip", 0, [0x50, 0x4b, 0x03, 0x04]],
  ["application/gzip", 0, [0x1f, 0x8b]]
]

const riff = [0x52, 0x49, 0x46, 0x46]

const startsAt = (bytes: Uint8Array, at: number, wanted: ReadonlyArray<number>): boolean =>
  wanted.every((byte, index) => bytes[at + index] === byte)

const isText = (bytes: Uint8Array): boolean => {
  if (bytes.includes(0)) return false
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/** The type of the whole bytes. What is recognized by nothing and is UTF-8 is text. */
export const sniffMedia = (bytes: Uint8Array): string => {
  const found = signatures.find(
    ([, at, wanted]) => startsAt(bytes, at, wanted) && (at === 0 || startsAt(bytes, 0, riff))
  )
  if (found !== undefined) return found[0]
  return bytes.length > 0 && isText(bytes) ? textType : unknownType
}

/** A text with its middle left out, and how to get all of it. */
export const shortText = (text: string, charsMax: number, whole: string): string => {
  if (text.length <= charsMax) return text
  const half = Math.floor(charsMax / 2)
  const gap = `\n… ${text.length - 2 * half} characters left out; ${whole} …\n`
  return `${text.slice(0, half)}${gap}${text.slice(-half)}`.toWellFormed()
}
