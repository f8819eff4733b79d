// The batch that is being filled and those that wait for their turn, oldest first. Owns the slab that the next batch is
// laid out in.

import { alignPage, BATCH_HEADER_BYTES } from "../journal/JournalBatch.ts"
import type { Limits } from "../RunelogLimits.ts"
import { type Batch, openBatch } from "./Batch.ts"
import { chainFrames } from "./Chain.ts"
import type { Slab, Slabs } from "./Slabs.ts"

export class BatchQueue {
  private readonly slabs: Slabs
  private readonly limits: Limits
  private open: Batch | undefined
  private slab: Slab | undefined
  private readonly closed: Array<Batch> = []

  constructor(slabs: Slabs, limits: Limits) {
    this.slabs = slabs
    this.limits = limits
  }

  get isEmpty(): boolean {
    return this.open === undefined && this.closed.length === 0
  }

  /** The batch that was taken up last. */
  get last(): Batch | undefined {
    return this.open ?? this.closed[this.closed.length - 1]
  }

  /** A batch with room for so many bytes behind those it has. */
  batchFor(bytesBound: number): Batch {
    const open = this.open
    const bytes = open === undefined ? 0 : open.end - open.start + bytesBound
    const fits = open !== undefined && open.start + bytes <= open.slab.buffer.length && bytes <= this.slabs.slabBytes
    if (fits) return open
    this.closeOpen()
    const slab = this.slabFor(bytesBound)
    this.slabs.retain(slab)
    this.open = openBatch(slab)
    return this.open
  }

  private slabFor(bytesBound: number): Slab {
    const current = this.slab
    const needed = BATCH_HEADER_BYTES + bytesBound
    if (current !== undefined && alignPage(current.used) + needed <= current.buffer.length) return current
    if (current !== undefined) this.slabs.release(current)
    this.slab = this.slabs.take(alignPage(needed))
    return this.slab
  }

  private closeOpen(): void {
    const { open } = this
    if (open === undefined) return
    chainFrames(open, this.limits)
    open.slab.used = alignPage(open.end)
    this.closed.push(open)
    this.open = undefined
  }

  /** The oldest batch, if there is one; nothing is added to it from here on. */
  peek(): Batch | undefined {
    if (this.closed.length === 0) this.closeOpen()
    return this.closed[0]
  }

  shift(): void {
    this.closed.shift()
  }

  /** All of them, oldest first; none is left. */
  takeAll(): ReadonlyArray<Batch> {
    this.closeOpen()
    return this.closed.splice(0)
  }
}
