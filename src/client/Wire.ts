/**
 * The protocol as a client sees it: fields and answers of every operation, derived from their tables; and the frames that
 * are pushed. Types only.
 */
import type * as Brand from "effect/Brand"
import type { Kind } from "../rune/Kinds.ts"
import type { AnyRune } from "../rune/Rune.ts"
import type * as answer from "../wire/Answers.ts"
import type { WireError } from "../wire/Codes.ts"
import type * as frames from "../wire/Frames.ts"
import type { AnswerOf, FieldsOf, OperationName } from "../wire/Operations.ts"

export type { ErrorCode, WireError } from "../wire/Codes.ts"
export type { OperationName, View } from "../wire/Operations.ts"
export type { AnyRune, Kind }

/** Ids are branded inside; to a client they are strings. */
type Plain<T> = unknown extends T
  ? T
  : T extends Brand.Brand<string>
    ? string
    : T extends object
      ? { readonly [K in keyof T]: Plain<T[K]> }
      : T

export type Fields<Op extends OperationName> = Plain<FieldsOf<Op>>

export type UsageTotals = (typeof answer.UsageTotals)["Encoded"]
export type ConversationItem = (typeof answer.ConversationItem)["Encoded"]
export type ConversationSummary = (typeof answer.ConversationSummary)["Encoded"]
export type ConversationPrompt = (typeof answer.ConversationPrompt)["Encoded"]
export type ApprovalItem = (typeof answer.ApprovalItem)["Encoded"]
export type AgentItem = (typeof answer.AgentItem)["Encoded"]
export type PlanItem = (typeof answer.PlanItem)["Encoded"]
export type OpenToolCall = (typeof answer.OpenToolCall)["Encoded"]
export type Changed = (typeof answer.Changed)["Encoded"]
export type AttentionItem = (typeof answer.AttentionItem)["Encoded"]

export interface Items<Item> {
  readonly items: ReadonlyArray<Item>
}

export type Answer<Op extends OperationName> = AnswerOf<Op>

/** Something that began to wait for a person, changed, or is settled. */
export type AttentionChange = AttentionItem & { readonly change: "raised" | "changed" | "resolved" }

export interface Gap {
  /** Only where all conversations are followed. */
  readonly conversation_id?: string
  readonly from: number
  readonly to: number
  readonly reason: string
}

/** What a rune means in a derived view. */
export interface ViewEvent {
  /** `rune.index`; in the view `state_events` it is called `eventId`. */
  readonly event_id?: string
  readonly eventId?: string
  readonly [field: string]: unknown
}

export interface Live {
  /** Only where all conversations are followed. */
  readonly conversation_id?: string
  readonly agent_id: string
  readonly turn_id: string
  readonly request_id: string
  /** Characters of the answer before this text. */
  readonly offset: number
  readonly text: string
}

/** One conversation does not come, or not from where it was asked for; only where all conversations are followed. */
export interface ConversationFailure {
  readonly conversation_id: string
  readonly error: WireError
}

/** What a subscription brings, one of these at a time. */
export type TailItem =
  | { readonly rune: AnyRune }
  | { readonly gap: Gap }
  | { readonly caught_up: { readonly head: number } }
  | { readonly live: Live }
  | { readonly event: ViewEvent }
  | { readonly failed: ConversationFailure }

/** What the terminal of an outside agent shows, in base64; or that it is over. */
export type TerminalFrame = (typeof frames.TerminalFrame)["Encoded"]

export interface PushedFrame {
  readonly sub: string
  readonly rune?: AnyRune
  readonly gap?: Gap
  readonly caught_up?: { readonly head: number }
  readonly live?: Live
  readonly event?: ViewEvent
  readonly attention?: AttentionChange
  readonly terminal?: TerminalFrame
  /** With `conversation_id` about that conversation alone; else the subscription ended, and nothing more comes of it. */
  readonly error?: WireError
  readonly conversation_id?: string
}

export interface AnswerFrame {
  readonly id: string | null
  readonly ok?: unknown
  readonly error?: WireError
}

export interface Welcome {
  readonly protocol: number
  readonly server: string
  readonly principal: string
  /** What the principal may do; a server before roles says nothing. */
  readonly role?: "viewer" | "operator" | "admin"
  readonly limits?: Readonly<Record<string, number>>
}
