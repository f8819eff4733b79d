// Work on whole logs, and on all of them: seal, remove, import, list, checkpoint. Each waits until what was taken before
// is durable or refused, and builds on nothing that a failing disk may have lost.
import type { Committer } from "./commit/Committer.ts"
import { type LogState, lastSegment } from "./LogState.ts"
import { logsDirectory } from "./Paths.ts"
import type { ResidentLogs } from "./ResidentLogs.ts"
import { asDiskError, isFull, isUnopened, type JournalCorrupt, LogUnknown } from "./RunelogErrors.ts"
import { type Imported, type ImportOptions, importDirectory, LogExists, LogWentOn } from "./recovery/Import.ts"
import { noteDamage, type Parts } from "./recovery/Open.ts"
import { packSegments } from "./segment/Pack.ts"
import { sealSegments } from "./segment/Seal.ts"
import { isLogName, SEGMENT_HEADER_BYTES } from "./segment/Segment.ts"

export interface LogWorkOptions {
  readonly parts: Parts
  readonly committer: Committer
  readonly residents: ResidentLogs
  readonly readOnly: JournalCorrupt | undefined
}

export const isUnknown = (log: LogState): boolean =>
  log.removing || (log.durableEventId === 0 && log.damage === undefined)

export class LogWork {
  private readonly options: LogWorkOptions

  constructor(options: LogWorkOptions) {
    this.options = options
  }

  async seal(state: LogState): Promise<string> {
    const { parts } = this.options
    this.refuseReadOnly()
    if (state.damage !== undefined) throw state.damage
    const count = await this.closeSegment(state)
    await sealSegments(parts, state, count).catch(async (error) => {
      await noteDamage(parts, state, error)
      throw error
    })
    const seal = state.segments[count - 1]?.seal
    if (seal === undefined) throw new LogUnknown({ log: state.name })
    return seal.sha256
  }

  /** Seals, then packs what is sealed. It saves room and can be done without: what finds none leaves the log as it is. */
  async pack(state: LogState): Promise<void> {
    await this.seal(state)
    await packSegments(this.options.parts, state, state.segments.length).catch(async (error) => {
      await noteDamage(this.options.parts, state, error)
      if (!isFull(error) && !isUnopened(error)) throw error
    })
  }

  /** Bytes of frames that a seal would be the first to cover; 0 where none can be made. */
  unsealedBytes(state: LogState): number {
    const last = lastSegment(state)
    if (last === undefined || last.seal !== undefined) return 0
    if (state.removing || state.damage !== undefined || this.options.readOnly !== undefined) return 0
    return last.durableBytes - SEGMENT_HEADER_BYTES
  }

  /** Lets no frame be added to the segments there are, once those under way are durable; returns how many they are. */
  private async closeSegment(state: LogState): Promise<number> {
    for (;;) {
      const count = state.segments.length
      const last = state.segments[count - 1]
      if (last === undefined || state.removing) throw new LogUnknown({ log: state.name })
      last.closing = true
      await this.drained()
      // It is gone when all that was in it was refused: then the one before it is the last.
      if (state.segments[count - 1] === last) return count
    }
  }

  /** Everything taken so far is durable or refused. Of a poisoned writer neither is known, so nothing may build on it. */
  private async drained(): Promise<void> {
    const { committer } = this.options
    await committer.drained()
    if (committer.poisoned !== undefined) throw committer.poisoned
  }

  private refuseReadOnly(): void {
    if (this.options.readOnly !== undefined) throw this.options.readOnly
  }

  async remove(state: LogState, head: number | undefined): Promise<void> {
    const { committer, parts, residents } = this.options
    const log = state.name
    this.refuseReadOnly()
    if (isUnknown(state)) throw new LogUnknown({ log })
    state.removing = true
    try {
      await this.drained()
      const { durableEventId } = state
      if (head !== undefined && durableEventId !== head)
        throw new LogWentOn({ log, head: durableEventId, expected: head })
      await committer.remove(state)
    } catch (error) {
      state.removing = false
      throw error
    }
    await parts.maintenance.removeAll()
    residents.forget(log)
  }

  async import(state: LogState, work: (options: ImportOptions) => Promise<Imported>): Promise<Imported> {
    const { committer, parts, residents } = this.options
    this.refuseReadOnly()
    if (committer.poisoned !== undefined) throw committer.poisoned
    if (state.damage !== undefined) throw state.damage
    if (state.nextEventId > 1 || state.removing) throw new LogExists({ log: state.name })
    // To everybody else the log is unknown until it is there.
    state.removing = true
    try {
      // A removal of the same name in the journal would, after a crash, take the new log with it.
      if (parts.journalLogs.removes(state.name)) await this.checkpoint()
      else await this.drained()
      const { disk, limits, options } = parts
      const { directory } = options
      const imported = await work({
        disk,
        limits,
        logsDirectory: logsDirectory(directory),
        importDirectory: importDirectory(directory)
      })
      const { head, headCrc: crc } = imported
      await parts.maintenance.recordHead(state.name, { head, crc })
      return imported
    } finally {
      residents.forget(state.name)
    }
  }

  async list(): Promise<ReadonlyArray<string>> {
    const { parts, residents } = this.options
    const directory = logsDirectory(parts.options.directory)
    // Those known before count too: one may get its directory behind the listing and be forgotten before it is over.
    const known = new Set(residents.values())
    const names = new Set(parts.journalLogs.names())
    const entries = await parts.disk.list(directory).catch((error) => {
      throw asDiskError(error, directory)
    })
    for (const { kind, name } of entries) if (kind === "directory" && isLogName(name)) names.add(name)
    for (const state of residents.values()) known.add(state)
    for (const { durableEventId, name, removing } of known) if (durableEventId > 0 && !removing) names.add(name)
    for (const name of parts.journalLogs.names()) names.add(name)
    return [...names].sort()
  }

  async recordItems(items: ReadonlyMap<string, string | undefined>): Promise<void> {
    this.refuseReadOnly()
    if (this.options.committer.poisoned !== undefined) throw this.options.committer.poisoned
    await this.options.parts.manifest.record({ items })
  }

  async checkpoint(): Promise<void> {
    this.refuseReadOnly()
    await this.drained()
    await this.options.parts.maintenance.checkpoint(this.options.committer.sequence)
  }

  /** Leaves nothing that the next start would have to recover, unless that is too much for a close. */
  async leaveClean(): Promise<void> {
    const { committer, parts, residents } = this.options
    if (parts.maintenance.unsettledLogs > parts.limits.closeLogsMax) return
    await parts.maintenance.checkpoint(committer.sequence)
    for (const log of residents.values()) await parts.store.writeIndexes(log)
    await parts.maintenance.record({ floor: committer.sequence, sequence: committer.sequence, clean: true })
  }
}
