// Small habits with files, over the engine's disk: directories and files that are durable when a promise resolves, and
// new content that replaces old in one step or not at all.
import { posix } from "node:path"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"

/** Makes the directory and its missing parents; all of their entries are durable when it resolves. */
export const ensureDirectory = async (disk: Disk, path: string): Promise<void> => {
  const topmost = await disk.makeDirectory(path)
  if (topmost === undefined) return
  for (let at = path; ; at = posix.dirname(at)) {
    await disk.syncDirectory(posix.dirname(at))
    if (at === topmost || at === posix.dirname(at)) return
  }
}

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

export const removeIfThere = async (disk: Disk, path: string): Promise<void> => {
  try {
    await disk.remove(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

export const withFile = async <A>(disk: Disk, path: string, body: (file: DiskFile) => Promise<A>): Promise<A> => {
  const file = await disk.open(path, "read")
  try {
    return await body(file)
  } finally {
    await file.close()
  }
}

/** All of a file; nothing when it is missing or longer than allowed. */
export const readWhole = async (disk: Disk, path: string, bytesMax: number): Promise<Buffer | undefined> => {
  try {
    return await withFile(disk, path, async (file) => {
      const size = await file.size()
      if (size > bytesMax) return undefined
      const buffer = Buffer.allocUnsafe(size)
      return buffer.subarray(0, await file.read(buffer, 0, size, 0))
    })
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** A new file, written under another name until it is complete. */
export interface FreshFile {
  readonly path: string
  readonly file: DiskFile
  /** Makes it durable and gives it its name; resolves when that is durable. */
  readonly keep: (name: string) => Promise<void>
  /** Leaves nothing behind. */
  readonly drop: () => Promise<void>
}

export const freshFile = async (disk: Disk, path: string): Promise<FreshFile> => {
  await removeIfThere(disk, path)
  const file = await disk.open(path, "create")
  return {
    path,
    file,
    keep: async (name) => {
      await file.sync()
      await file.close()
      await disk.rename(path, name)
      await disk.syncDirectory(posix.dirname(name))
      if (posix.dirname(path) !== posix.dirname(name)) await disk.syncDirectory(posix.dirname(path))
    },
    drop: async () => {
      await file.close().catch(() => undefined)
      await disk.remove(path).catch(() => undefined)
    }
  }
}

/** Writes a whole file in place of the old one, if any; resolves when that is durable. */
export const replaceFile = async (disk: Disk, path: string, content: Uint8Array): Promise<void> => {
  const fresh = await freshFile(disk, `${path}.tmp`)
  try {
    await fresh.file.write(content, 0, content.length, 0)
    await fresh.keep(path)
  } catch (error) {
    await fresh.drop()
    throw error
  }
}
