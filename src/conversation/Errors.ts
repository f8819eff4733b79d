// What a command to a conversation can end in besides success. Codes are those of the wire.
import * as Data from "effect/Data"
import type { Refusal } from "../machine/Decide.ts"

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
    return `the log refused the runes of ${this.conversation_id}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

export class ConversationUnknown extends Data.TaggedError("ConversationUnknown")<{ readonly conversation_id: string }> {
  override get message() {
    return `there is no conversation ${this.conversation_id}`
  }
}

/** The stored runes do not make sense to this build. */
export class ConversationUnreadable extends Data.TaggedError("ConversationUnreadable")<{
  readonly conversation_id: string
  readonly event_id: number
  readonly cause: unknown
}> {
  override get message() {
    return `rune ${this.event_id} of ${this.conversation_id} cannot be read: ${String(this.cause)}`
  }
}

export type SubmitError = CommandRefused | ConversationBusy | LogRefused
export type LoadError = ConversationUnknown | ConversationUnreadable
