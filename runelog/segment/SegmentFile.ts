// The file of a segment, packed or not. It finds out which when it is first read: a segment that is only written to is
// never packed. Inflated blocks are kept for a while, few of them for all files of a process together.
import type { Disk, DiskFile, OpenMode } from "../disk/Disk.ts"
import { inflateBlock, openPacked, type Packed } from "./PackedSegment.ts"

const BLOCKS_KEPT_MAX = 16
const UNPACK_BYTES = 1024 * 1024

/** Inflated blocks, the longest unused first. */
const kept = new Map<string, { readonly owner: SegmentFile; readonly bytes: Buffer }>()
let opened = 0

const fillZeros = (target: Uint8Array, start: number, bytes: number): number => {
  if (bytes <= 0) return 0
  target.fill(0, start, start + bytes)
  return bytes
}

export class SegmentFile implements DiskFile {
  private readonly disk: Disk
  private readonly path: string
  private file: DiskFile
  private looking: Promise<Packed | undefined> | undefined
  private packed: Packed | undefined
  private readonly id = opened++

  private constructor(disk: Disk, path: string, file: DiskFile) {
    this.disk = disk
    this.path = path
    this.file = file
  }

  static async open(disk: Disk, path: string, mode: OpenMode): Promise<SegmentFile> {
    return new SegmentFile(disk, path, await disk.open(path, mode))
  }

  /** Known once something was read. */
  get isPacked(): boolean {
    return this.packed !== undefined
  }

  private async look(): Promise<Packed | undefined> {
    this.looking ??= openPacked(this.file).catch((error) => {
      this.looking = undefined
      throw error
    })
    this.packed = await this.looking
    return this.packed
  }

  async read(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    const packed = await this.look()
    if (packed === undefined) return this.file.read(target, offset, length, position)
    const size = packed.bytes + packed.surplusBytes
    if (position >= packed.bytes) return fillZeros(target, offset, Math.min(length, size - position))
    const end = Math.min(position + length, packed.bytes)
    let at = position
    while (at < end) {
      const block = Math.floor(at / packed.blockBytes)
      const bytes = await this.block(packed, block)
      const from = at - block * packed.blockBytes
      const part = bytes.subarray(from, Math.min(bytes.length, from + end - at))
      target.set(part, offset + at - position)
      at += part.length
    }
    return at - position + fillZeros(target, offset + at - position, Math.min(position + length, size) - at)
  }

  private async block(packed: Packed, block: number): Promise<Buffer> {
    const key = `${this.id} ${block}`
    const found = kept.get(key)?.bytes ?? (await inflateBlock(this.file, packed, block))
    kept.delete(key)
    kept.set(key, { owner: this, bytes: found })
    if (kept.size > BLOCKS_KEPT_MAX) kept.delete(kept.keys().next().value!)
    return found
  }

  async size(): Promise<number> {
    const packed = await this.look()
    return packed === undefined ? this.file.size() : packed.bytes + packed.surplusBytes
  }

  /** A packed segment is cut only by a repair: what stays of it is written anew, as it was before it was packed. */
  async truncate(length: number): Promise<void> {
    if ((await this.look()) === undefined) return this.file.truncate(length)
    const temporary = `${this.path}.tmp`
    if (await this.disk.exists(temporary)) await this.disk.remove(temporary)
    const plain = await this.disk.open(temporary, "create")
    for (let at = 0; at < length; at += UNPACK_BYTES) {
      const bytes = Buffer.alloc(Math.min(UNPACK_BYTES, length - at))
      await this.read(bytes, 0, bytes.length, at)
      await plain.write(bytes, 0, bytes.length, at)
    }
    await plain.sync()
    await this.disk.rename(temporary, this.path)
    await this.file.close()
    this.file = plain
    this.looking = Promise.resolve(undefined)
    this.packed = undefined
  }

  write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    return this.file.write(source, offset, length, position)
  }

  writeNow(source: Uint8Array, offset: number, length: number, position: number): void {
    this.file.writeNow(source, offset, length, position)
  }

  sync(): Promise<void> {
    return this.file.sync()
  }

  syncNow(): void {
    this.file.syncNow()
  }

  close(): Promise<void> {
    for (const [key, { owner }] of kept) if (owner === this) kept.delete(key)
    return this.file.close()
  }
}

/** Whether what was read came out of compressed blocks: such a file was put in place whole, so its end is never torn. */
export const isPacked = (file: DiskFile): boolean => file instanceof SegmentFile && file.isPacked
