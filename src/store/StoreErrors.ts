// What can go wrong in the store beyond what the engine says, each with the facts a person needs to act.
import * as Data from "effect/Data"
import { codeOf } from "#runelog/disk/DiskFault.ts"
import { JournalCorrupt, LogDamaged, ResourcesScarce, WriterClosed, WriterPoisoned } from "#runelog/RunelogErrors.ts"
import type { WireCode } from "../contract/WireFailure.ts"

/** There is no such conversation, neither live nor archived. */
export class ConversationUnknown extends Data.TaggedError("ConversationUnknown")<{ readonly conversationId: string }> {
  readonly wireCode = "not_found" as const satisfies WireCode
  readonly wireData = { session_error: "session_not_found" }

  override get message() {
    return `there is no conversation ${this.conversationId}`
  }
}

/** The rune cannot be written: it would not be understood when it is read back. Nothing was appended. */
export class RuneInvalid extends Data.TaggedError("RuneInvalid")<{
  readonly conversationId: string
  readonly eventId: number
  readonly kind: string
  readonly reason: string
}> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `rune ${this.eventId} (${this.kind}) of ${this.conversationId} cannot be written: ${this.reason}`
  }
}

/** Too many appends of one conversation wait for the disk. Nothing of this one was written. */
export class AppendsWaiting extends Data.TaggedError("AppendsWaiting")<{
  readonly conversationId: string
  readonly waitingMax: number
}> {
  readonly wireCode = "busy" as const satisfies WireCode

  override get message() {
    return `${this.waitingMax} appends of ${this.conversationId} are already waiting for the disk`
  }
}

/** The log holds an intact entry that is not a rune. */
export class RuneUnreadable extends Data.TaggedError("RuneUnreadable")<{
  readonly conversationId: string
  readonly eventId: number
  readonly reason: string
}> {
  readonly wireCode = "read_only" as const satisfies WireCode

  override get message() {
    return `event ${this.eventId} of ${this.conversationId} is not a rune: ${this.reason}`
  }
}

export class BlobUnknown extends Data.TaggedError("BlobUnknown")<{ readonly sha256: string }> {
  readonly wireCode = "not_found" as const satisfies WireCode

  override get message() {
    return `there is no blob ${this.sha256}`
  }
}

/** The bytes of a blob are not those it is named after. */
export class BlobDamaged extends Data.TaggedError("BlobDamaged")<{
  readonly sha256: string
  readonly file: string
  readonly reason: string
}> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `blob ${this.sha256} is damaged: ${this.reason} (${this.file})`
  }
}

export class BlobTooLarge extends Data.TaggedError("BlobTooLarge")<{
  readonly bytes: number
  readonly bytesMax: number
}> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `a blob of ${this.bytes} bytes or more exceeds the limit of ${this.bytesMax}`
  }
}

/** There is no more room for outputs that need not be kept. */
export class BlobsFull extends Data.TaggedError("BlobsFull")<{ readonly bytesMax: number }> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `the total size of all blobs has reached the limit of ${this.bytesMax} bytes`
  }
}

/** An archive cannot be read, or is not what it claims to be. */
export class ArchiveDamaged extends Data.TaggedError("ArchiveDamaged")<{
  readonly conversationId: string
  readonly file: string
  readonly reason: string
}> {
  readonly wireCode = "read_only" as const satisfies WireCode

  override get message() {
    return `the archive of ${this.conversationId} is damaged: ${this.reason} (${this.file})`
  }
}

/** The archive was written by a newer build. */
export class ArchiveUnsupported extends Data.TaggedError("ArchiveUnsupported")<{
  readonly file: string
  readonly version: number
  readonly supported: number
}> {
  readonly wireCode = "read_only" as const satisfies WireCode

  override get message() {
    return `${this.file} has archive version ${this.version}; this build reads version ${this.supported}`
  }
}

/** The conversation is not in the state that the operation needs. */
export class NotArchivable extends Data.TaggedError("NotArchivable")<{
  readonly conversationId: string
  readonly reason: string
}> {
  readonly wireCode = "invalid_state" as const satisfies WireCode

  override get message() {
    return `${this.conversationId} cannot be archived: ${this.reason}`
  }
}

export class ForkInvalid extends Data.TaggedError("ForkInvalid")<{
  readonly conversationId: string
  readonly atEventId: number
  readonly reason: string
}> {
  readonly wireCode = "bad_request" as const satisfies WireCode

  override get message() {
    return `${this.conversationId} cannot be forked at event ${this.atEventId}: ${this.reason}`
  }
}

/** What was to be imported is not a conversation. Nothing of it was kept. */
export class ImportInvalid extends Data.TaggedError("ImportInvalid")<{
  readonly line: number
  readonly reason: string
}> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    return `line ${this.line} cannot be imported: ${this.reason}`
  }
}

export class ListInvalid extends Data.TaggedError("ListInvalid")<{ readonly field: string; readonly reason: string }> {
  readonly wireCode = "bad_request" as const satisfies WireCode

  override get message() {
    return `${this.field}: ${this.reason}`
  }
}

/** No append of this process can succeed after this one. */
export const endsAppends = (error: unknown): boolean =>
  error instanceof WriterPoisoned ||
  error instanceof WriterClosed ||
  error instanceof JournalCorrupt ||
  error instanceof LogDamaged

/** An error has few causes behind each other. */
const causesMax = 4

/** Descriptors ran out for a moment, whatever that kept from being done. */
export const isScarce = (error: unknown): boolean => {
  for (let cause = error, depth = 0; depth < causesMax; depth++) {
    if (cause instanceof ResourcesScarce || codeOf(cause) === "EMFILE" || codeOf(cause) === "ENFILE") return true
    // The cause of a poisoned writer is why it failed; a later try cannot succeed.
    if (!(cause instanceof Error) || cause instanceof WriterPoisoned) return false
    cause = cause.cause
  }
  return false
}
