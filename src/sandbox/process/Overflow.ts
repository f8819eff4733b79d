// The file for output that is too long to stay inline. It holds all of it up to a limit; what comes later, and what the
// disk refuses, is dropped and counted. Writers are told when to hold back, so that no more than a bounded number of
// bytes waits for the disk.
import { createWriteStream, type WriteStream } from "node:fs"
import { rm } from "node:fs/promises"
import { finished } from "node:stream/promises"

export interface OverflowOptions {
  readonly path: string
  readonly bytesMax: number
  readonly pendingBytesMax: number
  /** Called when more may come, after `add` has said to hold back. */
  readonly onRoom: () => void
}

/**
 * Gives the memory of a piece back at once. The engine would collect it some 64 MiB later, which is more than all of
 * the rest takes. Only a piece that shares its memory with no other is given back.
 */
export const release = (bytes: Buffer): void => {
  const { buffer } = bytes
  const isAlone = bytes.byteOffset === 0 && buffer.byteLength === bytes.length
  if (isAlone && buffer instanceof ArrayBuffer && bytes.length >= 4_096) buffer.transfer(0)
}

export class Overflow {
  readonly path: string
  /** Bytes in the file. */
  bytes = 0
  droppedBytes = 0
  private readonly file: WriteStream
  private readonly bytesMax: number
  private isBroken = false
  private readonly onRoom: () => void

  constructor({ bytesMax, onRoom, path, pendingBytesMax }: OverflowOptions) {
    this.path = path
    this.bytesMax = bytesMax
    this.onRoom = onRoom
    this.file = createWriteStream(path, { flags: "wx", mode: 0o600, highWaterMark: pendingBytesMax })
    this.file.on("drain", onRoom)
    this.file.on("error", () => this.broke())
  }

  /** Takes the piece over: its memory is given back when it is no longer needed. Answers whether more may come at once. */
  add(bytes: Buffer): boolean {
    const taken = this.isBroken ? 0 : Math.min(bytes.length, this.bytesMax - this.bytes)
    this.droppedBytes += bytes.length - taken
    if (taken === 0) {
      release(bytes)
      return true
    }
    this.bytes += taken
    return this.file.write(taken === bytes.length ? bytes : bytes.subarray(0, taken), () => release(bytes))
  }

  /** Resolves with the file when all of it is written; with nothing when the disk would not have it. */
  async close(): Promise<{ readonly path: string; readonly bytes: number; readonly droppedBytes: number } | undefined> {
    this.file.end()
    await finished(this.file).catch(() => this.broke())
    if (!this.isBroken) return { path: this.path, bytes: this.bytes, droppedBytes: this.droppedBytes }
    await rm(this.path, { force: true })
    return undefined
  }

  private broke(): void {
    if (this.isBroken) return
    this.isBroken = true
    this.droppedBytes += this.bytes
    this.bytes = 0
    this.onRoom()
  }
}
