// Where the commit's sync runs. On the calling thread it is 1.2–1.6 × faster while the disk is quick, but it
// holds up everything else in the process; in the thread pool it costs a hop and holds up nothing.
// The policy follows the disk: quick disks sync inline, slow or stalling ones in the pool.

/** An average flush below this is cheaper inline than a thread hop is worth. */
const INLINE_BELOW_MS = 0.6
/** One flush this long sends the next ones to the pool at once. */
const STALL_MS = 4
/** Weight of the newest flush in the average. */
const WEIGHT = 1 / 16
/** In the pool, this many flushes pass before inline is considered again. */
const POOL_FLUSHES_MIN = 64

export type SyncMode = "inline" | "pool"

export class SyncPolicy {
  private readonly fixed: SyncMode | undefined
  private averageMs = 0
  private poolFlushesLeft = 0

  constructor(fixed: SyncMode | undefined) {
    this.fixed = fixed
  }

  get mode(): SyncMode {
    if (this.fixed !== undefined) return this.fixed
    return this.poolFlushesLeft > 0 || this.averageMs > INLINE_BELOW_MS ? "pool" : "inline"
  }

  /** Nobody asked for all syncs to be on the calling thread. */
  get mayUsePool(): boolean {
    return this.fixed !== "inline"
  }

  observe(flushMs: number): void {
    this.averageMs += (flushMs - this.averageMs) * WEIGHT
    if (this.poolFlushesLeft > 0) this.poolFlushesLeft -= 1
    if (flushMs >= STALL_MS) this.poolFlushesLeft = POOL_FLUSHES_MIN
  }
}
