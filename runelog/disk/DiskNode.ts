// The real disk, over node:fs descriptors. Writes are complete or rejected, files are 0600 and directories 0700,
// and a closed descriptor is never touched again: its number may by then belong to another file.
import * as fs from "node:fs"
import { dirname } from "node:path"
import { type DescriptorReserve, processReserve } from "./DescriptorReserve.ts"
import type { DirectoryEntry, Disk, DiskFile, OpenMode } from "./Disk.ts"
import { checkPosition, checkRange, codeOf, systemError } from "./DiskFault.ts"
import { makeNodeLock, type NodeLock } from "./NodeLock.ts"

/** The calls this module makes, so that a test can give short writes and failures that a healthy kernel does not. */
export type FileSystem = Pick<
  typeof fs,
  | "close"
  | "fdatasync"
  | "fdatasyncSync"
  | "fstat"
  | "fsync"
  | "ftruncate"
  | "lstat"
  | "mkdir"
  | "open"
  | "read"
  | "readdir"
  | "rename"
  | "rm"
  | "stat"
  | "unlink"
  | "write"
  | "writeSync"
>

export interface DiskNodeOptions {
  readonly fileSystem?: FileSystem
  readonly platform?: NodeJS.Platform
  readonly lock?: NodeLock
  /** What is given up when descriptors run out. */
  readonly reserve?: DescriptorReserve
}

type Callback<A> = (error: NodeJS.ErrnoException | null, value: A) => void

const call = <A>(start: (callback: Callback<A>) => void): Promise<A> =>
  new Promise((resolve, reject) => start((error, value) => (error === null ? resolve(value) : reject(error))))

const done = (start: (callback: fs.NoParamCallback) => void): Promise<void> =>
  new Promise((resolve, reject) => start((error) => (error === null ? resolve() : reject(error))))

const { O_CREAT, O_DIRECTORY, O_EXCL, O_RDONLY, O_RDWR } = fs.constants

const flags: { readonly [M in OpenMode]: number } = { read: O_RDONLY, write: O_RDWR, create: O_RDWR | O_CREAT | O_EXCL }

class NodeFile implements DiskFile {
  readonly #fs: FileSystem
  readonly #fd: number
  readonly #path: string
  #inFlight = 0
  #idle: (() => void) | undefined
  #closing: Promise<void> | undefined

  constructor(fileSystem: FileSystem, fd: number, path: string) {
    this.#fs = fileSystem
    this.#fd = fd
    this.#path = path
  }

  read(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.#run("read", async () => {
      checkRange(target, offset, length, position)
      let total = 0
      while (total < length) {
        const from = total
        const count = await call<number>((callback) =>
          this.#fs.read(this.#fd, target, offset + from, length - from, position + from, callback)
        )
        if (count === 0) break
        total += count
      }
      return total
    })
  }

  write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    return this.#run("write", async () => {
      checkRange(source, offset, length, position)
      let total = 0
      while (total < length) {
        const from = total
        const count = await call<number>((callback) =>
          this.#fs.write(this.#fd, source, offset + from, length - from, position + from, callback)
        )
        total += this.#progress(count)
      }
    })
  }

  writeNow(source: Uint8Array, offset: number, length: number, position: number): void {
    this.#check("write")
    checkRange(source, offset, length, position)
    let total = 0
    while (total < length) {
      total += this.#progress(this.#fs.writeSync(this.#fd, source, offset + total, length - total, position + total))
    }
  }

  sync(): Promise<void> {
    return this.#run("fdatasync", () => done((callback) => this.#fs.fdatasync(this.#fd, callback)))
  }

  syncNow(): void {
    this.#check("fdatasync")
    this.#fs.fdatasyncSync(this.#fd)
  }

  truncate(length: number): Promise<void> {
    return this.#run("ftruncate", async () => {
      checkPosition(length)
      await done((callback) => this.#fs.ftruncate(this.#fd, length, callback))
    })
  }

  size(): Promise<number> {
    return this.#run("fstat", async () => {
      const stats = await call<fs.Stats>((callback) => this.#fs.fstat(this.#fd, callback))
      return stats.size
    })
  }

  /** Waits for what is under way, so that no call reaches the number of a descriptor that is gone. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    await done((callback) => this.#fs.close(this.#fd, callback))
  }

  async #run<A>(syscall: string, work: () => Promise<A>): Promise<A> {
    this.#check(syscall)
    this.#inFlight++
    try {
      return await work()
    } finally {
      this.#inFlight--
      if (this.#inFlight === 0) this.#idle?.()
    }
  }

  #check(syscall: string): void {
    if (this.#closing !== undefined) throw systemError("EBADF", syscall, this.#path)
  }

  // A write that neither advances nor fails would otherwise be repeated for ever.
  #progress(count: number): number {
    if (count === 0) throw systemError("EIO", "write", this.#path)
    return count
  }
}

const kindOf = (entry: fs.Dirent): DirectoryEntry["kind"] =>
  entry.isFile() ? "file" : entry.isDirectory() ? "directory" : "other"

const compareNames = (left: DirectoryEntry, right: DirectoryEntry): number => (left.name < right.name ? -1 : 1)

const listDirectory = async (fileSystem: FileSystem, path: string): Promise<ReadonlyArray<DirectoryEntry>> => {
  const entries = await call<Array<fs.Dirent>>((callback) =>
    fileSystem.readdir(path, { withFileTypes: true }, callback)
  )
  return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) })).sort(compareNames)
}

const entryExists = async (fileSystem: FileSystem, path: string): Promise<boolean> => {
  try {
    await call<fs.Stats>((callback) => fileSystem.lstat(path, callback))
    return true
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return false
    throw error
  }
}

/**
 * Directory by directory: the recursive call of Node never returns where the system answers ENOENT below a directory that
 * exists, as /proc does.
 */
