// Bytes that can be read in pieces: a file of the workspace or a blob. Memory holds one piece at a time, however large
// the whole is.
import { open } from "node:fs/promises"
import type { BlobPort } from "../../../contract/Blobs.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { readFlags, type Workspace } from "../Workspace.ts"

export interface ByteSource {
  readonly size: number
  /** At most one piece; empty at the end. */
  readonly read: (position: number) => Promise<Buffer>
}

/** Reads a regular file; everything else is refused. */
export const withFile = <A>(
  workspace: Workspace,
  path: string,
  work: (source: ByteSource, shown: string) => Promise<A>
): Promise<A> =>
  workspace.locate(path, { for: "reading" }, async (located) => {
    if (located.kind === "missing") throw new ToolFailure("file_error", `${path}: there is no such file`)
    if (located.kind === "directory")
      throw new ToolFailure("file_error", `${path} is a directory; list_files shows what is in it`)
    if (located.kind === "other") throw new ToolFailure("file_error", `${path} is no regular file`)
    const file = await open(located.at, readFlags)
    try {
      const facts = await file.stat()
      if (!facts.isFile()) throw new ToolFailure("file_error", `${path} is no regular file`)
      const read = async (position: number): Promise<Buffer> => {
        const piece = Buffer.allocUnsafe(builtinLimits.readChunkBytes)
        const { bytesRead } = await file.read(piece, 0, piece.length, position)
        return piece.subarray(0, bytesRead)
      }
      return await work({ size: facts.size, read }, located.shown)
    } finally {
      await file.close()
    }
  })

export const blobPattern = /^blob:([0-9a-f]{64})$/

export const blobSource = async (blobs: BlobPort | undefined, sha256: string): Promise<ByteSource> => {
  const unknown = new ToolFailure("blob_unknown", `there is no blob ${sha256}`)
  if (blobs === undefined) throw unknown
  const page = (offset: number, bytesMax: number) =>
    blobs.read(sha256, { offset, bytesMax }).catch(() => Promise.reject(unknown))
  const { size } = await page(0, 1)
  return {
    size,
    read: async (position) => {
      if (position >= size) return Buffer.alloc(0)
      const { bytes } = await page(position, builtinLimits.readChunkBytes)
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    }
  }
}

/** A whole source that is small enough to hold. */
export const readWhole = async (source: ByteSource, options: { readonly bytesMax: number }): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  let position = 0
  for (;;) {
    const piece = await source.read(position)
    if (piece.length === 0) return Buffer.concat(pieces)
    position += piece.length
    if (position > options.bytesMax)
      throw new ToolFailure("too_large", `the file has more than ${options.bytesMax} bytes`)
    pieces.push(piece)
  }
}

/** Text has no NUL; that is what tells it from other bytes. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, builtinLimits.sniffBytes).includes(0)
