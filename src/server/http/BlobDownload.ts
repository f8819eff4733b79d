// Bytes kept under their hash, over HTTP: all of them, or one range. Whatever they are, a browser shows them as an image, as
// plain text or not at all: never as a document that could run something.
import type { ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { BlobPort } from "../../contract/Blobs.ts"
import { isImageType, sniffMedia, unknownType } from "../../rune/Media.ts"
import { limits } from "../../wire/WireLimits.ts"
import { BadRequest } from "../operations/OperationErrors.ts"
import { plainHeaders } from "./HttpAnswer.ts"

export type BlobReader = Pick<BlobPort, "read">

interface Range {
  readonly from: number
  /** Behind the last byte; nothing: to the end. */
  readonly to: number | undefined
}

const sha256Pattern = /^[0-9a-f]{64}$/

/** `bytes=0-99`, `bytes=100-` or `bytes=-100`; a range that is none of these is ignored, as HTTP has it. */
export const rangeOf = (header: string | undefined, size: number): Range | undefined => {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? []
  if (first === "" && last === "") return undefined
  if (first === "") return { from: Math.max(0, size - Number(last)), to: size }
  return { from: Number(first), to: last === "" ? undefined : Math.min(Number(last) + 1, size) }
}

/** By the bytes themselves. A text that is cut anywhere is still text, so only a NUL tells that it is none. */
const typeOf = (head: Uint8Array): string => {
  const sniffed = sniffMedia(head)
  if (isImageType(sniffed)) return sniffed
  return head.includes(0) ? unknownType : "text/plain; charset=utf-8"
}

const headersOf = (sha256: string, type: string, length: number) => ({
  ...plainHeaders,
  "content-type": type,
  "content-length": length,
  "content-disposition": `${isImageType(type) ? "inline" : "attachment"}; filename="${sha256.slice(0, 12)}${type.startsWith("text/") ? ".txt" : ""}"`,
  "accept-ranges": "bytes",
  // The bytes of a hash never change; who may ask for them does.
  "cache-control": "private, no-cache",
  etag: `"${sha256}"`
})

async function* pagesOf(blobs: BlobReader, sha256: string, from: number, to: number): AsyncGenerator<Uint8Array> {
  for (let offset = from; offset < to; ) {
    const { bytes } = await blobs.read(sha256, { offset, bytesMax: Math.min(limits.blobPageBytes, to - offset) })
    yield bytes
    offset += bytes.length
  }
}

/** Rejects before the first byte where there is no such blob. */
export const sendBlob = async (
  blobs: BlobReader,
  sha256: string,
  response: ServerResponse,
  range: string | undefined
): Promise<void> => {
  if (!sha256Pattern.test(sha256)) throw new BadRequest("a blob is named by 64 hexadecimal digits")
  const { bytes: head, size } = await blobs.read(sha256, { offset: 0, bytesMax: 4_096 })
  const asked = rangeOf(range, size)
  const { from, to = size } = asked ?? { from: 0, to: size }
  if (asked !== undefined && from >= to) {
    response.writeHead(416, { ...plainHeaders, "content-range": `bytes */${size}`, "content-length": 0 }).end()
    return
  }
  const headers = headersOf(sha256, typeOf(head), to - from)
  if (asked === undefined) response.writeHead(200, headers)
  else response.writeHead(206, { ...headers, "content-range": `bytes ${from}-${to - 1}/${size}` })
  // Whoever goes away in the middle is gone; that is no failure of the server.
  await pipeline(Readable.from(pagesOf(blobs, sha256, from, to)), response).catch(() => response.destroy())
}
