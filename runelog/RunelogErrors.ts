// What can go wrong, each with the facts a person needs to act. Expected failures reject with one of
// these; anything else that escapes the engine is a defect. `wireCode` is what a client of a server is told: `internal` says
// nothing of the inside.
import * as Data from "effect/Data"
import { codeOf, syscallOf } from "./disk/DiskFault.ts"

/** The name cannot be a log: it must match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. */
export class LogNameInvalid extends Data.TaggedError("LogNameInvalid")<{ readonly log: string }> {
  readonly wireCode = "not_found" as const

  override get message() {
    return `"${this.log.slice(0, 80)}" is not a log name: 1 to 64 letters, digits, "_" or "-", starting with a letter or digit`
  }
}

/** Nothing was ever appended under this name (or it was removed). */
export class LogUnknown extends Data.TaggedError("LogUnknown")<{ readonly log: string }> {
  readonly wireCode = "not_found" as const

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
  readonly wireCode = "read_only" as const

  override get message() {
    return `log "${this.log}" is read-only: ${this.reason} (${this.file} at byte ${this.offset})`
  }
}

export class EntryTooLarge extends Data.TaggedError("EntryTooLarge")<{
  readonly log: string
  readonly bytes: number
  readonly bytesMax: number
}> {
  readonly wireCode = "internal" as const

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
  readonly wireCode = "internal" as const

  override get message() {
    return `a batch of ${this.frames} frames and ${this.bytes} bytes for "${this.log}" exceeds the limit of ${this.framesMax} frames or ${this.bytesMax} bytes`
  }
}

export class BatchEmpty extends Data.TaggedError("BatchEmpty")<{ readonly log: string }> {
  readonly wireCode = "internal" as const

  override get message() {
    return `the batch for "${this.log}" has no entry`
  }
}

export class EventIdOutOfOrder extends Data.TaggedError("EventIdOutOfOrder")<{
  readonly log: string
  readonly expected: number
  readonly got: number
}> {
  readonly wireCode = "internal" as const

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
  readonly wireCode = "internal" as const

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
  readonly wireCode = "busy" as const

  override get message() {
    return this.waitingFor === "journal"
      ? `${this.bytes} bytes are waiting to become durable (limit ${this.bytesMax})`
      : `${this.bytes} bytes of memory hold durable entries until they are in their segments (limit ${this.bytesMax})`
  }
}

/** The disk has no room. The append was rolled back: nothing of it remains. */
export class DiskFull extends Data.TaggedError("DiskFull")<{ readonly path: string; readonly reason: string }> {
  readonly wireCode = "read_only" as const

  override get message() {
    return `no room on the disk at ${this.path}: ${this.reason}`
  }
}

/** A write or sync failed. No further append is acknowledged; whether this one survived is known after a restart. */
export class WriterPoisoned extends Data.TaggedError("WriterPoisoned")<{
  readonly path: string
  readonly cause: unknown
}> {
  readonly wireCode = "read_only" as const

  override get message() {
    return `the disk failed at ${this.path}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}; restart to read back what is durable`
  }
}

/** The disk refused a call for another reason than want of room. Nothing was changed by it. */
export class DiskFailed extends Data.TaggedError("DiskFailed")<{ readonly path: string; readonly cause: unknown }> {
  readonly wireCode = "read_only" as const

  override get message() {
    return `the disk failed at ${this.path}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

/** No descriptor or memory is left to open a file with. Nothing was changed, nothing is wrong with the disk, and it is tried again. */
export class ResourcesScarce extends Data.TaggedError("ResourcesScarce")<{
  readonly path: string
  readonly cause: unknown
}> {
  readonly wireCode = "busy" as const
  readonly wireData = { retry_after_ms: 1_000 }

  override get message() {
    return `no file can be opened at ${this.path} for the moment: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}; try again`
  }
}

/** A sync failed, for whatever reason: what it should have covered may be lost, and no later sync would tell. */
export class SyncFailed extends Data.TaggedError("SyncFailed")<{ readonly path: string; readonly cause: unknown }> {
  readonly wireCode = "internal" as const

  override get message() {
    return `${this.path} could not be synced: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

export class WriterClosed extends Data.TaggedError("WriterClosed")<{ readonly path: string }> {
  readonly wireCode = "read_only" as const

  override get message() {
    return `the runelog at ${this.path} is closed`
  }
}

/** There is no data directory at this place. */
export class DataMissing extends Data.TaggedError("DataMissing")<{ readonly path: string }> {
  readonly wireCode = "internal" as const