const makeDirectory = async (fileSystem: FileSystem, path: string): Promise<string | undefined> => {
  const make = (): Promise<void> => done((callback) => fileSystem.mkdir(path, { mode: 0o700 }, callback))
  /** Somebody else may make the same directories at the same time: what is there already is as good. */
  const makeIn = async (topmost: string | undefined): Promise<string | undefined> => {
    try {
      await make()
      return topmost ?? path
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error
      await refuseFile(fileSystem, path, error)
      return topmost
    }
  }
  try {
    return await makeIn(undefined)
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error
    return await makeIn(await makeDirectory(fileSystem, dirname(path)))
  }
}

const refuseFile = async (fileSystem: FileSystem, path: string, error: unknown): Promise<undefined> => {
  const stats = await call<fs.Stats>((callback) => fileSystem.stat(path, callback))
  if (!stats.isDirectory()) throw error
}

const syncDirectory = async (fileSystem: FileSystem, reserve: DescriptorReserve, path: string): Promise<void> => {
  const fd = await reserve.opening(() =>
    call<number>((callback) => fileSystem.open(path, O_RDONLY | O_DIRECTORY, callback))
  )
  try {
    await done((callback) => fileSystem.fsync(fd, callback))
  } finally {
    await done((callback) => fileSystem.close(fd, callback))
  }
}

/** The disk of this machine. Windows cannot sync a directory, so there a directory sync only checks that it exists. */
export const makeDiskNode = (options: DiskNodeOptions = {}): Disk => {
  const fileSystem = options.fileSystem ?? fs
  const platform = options.platform ?? process.platform
  const reserve = options.reserve ?? processReserve
  const list = (path: string) => reserve.opening(() => listDirectory(fileSystem, path))
  const lock = options.lock ?? makeNodeLock({ platform })
  return {
    open: async (path, mode) => {
      const fd = await reserve.opening(() =>
        call<number>((callback) => fileSystem.open(path, flags[mode], 0o600, callback))
      )
      return new NodeFile(fileSystem, fd, path)
    },
    makeDirectory: (path) => makeDirectory(fileSystem, path),
    list,
    rename: (from, to) => done((callback) => fileSystem.rename(from, to, callback)),
    remove: (path) => done((callback) => fileSystem.unlink(path, callback)),
    removeTree: (path) =>
      reserve.opening(() => done((callback) => fileSystem.rm(path, { recursive: true, force: true }, callback))),
    exists: (path) => entryExists(fileSystem, path),
    syncDirectory: async (path) => {
      if (platform === "win32") await list(path)
      else await syncDirectory(fileSystem, reserve, path)
    },
    lock
  }
}
