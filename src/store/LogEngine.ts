// The log of a data directory, opened as its one writer for as long as the scope, with the disk it is on. Everything else
// in the store is built on it. What goes wrong with the log is written down, and told to those who write.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Disk } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import type { RunelogOptions } from "#runelog/Options.ts"
import { Runelog } from "#runelog/Runelog.ts"
import type { OpenError } from "#runelog/RunelogErrors.ts"
import { importDirectory } from "#runelog/recovery/Import.ts"
import { MetaFile } from "#runelog/recovery/MetaFile.ts"
import { DurableNotices, type NoticeBus } from "../contract/DurableNotices.ts"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import { attempt, tagsOf } from "./Boundary.ts"

export interface LogEngineOptions {
  /** The data directory. */
  readonly directory: string
  readonly disk?: Disk
  readonly runelog?: Omit<RunelogOptions, "directory" | "disk">
}

export interface Engine {
  readonly runelog: Runelog
  readonly disk: Disk
  readonly directory: string
  /** Tells this data directory from others. */
  readonly directoryId: string
}

/** A promise of opening the store. */
export const attemptOpen = attempt<OpenError>(
  tagsOf<OpenError>({
    DirectoryLocked: true,
    FormatUnsupported: true,
    ForeignFile: true,
    JournalCorrupt: true,
    DiskFull: true,
    DiskFailed: true,
    ResourcesScarce: true,
    WriterPoisoned: true,
    LimitInvalid: true,
    GuardUnusable: true
  })
)

const reporting = (log: Log, notices: NoticeBus): Pick<RunelogOptions, "onPoison" | "onDamage"> => ({
  onPoison: (error) => {
    log.write("error", "the log writes no more", { cause: describeError(error) })
    notices.refused(error)
  },
  onDamage: (damage) => {
    log.write("error", "a conversation is read-only from now on", { cause: describeError(damage) })
    notices.refused(damage, damage.log)
  }
})

export class LogEngine extends Context.Service<LogEngine, Engine>()("echs/store/LogEngine") {
  static readonly layer = ({
    directory,
    disk = makeDiskNode(),
    runelog: options
  }: LogEngineOptions): Layer.Layer<LogEngine, OpenError, DurableNotices | ServerLog> =>
    Layer.effect(
      LogEngine,
      Effect.gen(function* () {
        const reports = reporting(yield* ServerLog, yield* DurableNotices)
        const runelog = yield* Effect.acquireRelease(
          attemptOpen(() => Runelog.open({ ...options, ...reports, directory, disk })),
          (opened) => Effect.promise(() => opened.close())
        )
        yield* attemptOpen(() => disk.removeTree(importDirectory(directory)))
        const { directoryId } = yield* attemptOpen(() => MetaFile.read(disk, directory))
        return { runelog, disk, directory, directoryId }
      })
    )
}
