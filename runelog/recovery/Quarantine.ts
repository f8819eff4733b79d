// Where damage is kept: the bytes that recovery cut off, and a record per damaged log that keeps it
// read-only until somebody decides. Nothing is ever thrown away here.
import { dirname } from "node:path"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { LogDamaged } from "../RunelogErrors.ts"

export interface DamageRecord {
  readonly log: string
  readonly file: string
  readonly offset: number
  readonly reason: string
}

const COPY_CHUNK_BYTES = 1024 * 1024
const RECORD_END = ".json"

export class Quarantine {
  private readonly disk: Disk
  private readonly directory: string
  /** A record was removed, and no sync has covered that. */
  private removedUnsynced = false

  constructor(disk: Disk, directory: string) {
    this.disk = disk
    this.directory = directory
  }

  private recordPath(log: string): string {
    return `${this.directory}/${log}${RECORD_END}`
  }

  /** The damage recorded for a log, if any. */
  async recall(log: string): Promise<LogDamaged | undefined> {
    if (!(await this.disk.exists(this.recordPath(log)))) return undefined
    const file = await this.disk.open(this.recordPath(log), "read")
    try {
      const buffer = Buffer.alloc(await file.size())
      await file.read(buffer, 0, buffer.length, 0)
      return new LogDamaged(parseRecord(buffer.toString("utf8"), { log, file: this.recordPath(log), offset: 0 }))
    } finally {
      await file.close()
    }
  }

  /** Records damage; the log stays read-only from now on. What was recorded first stays. */
  async record(damage: DamageRecord): Promise<LogDamaged> {
    const path = this.recordPath(damage.log)
    if (!(await this.disk.exists(path))) await this.write(path, Buffer.from(`${JSON.stringify(damage)}\n`))
    return new LogDamaged(damage)
  }

  private async write(path: string, content: Uint8Array): Promise<void> {
    await this.prepare()
    const file = await this.disk.open(path, "create")
    try {
      await file.write(content, 0, content.length, 0)
      await file.sync()
    } finally {
      await file.close()
    }
    await this.disk.syncDirectory(this.directory)
  }

  private async prepare(): Promise<void> {
    const created = await this.disk.makeDirectory(this.directory)
    if (created !== undefined) await this.disk.syncDirectory(dirname(this.directory))
  }

  /** Forgets the record of a log that is removed; what was cut from it stays. */
  async forget(log: string): Promise<void> {
    if (await this.disk.exists(this.recordPath(log))) {
      this.removedUnsynced = true
      await this.disk.remove(this.recordPath(log))
    }
    // A sync that could not begin is made up for by the next call.
    if (!this.removedUnsynced) return
    await this.disk.syncDirectory(this.directory)
    this.removedUnsynced = false
  }

  /** As `forget`, for many logs of which few have a record. */
  async forgetAll(logs: ReadonlySet<string>): Promise<void> {
    if (logs.size === 0 || !(await this.disk.exists(this.directory))) return
    for (const { name } of await this.disk.list(this.directory)) {
      const log = name.slice(0, -RECORD_END.length)
      if (name.endsWith(RECORD_END) && logs.has(log)) await this.forget(log)
    }
  }

  /** Keeps bytes that exist nowhere else; returns where they are. */
  async keepBytes(name: string, content: Uint8Array): Promise<string> {
    const path = await this.freePath(name)
    await this.write(path, content)
    return path
  }

  /** Copies `[from, to)` of a file that is about to be cut; returns where the copy is. */
  async keep(source: DiskFile, name: string, from: number, to: number): Promise<string> {
    await this.prepare()
    const path = await this.freePath(`${name}.${from}.cut`)
    const target = await this.disk.open(path, "create")
    try {
      const buffer = Buffer.allocUnsafe(Math.min(COPY_CHUNK_BYTES, to - from))
      for (let position = from; position < to; position += buffer.length) {
        const read = await source.read(buffer, 0, Math.min(buffer.length, to - position), position)
        await target.write(buffer, 0, read, position - from)
      }
      await target.sync()
    } finally {
      await target.close()
    }
    await this.disk.syncDirectory(this.directory)
    return path
  }

  private async freePath(name: string): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const path = `${this.directory}/${name}${attempt === 1 ? "" : `.${attempt}`}`
      if (!(await this.disk.exists(path))) return path
    }
  }
}

/** A record that cannot be read still means damage. */
const parseRecord = (
  text: string,
  fallback: { readonly log: string; readonly file: string; readonly offset: number }
): DamageRecord => {
  try {
    return { ...fallback, reason: "damage was recorded", ...(JSON.parse(text) as Partial<DamageRecord>) }
  } catch {
    return { ...fallback, reason: "damage was recorded" }
  }
}
