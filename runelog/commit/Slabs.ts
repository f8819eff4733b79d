// Memory for batches. A slab is filled batch by batch, written to the journal from where it lies, and kept
// until the frames in it are in their segments: until then it is also what readers of the newest frames
// read. Slabs are counted and reused; how many may live is the committer's back-pressure.
import { type Bytes, bytesOf } from "../Frame.ts"

export interface Slab extends Bytes {
  /** First byte not taken by a batch. */
  used: number
  /** Batches and extents that still need these bytes. */
  references: number
}

/** Slabs kept for reuse: fresh memory costs page faults that reused memory does not. */
const SPARE_MAX = 32
/** Those that stay when little goes on. */
const SPARE_AT_REST = 8

export class Slabs {
  readonly slabBytes: number
  private readonly spare: Array<Slab> = []
  private liveBytes = 0

  constructor(slabBytes: number) {
    this.slabBytes = slabBytes
  }

  /** Bytes of all slabs that are referenced. */
  get bytes(): number {
    return this.liveBytes
  }

  take(bytesMin: number): Slab {
    const spare = bytesMin <= this.slabBytes ? this.spare.pop() : undefined
    const slab = spare ?? {
      ...bytesOf(Buffer.allocUnsafeSlow(Math.max(bytesMin, this.slabBytes))),
      used: 0,
      references: 0
    }
    slab.used = 0
    this.liveBytes += slab.buffer.length
    slab.references = 1
    return slab
  }

  /** A slab of just this size, for what is read and not filled. */
  takeExact(bytes: number): Slab {
    this.liveBytes += bytes
    return { ...bytesOf(Buffer.allocUnsafeSlow(bytes)), used: bytes, references: 1 }
  }

  retain(slab: Slab): void {
    slab.references += 1
  }

  release(slab: Slab): void {
    slab.references -= 1
    if (slab.references > 0) return
    this.liveBytes -= slab.buffer.length
    if (slab.buffer.length === this.slabBytes && this.spare.length < SPARE_MAX) this.spare.push(slab)
  }

  /** Gives spare slabs back to the system, but for a few and as many as are in use. */
  trim(): void {
    const wanted = Math.max(SPARE_AT_REST, Math.ceil(this.liveBytes / this.slabBytes))
    if (this.spare.length > wanted) this.spare.length = wanted
  }
}
