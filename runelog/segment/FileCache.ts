// Open segment files, few at a time. A file in use is never closed; the least recently used idle one goes
// when there are too many, and all idle ones go when descriptors run out. A file that was replaced or removed is forgotten: who still reads it finishes.
import type { Disk, DiskFile, OpenMode } from "../disk/Disk.ts"
import { isScarce } from "../RunelogErrors.ts"
import { isSegmentPath } from "./Segment.ts"
import { SegmentFile } from "./SegmentFile.ts"

interface Cached {
  readonly file: Promise<DiskFile>
  users: number
  forgotten: boolean
}

export class FileCache {
  private readonly disk: Disk
  private readonly filesMax: number
  private readonly cached = new Map<string, Cached>()

  constructor(disk: Disk, filesMax: number) {
    this.disk = disk
    this.filesMax = filesMax
  }

  async use<A>(path: string, body: (file: DiskFile) => Promise<A>): Promise<A> {
    const entry = this.enter(path)
    try {
      return await body(await entry.file)
    } finally {
      await this.leave(path, entry)
    }
  }

  /** Creates the file, and keeps it open for the use that follows. */
  async create(path: string): Promise<void> {
    const file = await this.open(path, "create")
    this.cached.set(path, { file: Promise.resolve(file), users: 0, forgotten: false })
  }

  /** Files that nobody uses are the first to go where descriptors are short. */
  private async open(path: string, mode: OpenMode): Promise<DiskFile> {
    const open = () => (isSegmentPath(path) ? SegmentFile.open(this.disk, path, mode) : this.disk.open(path, mode))
    try {
      return await open()
    } catch (error) {
      if (!isScarce(error) || !(await this.closeIdle(Number.POSITIVE_INFINITY))) throw error
      return open()
    }
  }

  private enter(path: string): Cached {
    const entry = this.cached.get(path) ?? { file: this.open(path, "write"), users: 0, forgotten: false }
    entry.users += 1
    this.cached.delete(path)
    this.cached.set(path, entry)
    return entry
  }

  private async leave(path: string, entry: Cached): Promise<void> {
    entry.users -= 1
    const opened = await entry.file.then(
      () => true,
      () => false
    )
    if (!opened) {
      if (this.cached.get(path) === entry) this.cached.delete(path)
    } else if (entry.forgotten && entry.users === 0) {
      await (await entry.file).close()
    } else if (this.cached.size > this.filesMax) {
      await this.closeIdle(1)
    }
  }

  /** Closes up to so many idle files, the longest unused first; whether there was one. */
  private async closeIdle(filesMax: number): Promise<boolean> {
    const idle: Array<Cached> = []
    for (const [path, entry] of this.cached) {
      if (idle.length === filesMax) break
      if (entry.users > 0) continue
      this.cached.delete(path)
      idle.push(entry)
    }
    for (const { file } of idle) await (await file).close()
    return idle.length > 0
  }

  /** The next use opens the path anew. */
  async forget(path: string): Promise<void> {
    const entry = this.cached.get(path)
    if (entry === undefined) return
    this.cached.delete(path)
    entry.forgotten = true
    if (entry.users === 0) await (await entry.file).close()
  }

  async closeAll(): Promise<void> {
    for (const path of [...this.cached.keys()]) await this.forget(path)
  }
}
