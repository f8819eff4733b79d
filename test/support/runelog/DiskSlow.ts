// A disk whose syncs take their time: a timer for those in the pool, and really holding up the thread for those that run
// on it, as a stalling device would.
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"

export interface SlowDisk extends Disk {
  /** Syncs of files so far, and those of them that held up the calling thread. */
  readonly syncs: () => number
  readonly syncsInline: () => number
}

const hold = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const withSlowSync = (disk: Disk, syncMs: number): SlowDisk => {
  let syncs = 0
  let syncsInline = 0
  const slowFile = (file: DiskFile): DiskFile => ({
    ...file,
    sync: async () => {
      syncs += 1
      await pause(syncMs)
      await file.sync()
    },
    syncNow: () => {
      syncs += 1
      syncsInline += 1
      hold(syncMs)
      file.syncNow()
    }
  })
  return {
    ...disk,
    open: async (path, mode) => slowFile(await disk.open(path, mode)),
    syncs: () => syncs,
    syncsInline: () => syncsInline
  }
}
