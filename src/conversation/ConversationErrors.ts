// Failures of a conversation: of loading it, and of a command to it. Each class names the code a client is told.
import * as Data from "effect/Data"
import type { CommandRefused, RuntimeClosed } from "../contract/CommandErrors.ts"
import { isWireFailure, type WireCode, type WireFailure, type WireFailures } from "../contract/WireFailure.ts"
import { isScarce } from "../store/StoreErrors.ts"

const scarceRetry = { retry_after_ms: 1_000 }

/** No descriptor was free: nothing is wrong with the log, and a client may try again. */
const scarceCode = (cause: unknown) => (isScarce(cause) ? ("busy" as const) : ("read_only" as const))

const scarceData = (cause: unknown, reason: string) => (isScarce(cause) ? scarceRetry : { reason })

const told = (cause: unknown): string => (cause instanceof Error ? cause.message : typeof cause)

/** Too many commands wait. Nothing was written; try again after the given time. */
export class ConversationBusy extends Data.TaggedError("ConversationBusy")<{
  readonly conversation_id: string
  readonly retryAfterMs: number
}> {
  readonly wireCode = "busy" as const satisfies WireCode

  get wireData() {
    return { retry_after_ms: this.retryAfterMs }
  }

  override get message() {
    return `${this.conversation_id} has too many commands waiting`
  }
}

/** The log took no more runes; the conversation is read again from disk at its next use. */
export class LogRefused extends Data.TaggedError("LogRefused")<{
  readonly conversation_id: string
  readonly cause: unknown
}> {
  get wireCode() {
    return scarceCode(this.cause) satisfies WireCode
  }

  get wireData() {
    return scarceData(this.cause, this.message)
  }

  override get message() {
    return `the log refused the runes of ${this.conversation_id}: ${told(this.cause)}`
  }
}

/** The conversation has left memory; whoever comes next loads it again. */
export class ActorRetired extends Data.TaggedError("ActorRetired")<{ readonly conversation_id: string }> {
  readonly wireCode = "busy" as const satisfies WireCode

  override get message() {
    return `${this.conversation_id} was evicted from memory`
  }
}

export class ConversationUnknown extends Data.TaggedError("ConversationUnknown")<{ readonly conversation_id: string }> {
  readonly wireCode = "not_found" as const satisfies WireCode
  readonly wireData = { session_error: "session_not_found" }

  override get message() {
    return `there is no conversation ${this.conversation_id}`
  }
}

/** The stored runes cannot be read, or do not make sense to this build. */
export class ConversationUnreadable extends Data.TaggedError("ConversationUnreadable")<{
  readonly conversation_id: string
  /** The last event that could be read. */
  readonly after: number
  readonly cause: unknown
}> {
  get wireCode() {
    return scarceCode(this.cause) satisfies WireCode
  }

  get wireData() {
    return scarceData(this.cause, this.message)
  }

  override get message() {
    return `${this.conversation_id} cannot be read beyond event ${this.after}: ${told(this.cause)}`
  }
}

/** A newer build wrote what this one cannot fold. Going on from a state that lacks it could undo what was decided. */
export class RuneNewer extends Data.TaggedError("RuneNewer")<{
  readonly conversation_id: string
  readonly event_id: number
  readonly kind: string
  readonly schema_version: number
}> {
  readonly wireCode = "internal" as const satisfies WireCode

  override get message() {
    const what = `event ${this.event_id} of ${this.conversation_id} is ${this.kind}, version ${this.schema_version}`
    return `${what}, which this build does not know: the conversation is read-only here; use the build that wrote it`
  }
}

export type LoadError = WireFailures<ConversationUnknown | ConversationUnreadable | RuntimeClosed>
export type SubmitError = WireFailures<CommandRefused | ConversationBusy | LogRefused | ActorRetired | LoadError>

/** No descriptor was free for something outside the log. */
export class DescriptorsScarce extends Data.TaggedError("DescriptorsScarce")<{ readonly cause: Error }> {
  readonly wireCode = "busy" as const satisfies WireCode
  readonly wireData = scarceRetry

  override get message() {
    return this.cause.message
  }
}

/** The failure a client is told about; nothing for a defect. */
export const failureOf = (error: unknown): WireFailure | undefined => {
  const isTold = isWireFailure(error) && error.wireCode !== "internal"
  if (!isTold && error instanceof Error && isScarce(error)) return new DescriptorsScarce({ cause: error })
  return isWireFailure(error) ? error : undefined
}