  override get message() {
    return `there is no data at ${this.path}`
  }
}

export class DirectoryLocked extends Data.TaggedError("DirectoryLocked")<{
  readonly path: string
  readonly pid: number | undefined
}> {
  readonly wireCode = "internal" as const

  override get message() {
    return `${this.path} is in use by ${this.pid === undefined ? "another writer" : `process ${this.pid}`}`
  }
}

/** The file that carries the lock cannot be locked: it is damaged, or the file system does not do it. */
export class GuardUnusable extends Data.TaggedError("GuardUnusable")<{
  readonly path: string
  readonly reason: string
}> {
  readonly wireCode = "internal" as const

  override get message() {
    return `${this.path} cannot be locked: ${this.reason}; if no server runs on this data, remove the file, else move the data to a file system that has locks`
  }
}

/** The file is of a format this version does not read. */
export class FormatUnsupported extends Data.TaggedError("FormatUnsupported")<{
  readonly file: string
  readonly version: number
  readonly supported: number
}> {
  readonly wireCode = "read_only" as const

  override get message() {
    return `${this.file} has format version ${this.version}; this build reads version ${this.supported}`
  }
}

/** Something lies in the data directory that the engine did not put there. */
export class ForeignFile extends Data.TaggedError("ForeignFile")<{ readonly file: string }> {
  readonly wireCode = "read_only" as const

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
  readonly wireCode = "read_only" as const

  override get message() {
    return `${this.file} is damaged at byte ${this.offset}: ${this.reason}`
  }
}

export class JournalCorrupt extends Data.TaggedError("JournalCorrupt")<{
  readonly file: string
  readonly offset: number
  readonly reason: string
}> {
  readonly wireCode = "read_only" as const

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
  readonly wireCode = "bad_request" as const

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
  readonly wireCode = "bad_request" as const

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
  | DiskFailed
  | ResourcesScarce

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
  | ResourcesScarce

export type OpenError =
  | DirectoryLocked
  | FormatUnsupported
  | ForeignFile
  | JournalCorrupt
  | DiskFull
  | DiskFailed
  | WriterPoisoned
  | LimitInvalid
  | GuardUnusable
  | ResourcesScarce

/** A limit was set to something the engine cannot work with. */
export class LimitInvalid extends Data.TaggedError("LimitInvalid")<{
  readonly name: string
  readonly value: number
  readonly reason: string
}> {
  readonly wireCode = "internal" as const

  override get message() {
    return `limit ${this.name} cannot be ${this.value}: ${this.reason}`
  }
}

/** For `catch` behind a sync. One that could not begin has lost nothing. */
export const syncFailed =
  (path: string) =>
  (cause: unknown): never => {
    throw isUnopened(cause) ? cause : new SyncFailed({ path, cause })
  }

/** The disk has no room, whoever counts it: the file system or a quota. */
export const isFull = (error: unknown): boolean => codeOf(error) === "ENOSPC" || codeOf(error) === "EDQUOT"

const scarceCodes: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"])
/** What is done to a file that is open, or in place of one: after a failure, what is in it is not known. */
const changes: ReadonlySet<string | undefined> = new Set(["write", "fdatasync", "fsync", "ftruncate", "rename"])
/** What comes before a file is open: a failure has changed nothing. */
const beginnings: ReadonlySet<string | undefined> = new Set(["open", "opendir", "scandir", "lstat", "mkdir"])

/** Descriptors or memory ran out before anything was done; that says nothing about the disk. */
export const isScarce = (error: unknown): boolean => scarceCodes.has(codeOf(error)) && !changes.has(syscallOf(error))

/** The call failed before it touched what a file holds, for whatever reason: nothing that was written is in doubt. */
export const isUnopened = (error: unknown): boolean =>
  isScarce(error) || (codeOf(error) !== undefined && beginnings.has(syscallOf(error)))

/** Why there is no room for an append, for as long as it lasts. */
export type NoRoom = DiskFull | DiskFailed | ResourcesScarce

/** What an error of the system means to whoever wants to append. */
export const noRoomOf = (error: unknown, path: string): NoRoom => {
  if (error instanceof DiskFull) return error
  if (isFull(error)) return new DiskFull({ path, reason: (error as Error).message })
  return isScarce(error) ? new ResourcesScarce({ path, cause: error }) : new DiskFailed({ path, cause: error })
}

/** An error of the system, with a meaning; anything else as it is. */
export const asDiskError = (error: unknown, path: string): unknown =>
  codeOf(error) === undefined ? error : noRoomOf(error, path)
