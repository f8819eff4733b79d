// Which logs have frames in memory, and when those frames are written to segments: once a log has many of them, or
// once all logs together hold too much. Also the lanes in which flushes run, few at a time.

import type { Slabs } from "./commit/Slabs.ts"
import type { LogState } from "./LogState.ts"
import type { Limits } from "./RunelogLimits.ts"
import type { SegmentStore } from "./segment/SegmentStore.ts"

export interface FlusherOptions {
  readonly store: SegmentStore
  readonly slabs: Slabs
  readonly limits: Limits
  /** Called whenever frames left the memory. */
  readonly onFlushed: () => void
  /** Lets the frames of a log leave the memory that can be read from the journal again; says whether they did. */
  readonly release: (log: LogState) => boolean
}

/** Memory is crowded from this share of what may be held: the later, the fewer and larger the writes, while appenders must
 * still find room during them. */
const CROWDED_SHARE = 0.75

/** Flushes under way at once: enough to keep the disk busy, few enough to leave pool threads to others. */
const LANES = 3

export class Flusher {
  private readonly options: FlusherOptions
  /** Logs with frames in memory, the longest waiting first. */
  private readonly pending = new Set<LogState>()
  private readonly heavy = new Set<LogState>()

  constructor(options: FlusherOptions) {
    this.options = options
  }

  /** Frames of this log became durable with the batch of this sequence. */
  noteDurable(log: LogState, sequence: number): void {
    // With older frames it is known already, or is told when the flush under way ends.
    if (log.pending[0]!.sequence === sequence) this.pending.add(log)
    if (log.pendingBytes >= this.options.limits.segmentWriteBytes) this.heavy.add(log)
  }

  /** A log was opened with frames that only the journal holds. */
  noteOpened(log: LogState): void {
    if (log.pending.length > 0) this.pending.add(log)
  }

  forget(log: LogState): void {
    this.pending.delete(log)
    this.heavy.delete(log)
  }

  private get isCrowded(): boolean {
    const { limits, slabs } = this.options
    return slabs.bytes > limits.pendingBytesMax * CROWDED_SHARE && this.pending.size > 0
  }

  get isDue(): boolean {
    return this.heavy.size > 0 || this.isCrowded
  }

  /**
   * Writes the frames of the heavy logs; then, if memory is crowded, those of all logs: each slab holds frames of many of
   * them, and is free only when the last one is written. Logs with few frames leave them to the journal: a directory and a
   * file for each would cost more than all the rest.
   */
  async flushDue(): Promise<void> {
    await this.flush(new Set(this.heavy), { sync: false })
    if (!this.isCrowded) return
    await this.flush(new Set([...this.pending].filter((log) => !this.options.release(log))), { sync: false })
    this.options.onFlushed()
  }

  /** Flushes these logs in lanes; `logs` is used up. */
  async flush(logs: Set<LogState>, options: { readonly sync: boolean }): Promise<void> {
    const lane = async (): Promise<void> => {
      for (const log of logs) {
        logs.delete(log)
        this.forget(log)
        try {
          await this.options.store.flush(log, options)
        } finally {
          if (log.pending.length > 0) this.pending.add(log)
          if (log.pendingBytes >= this.options.limits.segmentWriteBytes) this.heavy.add(log)
        }
        this.options.onFlushed()
      }
    }
    const lanes = Array.from({ length: Math.min(LANES, logs.size) }, lane)
    // All of them end before the first failure is told: no flush goes on behind its back.
    await Promise.allSettled(lanes)
    await Promise.all(lanes)
  }
}
