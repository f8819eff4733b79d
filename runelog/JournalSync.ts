// The sync that makes a batch durable: on the calling thread or in the pool, as the policy says, which hears how long
// each of them took.
import type { DiskFile } from "./Disk.ts"
import type { SyncPolicy } from "./SyncPolicy.ts"

export interface JournalSyncOptions {
  readonly policy: SyncPolicy
  readonly nowMs: () => number
}

/** Told the error of a sync that failed, nothing when all is durable. */
export type SyncEnd = (failure?: unknown) => void

export class JournalSync {
  private readonly options: JournalSyncOptions
  /** One runs in the pool. */
  isUnderWay = false

  constructor(options: JournalSyncOptions) {
    this.options = options
  }

  run(file: Pick<DiskFile, "sync" | "syncNow">, end: SyncEnd): void {
    if (this.options.policy.mode === "inline") this.runHere(file, end)
    else this.runInPool(file, end)
  }

  private runHere(file: Pick<DiskFile, "syncNow">, end: SyncEnd): void {
    const startedMs = this.options.nowMs()
    try {
      file.syncNow()
    } catch (error) {
      end(error)
      return
    }
    this.observe(startedMs)
    end()
  }

  private runInPool(file: Pick<DiskFile, "sync">, end: SyncEnd): void {
    const startedMs = this.options.nowMs()
    this.isUnderWay = true
    file.sync().then(
      () => {
        this.isUnderWay = false
        this.observe(startedMs)
        end()
      },
      (error) => {
        this.isUnderWay = false
        end(error)
      }
    )
  }

  private observe(startedMs: number): void {
    this.options.policy.observe(this.options.nowMs() - startedMs)
  }
}
