// Bytes that can be read in pieces: a file of the workspace or a blob. Memory holds one piece at a time, however large
// the whole is.
import { open } from "node:fs/promises"
import type { BlobPort } from "../../../contract/Blobs.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type Located, readFlags, type Workspace } from "../Workspace.ts"

export interface ByteSource {
  readonly size: number
  /** At most one piece; empty at the end. */
  readonly read: (position: number) => Promise<Buffer>
}

/** A regular file that is open; everything else is refused. */
export interface OpenFile {
  readonly source: ByteSource
  readonly shown: string
  readonly close: () => Promise<void>
}

const openLocated = async ({ at, kind, shown }: Located, path: string): Promise<OpenFile> => {
  if (kind === "missing") throw new ToolFailure("file_error", `${path}: there is no such file`)
  if (kind === "directory")
    throw new ToolFailure("file_error", `${path} is a directory; list_files shows what is in it`)
  if (kind === "other") throw new ToolFailure("file_error", `${path} is no regular file`)
  const file = await open(at, readFlags)
  const close = (): Promise<void> => file.close()
  const read = async (position: number): Promise<Buffer> => {
    const piece = Buffer.allocUnsafe(builtinLimits.readChunkBytes)
    const { bytesRead } = await file.read(piece, 0, piece.length, position)
    return piece.subarray(0, bytesRead)
  }
  try {
    const facts = await file.stat()
    if (!facts.isFile()) throw new ToolFailure("file_error", `${path} is no regular file`)
    return { source: { size: facts.size, read }, shown, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Opens the file at a path; the directories on the way are held until it is closed. */
export const openFile = async (workspace: Workspace, path: string): Promise<OpenFile> => {
  const { located, release } = await workspace.find(path, { for: "reading" })
  try {
    const { close, ...file } = await openLocated(located, path)
    return { ...file, close: () => close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

/** Reads a regular file; it is closed when the work is done. */
export const withFile = async <A>(
  workspace: Workspace,
  path: string,
  work: (source: ByteSource, shown: string) => Promise<A>
): Promise<A> => {
  const { close, shown, source } = await openFile(workspace, path)
  try {
    return await work(source, shown)
  } finally {
    await close()
  }
}

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
