// The thinned copy of a segment: kept frames with a chain of their own, a marker in place of each dropped range.
// Holds one buffer at a time; the seal is appended by whoever made the copy, once its digest is known.
import type { DiskFile } from "../disk/Disk.ts"
import {
  type Bytes,
  bytesOf,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKindOf,
  frameLastId,
  frameStream,
  sealFrame,
  sealThinned,
  THINNED_BODY_BYTES
} from "../Frame.ts"
import type { SegmentState } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import { sparseIndexer } from "./OpenSegment.ts"

/** A buffer of the copy is written once it holds this much. */
export const WRITE_BYTES = 256 * 1024

/** Writes the kept frames with a chain of their own, and markers in place of dropped ranges. */
export class SegmentCopy {
  private readonly target: DiskFile
  private readonly sealed: SegmentState
  private readonly dropped: ReadonlySet<number>
  private readonly index: (bytes: Bytes, start: number, offset: number) => undefined
  private bytes: Bytes
  private filled = 0
  private offset = 0
  private crc = 0
  private frames = 0
  private lastEventId = 0
  private range: { readonly from: number; to: number } | undefined
  /** No marker may stand inside a batch that goes on: the flag of the dropped frame moves to it. */
  private rangeContinues = 0

  constructor(target: DiskFile, sealed: SegmentState, dropped: ReadonlySet<number>, limits: Limits) {
    this.target = target
    this.bytes = bytesOf(Buffer.allocUnsafe(Math.min(2 * WRITE_BYTES, sealed.bytes)))
    this.sealed = sealed
    this.dropped = dropped
    this.index = sparseIndexer(sealed.index, limits)
  }

  async begin(header: Buffer): Promise<void> {
    this.crc = this.sealed.headerCrc
    header.copy(this.bytes.buffer)
    this.filled = header.length
    await this.write()
  }

  /** Takes one frame; returns how much waits to be written. */
  add(source: Bytes, start: number): number {
    const { view } = source
    const eventId = frameEventId(view, start)
    if (this.dropped.has(eventId)) {
      if (this.range === undefined) this.range = { from: eventId, to: eventId }
      else this.range.to = eventId
      this.rangeContinues = frameFlags(view, start) & flag.batchContinues
    } else {
      this.closeRange()
      this.copyFrame(source, start)
    }
    this.lastEventId = frameLastId(view, start)
    return this.filled
  }

  private reserve(bytes: number): void {
    if (this.filled + bytes <= this.bytes.buffer.length) return
    const larger = bytesOf(Buffer.allocUnsafe((this.filled + bytes) * 2))
    this.bytes.buffer.copy(larger.buffer, 0, 0, this.filled)
    this.bytes = larger
  }

  private get firstFlag(): number {
    return this.frames === 0 ? flag.segmentFirst : 0
  }

  private closeRange(): void {
    const { range } = this
    if (range === undefined) return
    this.range = undefined
    this.reserve(FRAME_HEADER_BYTES + THINNED_BODY_BYTES)
    const flags = this.firstFlag | this.rangeContinues
    this.crc = sealThinned(this.bytes, this.filled, { ...range, previousCrc: this.crc, flags })
    this.push()
  }

  private copyFrame(source: Bytes, start: number): void {
    const { view } = source
    const length = frameBytes(view, start)
    this.reserve(length)
    source.buffer.copy(this.bytes.buffer, this.filled, start, start + length)
    this.crc = sealFrame(this.bytes, this.filled, length - FRAME_HEADER_BYTES, {
      flags: (frameFlags(view, start) & ~flag.segmentFirst) | this.firstFlag,
      kind: frameKindOf(view, start),
      family: frameFamily(view, start),
      stream: frameStream(view, start),
      previousCrc: this.crc,
      eventId: frameEventId(view, start)
    })
    this.push()
  }

  private push(): void {
    this.index(this.bytes, this.filled, this.offset + this.filled)
    this.filled += frameBytes(this.bytes.view, this.filled)
    this.frames += 1
  }

  async write(): Promise<void> {
    await this.target.write(this.bytes.buffer, 0, this.filled, this.offset)
    this.offset += this.filled
    this.filled = 0
  }

  /** Writes what is left; returns where the seal goes and what it follows. */
  async finish(): Promise<{
    readonly offset: number
    readonly frames: number
    readonly lastEventId: number
    readonly crc: number
  }> {
    this.closeRange()
    await this.write()
    const { offset, frames, lastEventId, crc } = this
    return { offset, frames, lastEventId, crc }
  }
}
