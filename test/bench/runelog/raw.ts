// The limit: group commit with nothing on top. Ready bytes are copied into one buffer, which once per turn of the event
// loop is written to a zero-filled file that is used over and over, and synced; then everyone is told.
import { closeSync, fdatasyncSync, fsyncSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import { drive, nothing, type Subject, timed } from "./sampling.ts"
import { body, bodyBytes } from "./settings.ts"

const FILE_BYTES = 64 * 1024 * 1024
const BATCH_BYTES_MAX = 4 * 1024 * 1024

export class RawCommit {
  private readonly fd: number
  private readonly batch = Buffer.alloc(BATCH_BYTES_MAX)
  private used = 0
  private position = 0
  private scheduled = false
  private waiting: Array<() => void> = []

  constructor(path: string) {
    this.fd = openSync(path, "w")
    for (let at = 0; at < FILE_BYTES; at += BATCH_BYTES_MAX) writeSync(this.fd, this.batch, 0, BATCH_BYTES_MAX, at)
    fsyncSync(this.fd)
  }

  append(bytes: Uint8Array): Promise<void> {
    this.batch.set(bytes, this.used)
    this.used += bytes.length
    if (!this.scheduled) {
      this.scheduled = true
      setImmediate(this.commit)
    }
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  private readonly commit = (): void => {
    this.scheduled = false
    if (this.position + this.used > FILE_BYTES) this.position = 0
    const written = writeSync(this.fd, this.batch, 0, this.used, this.position)
    if (written !== this.used) throw new Error(`a write of ${this.used} bytes ended after ${written}`)
    fdatasyncSync(this.fd)
    this.position += this.used
    this.used = 0
    const told = this.waiting
    this.waiting = []
    for (const resolve of told) resolve()
  }

  close(): void {
    closeSync(this.fd)
  }
}

export const rawName = (outstanding: number): string => `raw group commit, ${outstanding} outstanding`

export const makeRaw = (directory: string, outstanding: number): Subject => {
  if (outstanding * bodyBytes > BATCH_BYTES_MAX) throw new Error(`${outstanding} records do not fit into one batch`)
  let raw: RawCommit | undefined
  return {
    name: rawName(outstanding),
    prepare: async () => {
      raw = new RawCommit(join(directory, `raw-${outstanding}`))
    },
    sample: (seconds) =>
      timed((latency, startedMs) => {
        const open = raw!
        const endMs = startedMs + seconds * 1000
        return drive({ outstanding, append: () => open.append(body), isOver: (nowMs) => nowMs >= endMs }, latency)
      }),
    settle: nothing,
    close: async () => raw?.close()
  }
}
