// Keeps some of every disk free: a program that fills one is ended while there is still room for everybody else. One
// timer serves all programs, and only while some run.

import { statfs } from "node:fs/promises"
import { type Cancel, every } from "../../contract/Timers.ts"
import { processLimits } from "./ProcessLimits.ts"

interface Watched {
  readonly path: string
  readonly onFull: () => void
  /** Set by the first look. */
  reserveBytes: number | undefined
}

/** What has to stay free on a disk that has this much free space now. */
export type ReserveOf = (freeBytes: number) => number

/** A disk that is nearly full already may not get much fuller, but is still of use. */
export const usualReserve: ReserveOf = (freeBytes) => Math.min(processLimits.diskReserveBytes, freeBytes / 2)

const freeBytes = async (path: string): Promise<number | undefined> => {
  const facts = await statfs(path).catch(() => undefined)
  return facts === undefined ? undefined : facts.bavail * facts.bsize
}

export class DiskGuard {
  private readonly watched = new Set<Watched>()
  private readonly reserveOf: ReserveOf
  private stopLooking: Cancel | undefined
  private isLooking = false

  constructor(reserveOf: ReserveOf) {
    this.reserveOf = reserveOf
  }

  /** Watches the disks of these paths until the answer is called. */
  watch(paths: ReadonlyArray<string>, onFull: () => void): () => void {
    const entries = paths.map((path): Watched => ({ path, onFull, reserveBytes: undefined }))
    for (const entry of entries) this.watched.add(entry)
    this.stopLooking ??= every(processLimits.diskCheckMs, () => void this.look())
    return () => {
      for (const entry of entries) this.watched.delete(entry)
      if (this.watched.size > 0) return
      this.stopLooking?.()
      this.stopLooking = undefined
    }
  }

  private async look(): Promise<void> {
    if (this.isLooking) return
    this.isLooking = true
    const free = new Map<string, number | undefined>()
    for (const entry of [...this.watched]) {
      if (!free.has(entry.path)) free.set(entry.path, await freeBytes(entry.path))
      const bytes = free.get(entry.path)
      if (bytes === undefined) continue
      entry.reserveBytes ??= this.reserveOf(bytes)
      if (bytes < entry.reserveBytes && this.watched.has(entry)) entry.onFull()
    }
    this.isLooking = false
  }
}
