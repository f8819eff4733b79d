// Writes extents of one segment, which follow each other in the file but lie apart in memory, in as few writes as
// possible: small ones are put together first. The buffers for that are used again: fresh memory costs page faults, and
// memory outside of the heap that comes and goes makes the collector run.
import type { DiskFile } from "../disk/Disk.ts"
import type { Extent } from "../LogState.ts"

export const NO_HEADER: Buffer = Buffer.alloc(0)

export const bytesIn = ({ end, start }: Extent): number => end - start

/** An extent of this size is written from where it lies; smaller ones are put together first. */
const DIRECT_BYTES_MIN = 256 * 1024
/** So much of small extents is put together for one write. */
const GATHER_BYTES_MAX = 1024 * 1024
/** Buffers kept; as many as there are flushes at once. */
const SPARE_MAX = 3

export class Gatherer {
  private readonly spare: Array<Buffer> = []

  /** Writes the extents, the first of them behind `header`, each where it belongs in the file. */
  async write(file: DiskFile, header: Buffer, extents: ReadonlyArray<Extent>): Promise<void> {
    for (let from = 0; from < extents.length; ) {
      const end = pieceEnd(extents, from)
      const before = from === 0 ? header : NO_HEADER
      const first = extents[from]!
      if (end === from + 1 && before.length === 0) {
        await file.write(first.slab.buffer, first.start, bytesIn(first), first.position)
      } else {
        await this.writeGathered(file, before, extents.slice(from, end))
      }
      from = end
    }
  }

  private async writeGathered(file: DiskFile, header: Buffer, extents: ReadonlyArray<Extent>): Promise<void> {
    const bytes = extents.reduce((sum, extent) => sum + bytesIn(extent), header.length)
    const target = this.take(bytes)
    let at = header.copy(target)
    for (const extent of extents) at += extent.slab.buffer.copy(target, at, extent.start, extent.end)
    try {
      await file.write(target, 0, bytes, extents[0]!.position - header.length)
    } finally {
      if (target.length === GATHER_BYTES_MAX && this.spare.length < SPARE_MAX) this.spare.push(target)
    }
  }

  /** Only a large extent behind a header needs more than the buffers hold. */
  private take(bytes: number): Buffer {
    return bytes > GATHER_BYTES_MAX
      ? Buffer.allocUnsafeSlow(bytes)
      : (this.spare.pop() ?? Buffer.allocUnsafeSlow(GATHER_BYTES_MAX))
  }
}

/** Where the extents end that are written with the one at `from`. */
const pieceEnd = (extents: ReadonlyArray<Extent>, from: number): number => {
  let at = from + 1
  let bytes = bytesIn(extents[from]!)
  if (bytes >= DIRECT_BYTES_MIN) return at
  for (; at < extents.length; at++) {
    const more = bytesIn(extents[at]!)
    if (more >= DIRECT_BYTES_MIN || bytes + more > GATHER_BYTES_MAX) break
    bytes += more
  }
  return at
}
