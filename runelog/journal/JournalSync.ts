// The sync that makes a batch durable: on the calling thread or in the pool, as the policy says, which hears how long
// each of them took. One that runs beside other work is always in the pool, and says nothing of the disk: it is over when
// that work lets it be noticed.

import type { SyncPolicy } from "../commit/SyncPolicy.ts"
import type { DiskFile } from "../disk/Disk.ts"

export interface JournalSyncOptions {
  readonly policy: SyncPolicy
  readonly nowMs: () => number
}

/** Told the error of a sync that failed, nothing when all is durable. */
export type SyncEnd = (failure?: unknown) => void

/** In the pool beside other work, or where the policy says. */
export type SyncPlace = "beside" | "by policy"

export class JournalSync {
  private readonly options: JournalSyncOptions
  /** One runs in the pool. */
  isUnderWay = false

  constructor(options: JournalSyncOptions) {
    this.options = options
  }

  run(file: Pick<DiskFile, "sync" | "syncNow">, where: SyncPlace, end: SyncEnd): void {
    if (where === "beside") this.runInPool(file, end)
    else this.runObserved(file, end)
  }

  private runObserved(file: Pick<DiskFile, "sync" | "syncNow">, end: SyncEnd): void {
    const startedMs = this.options.nowMs()
    const observed: SyncEnd = (failure) => {
      if (failure === undefined) this.options.policy.observe(this.options.nowMs() - startedMs)
      end(failure)
    }
    if (this.options.policy.mode === "inline") this.runHere(file, observed)
    else this.runInPool(file, observed)
  }

  private runHere(file: Pick<DiskFile, "syncNow">, end: SyncEnd): void {
    try {
      file.syncNow()
    } catch (error) {
      end(error)
      return
    }
    end()
  }

  private runInPool(file: Pick<DiskFile, "sync">, end: SyncEnd): void {
    this.isUnderWay = true
    file.sync().then(
      () => {
        this.isUnderWay = false
        end()
      },
      (error) => {
        this.isUnderWay = false
        end(error)
      }
    )
  }
}
