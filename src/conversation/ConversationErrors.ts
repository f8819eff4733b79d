// What a command to a conversation can end in besides success. Codes are those of the wire.
import * as Data from "effect/Data"
import type { Refusal } from "../machine/decide/Decide.ts"

const told = (cause: unknown): string => (cause instanceof Error ? cause.message : typeof cause)

/** The machine said no. Nothing was written. */
export class CommandRefused extends Data.TaggedError("CommandRefused")<{
  readonly refusal: Refusal
  readonly command: string
}> {
  override get message() {
    return this.refusal.message
  }
}

/** Too many commands wait. Nothing was written; try again after the given time. */
export class ConversationBusy extends Data.TaggedError("ConversationBusy")<{
  readonly conversation_id: string
  readonly retryAfterMs: number
}> {
  override get message() {
    return `${this.conversation_id} has too many commands waiting`
  }
}

/** The log took no more runes; the conversation is read again from disk at its next use. */
export class LogRefused extends Data.TaggedError("LogRefused")<{
  readonly conversation_id: string
  readonly cause: unknown
}> {
  override get message() {
    return `the log refused the runes of ${this.conversation_id}: ${told(this.cause)}`
  }
}

/** The conversation has left memory; whoever comes next loads it again. */
export class ActorRetired extends Data.TaggedError("ActorRetired")<{ readonly conversation_id: string }> {
  override get message() {
    return `${this.conversation_id} has left memory`
  }
}

/** The server is stopping. Nothing was written. */
export class RuntimeClosed extends Data.TaggedError("RuntimeClosed")<{ readonly conversation_id: string }> {
  override get message() {
    return `${this.conversation_id} takes no more commands: the server is stopping`
  }
}

export class ConversationUnknown extends Data.TaggedError("ConversationUnknown")<{ readonly conversation_id: string }> {
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
  override get message() {
    const what = `event ${this.event_id} of ${this.conversation_id} is ${this.kind}, version ${this.schema_version}`
    return `${what}, which this build does not know: the conversation is read-only here; use the build that wrote it`
  }
}

export type LoadError = ConversationUnknown | ConversationUnreadable | RuntimeClosed
export type SubmitError = CommandRefused | ConversationBusy | LogRefused | LoadError
