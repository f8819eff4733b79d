// What can go wrong, each with the facts a person needs to act. Expected failures reject with one of
// these; anything else that escapes the engine is a defect.
import * as Data from "effect/Data"
import { codeOf } from "./DiskFault.ts"

/** The name cannot be a log: it must match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. */
export class LogNameInvalid extends Data.TaggedError("LogNameInvalid")<{ readonly log: string }> {
  override get message() {
    return `"${this.log.slice(0, 80)}" is not a log name: 1 to 64 letters, digits, "_" or "-", starting with a letter or digit`
  }
}

/** Nothing was ever appended under this name (or it was removed). */
export class LogUnknown extends Data.TaggedError("LogUnknown")<{ readonly log: string }> {
  override get message() {
    return `there is no log "${this.log}"`
  }
}

/** The log has damage: its good prefix can be read, nothing can be appended. */
export class LogDamaged extends Data.TaggedError("LogDamaged")<{
  readonly log: string
  readonly file: string
  readonly offset: number
  readonly reason: string
}> {
  override get message() {
    return `log "${this.log}" is read-only: ${this.reason} (${this.file} at byte ${this.offset})`
  }
}

export class EntryTooLarge extends Data.TaggedError("EntryTooLarge")<{
  readonly log: string
  readonly bytes: number
  readonly bytesMax: number
}> {
  override get message() {
    return `an entry of ${this.bytes} bytes for "${this.log}" exceeds the limit of ${this.bytesMax}`
  }
}

export class BatchTooLarge extends Data.TaggedError("BatchTooLarge")<{
  readonly log: string
  readonly bytes: number
  readonly bytesMax: number
  readonly frames: number
  readonly framesMax: number
}> {
  override get message() {
    return `a batch of ${this.frames} frames and ${this.bytes} bytes for "${this.log}" exceeds the limit of ${this.framesMax} frames or ${this.bytesMax} bytes`
  }
}

export class BatchEmpty extends Data.TaggedError("BatchEmpty")<{ readonly log: string }> {
  override get message() {
    return `the batch for "${this.log}" has no entry`
  }
}

export class EventIdOutOfOrder extends Data.TaggedError("EventIdOutOfOrder")<{
  readonly log: string
  readonly expected: number
  readonly got: number
}> {
  override get message() {
    return `log "${this.log}" expects event id ${this.expected} next, not ${this.got}`
  }
}

/** A header field (visibility, family, stream) is outside what the format can hold. */
export class EntryInvalid extends Data.TaggedError("EntryInvalid")<{
  readonly log: string
  readonly field: string
  readonly value: unknown
}> {
  override get message() {
    return `entry field ${this.field} of "${this.log}" cannot be ${String(this.value)}`
  }
}

/** Too much waits, for the journal or, durable already, for its segments. Nothing was written; `ready()` resolves when there is room. */
export class Busy extends Data.TaggedError("Busy")<{
  readonly waitingFor: "journal" | "segments"
  readonly bytes: number
  readonly bytesMax: number
}> {
  override get message() {
    return this.waitingFor === "journal"
      ? `${this.bytes} bytes are waiting to become durable (limit ${this.bytesMax})`
      : `${this.bytes} bytes of memory hold durable entries until they are in their segments (limit ${this.bytesMax})`
  }
}

/** The disk has no room. The append was rolled back: nothing of it remains. */
export class DiskFull extends Data.TaggedError("DiskFull")<{ readonly path: string; readonly reason: string }> {
  override get message() {
    return `no room on the disk at ${this.path}: ${this.reason}`
  }
}

/** A write or sync failed. No further append is acknowledged; whether this one survived is known after a restart. */
export class WriterPoisoned extends Data.TaggedError("WriterPoisoned")<{
  readonly path: string
  readonly cause: unknown
}> {
  override get message() {
    return `the disk failed at ${this.path}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}; restart to read back what is durable`
  }
}

/** The disk refused a call for another reason than want of room. Nothing was changed by it. */
export class DiskFailed extends Data.TaggedError("DiskFailed")<{ readonly path: string; readonly cause: unknown }> {
  override get message() {
    return `the disk failed at ${this.path}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

/** A sync failed, for whatever reason: what it should have covered may be lost, and no later sync would tell. */
export class SyncFailed extends Data.TaggedError("SyncFailed")<{ readonly path: string; readonly cause: unknown }> {
  override get message() {
    return `${this.path} could not be synced: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

export class WriterClosed extends Data.TaggedError("WriterClosed")<{ readonly path: string }> {
  override get message() {
    return `the runelog at ${this.path} is closed`
  }
}

/** There is no data directory at this place. */
export class DataMissing extends Data.TaggedError("DataMissing")<{ readonly path: string }> {
  override get message() {
    return `there is no data at ${this.path}`
  }
}

export class DirectoryLocked extends Data.TaggedError("DirectoryLocked")<{
  readonly path: string
  readonly pid: number | undefined
}> {
  override get message() {
    return `${this.path} is in use by ${this.pid === undefined ? "another writer" : `process ${this.pid}`}`
  }
}

/** The file is of a format this version does not read. */
export class FormatUnsupported extends Data.TaggedError("FormatUnsupported")<{
  readonly file: string
  readonly version: number
  readonly supported: number
}> {
  override get message() {
    return `${this.file} has format version ${this.version}; this build reads version ${this.supported}`
  }
}

/** Something lies in the data directory that the engine did not put there. */
export class ForeignFile extends Data.TaggedError("ForeignFile")<{ readonly file: string }> {
  override get message() {
    return `${this.file} is not a file of the runelog; move it away`
  }
}

export class SegmentCorrupt extends Data.TaggedError("SegmentCorrupt")<{
  readonly log: string
  readonly file: string
  readonly offset: number
  readonly reason: string
}> {
  override get message() {
    return `${this.file} is damaged at byte ${this.offset}: ${this.reason}`
  }
}

export class JournalCorrupt extends Data.TaggedError("JournalCorrupt")<{
  readonly file: string
  readonly offset: number
  readonly reason: string
}> {
  override get message() {
    return `${this.file} is damaged at byte ${this.offset}: ${this.reason}`
  }
}

/** The cursor lies beyond the newest durable event. */
export class CursorBeyondEnd extends Data.TaggedError("CursorBeyondEnd")<{
  readonly log: string
  readonly after: number
  readonly head: number
}> {
  override get message() {
    return `cursor ${this.after} lies beyond the head ${this.head} of "${this.log}"`
  }
}

/** A page was asked for in a way that makes no sense. */
export class ReadInvalid extends Data.TaggedError("ReadInvalid")<{
  readonly log: string
  readonly field: string
  readonly value: unknown
}> {
  override get message() {
    return `a page of "${this.log}" cannot be read with ${this.field} ${String(this.value)}`
  }
}

export type AppendError =
  | LogNameInvalid
  | LogUnknown
  | LogDamaged
  | EntryTooLarge
  | EntryInvalid
  | BatchTooLarge
  | BatchEmpty
  | EventIdOutOfOrder
  | Busy
  | DiskFull
  | WriterPoisoned
  | WriterClosed
  | JournalCorrupt

export type ReadError =
  | LogNameInvalid
  | LogUnknown
  | ReadInvalid
  | SegmentCorrupt
  | FormatUnsupported
  | ForeignFile
  | CursorBeyondEnd
  | DiskFailed
  | WriterClosed

export type OpenError =
  | DirectoryLocked
  | FormatUnsupported
  | ForeignFile
  | JournalCorrupt
  | DiskFull
  | DiskFailed
  | WriterPoisoned
  | LimitInvalid

/** A limit was set to something the engine cannot work with. */
export class LimitInvalid extends Data.TaggedError("LimitInvalid")<{
  readonly name: string
  readonly value: number
  readonly reason: string
}> {
  override get message() {
    return `limit ${this.name} cannot be ${this.value}: ${this.reason}`
  }
}

/** For `catch` behind a sync. */
export const syncFailed =
  (path: string) =>
  (cause: unknown): never => {
    throw new SyncFailed({ path, cause })
  }

/** The disk has no room, whoever counts it: the file system or a quota. */
export const isFull = (error: unknown): boolean => codeOf(error) === "ENOSPC" || codeOf(error) === "EDQUOT"

/** An error of the system, with a meaning; anything else as it is. */
export const asDiskError = (error: unknown, path: string): unknown => {
  if (codeOf(error) === undefined) return error
  return isFull(error)
    ? new DiskFull({ path, reason: (error as Error).message })
    : new DiskFailed({ path, cause: error })
}
