/**
 * The protocol as a client sees it: fields of every operation, derived from the table of operations; answers; and the
 * frames that are pushed. Types only, but for the names of the operations that change nothing.
 */
import type * as Brand from "effect/Brand"
import type { AnyRune } from "../rune/Rune.ts"
import type { WireError } from "../wire/Codes.ts"
import type { FieldsOf, OperationName } from "../wire/Operations.ts"

export type { ErrorCode, WireError } from "../wire/Codes.ts"
export type { OperationName, View } from "../wire/Operations.ts"
export type { AnyRune }

/** Ids are branded inside; to a client they are strings. */
type Plain<T> = unknown extends T
  ? T
  : T extends Brand.Brand<string>
    ? string
    : T extends object
      ? { readonly [K in keyof T]: Plain<T[K]> }
      : T

export type Fields<Op extends OperationName> = Plain<FieldsOf<Op>>

/** Operations that change nothing: they take no idempotency key. */
export const readingOperations: ReadonlySet<string> = new Set([
  "conversation.list",
  "conversation.get",
  "approval.list",
  "agent.list",
  "subscribe",
  "unsubscribe",
  "attention.subscribe",
  "attention.list",
  "harness.list",
  "stats"
] satisfies ReadonlyArray<OperationName>)

export interface UsageTotals {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cached_tokens?: number
  readonly reasoning_tokens?: number
  readonly usd?: number
}

export interface ConversationItem {
  readonly conversation_id: string
  readonly title: string | null
  readonly state: string
  readonly labels: Readonly<Record<string, string>>
  readonly created_ms: number
  readonly updated_ms: number
  readonly last_event_id: number
  readonly attention: unknown
  readonly turns: number
  readonly usage: UsageTotals
}

export interface ApprovalItem {
  readonly conversation_id: string
  readonly call_id: string
  readonly agent_id: string | null
  readonly tool_name: string
  readonly arguments: unknown
  readonly arguments_hash: string
  readonly policy_reason: string
  /** The agents from the root to the one that asks, by id and by name. */
  readonly agent_path?: ReadonlyArray<string>
  readonly agent_names?: ReadonlyArray<string>
  readonly shown_as?: {
    readonly title: string
    readonly detail?: string
    readonly diff?: string
    readonly workspace?: string
    readonly roots?: ReadonlyArray<string>
    readonly network?: boolean
    /** Where a tool that is not built in comes from, and the hash of what it said it is. */
    readonly origin?: string
    readonly definition?: string
  } | null
  readonly asked_ms: number | null
  readonly expires_ms: number | null
  readonly choices: ReadonlyArray<string>
  /** What allowing it for longer would be written down as. */
  readonly learns?: { readonly session?: unknown; readonly rule?: unknown } | null
}

export interface AgentItem {
  readonly agent_id: string
  readonly role: string
  readonly name?: string | null
  readonly model: string
  readonly parent_id?: string | null
  readonly status: string
  readonly doing: unknown
  readonly turn_id: string | null
  readonly turn_status: string | null
  readonly queued: number
  readonly turns: number
  readonly tool_calls: number
  readonly usage: UsageTotals
}

export interface ConversationSummary extends ConversationItem {
  readonly reason?: string | null
  readonly workspace: string | null
  readonly root_agent_id: string | null
  readonly agents: ReadonlyArray<AgentItem>
  readonly pending_approvals: ReadonlyArray<ApprovalItem>
  readonly working: boolean
  readonly tool_calls: number
  readonly cost_usd: number
  /** The goal that is pursued, or was last. */
  readonly plan: PlanItem | null
}

export interface PlanItem {
  readonly plan_id: string
  readonly status: string
  readonly goal: string
  /** Goes up with every plan that is handed in; a yes or no says which one it is about. */
  readonly revision: number
  readonly tasks: ReadonlyArray<Readonly<Record<string, unknown>>>
}

export interface OpenToolCall {
  readonly call_id: string
  readonly tool_name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

export interface Changed {
  readonly event_id: number
}

export interface Items<Item> {
  readonly items: ReadonlyArray<Item>
}

interface KnownAnswers {
  readonly "conversation.create": Changed & { readonly conversation_id: string; readonly root_agent_id: string }
  readonly "conversation.list": Items<ConversationItem> & { readonly next_cursor?: string }
  readonly "conversation.get": ConversationSummary
  readonly "conversation.fork": Changed & { readonly conversation_id: string }
  readonly "message.post": Changed & { readonly turn_id?: string; readonly queued?: number }
  readonly "goal.submit": Changed & { readonly conversation_id: string; readonly plan_id: string }
  readonly "approval.list": Items<ApprovalItem>
  readonly "agent.spawn": Changed & { readonly agent_id: string }
  readonly "agent.list": Items<AgentItem>
  readonly "attention.list": Items<AttentionItem>
  readonly "harness.list": Items<unknown>
  readonly "tool.register": Changed & {
    readonly tools: ReadonlyArray<string>
    /** Calls of these tools that were asked for and are not over. */
    readonly open: ReadonlyArray<OpenToolCall>
    /** Those of them that have started and wait for their result. */
    readonly waiting: ReadonlyArray<OpenToolCall & { readonly attempt: number }>
  }
  readonly subscribe: { readonly sub: string; readonly head: number; readonly since_ms?: number }
  readonly unsubscribe: Readonly<Record<string, never>>
  readonly "attention.subscribe": { readonly sub: string }
  readonly stats: Readonly<Record<string, unknown>>
}

export type Answer<Op extends OperationName> = Op extends keyof KnownAnswers ? KnownAnswers[Op] : Changed

export interface AttentionItem {
  readonly conversation_id: string
  readonly [field: string]: unknown
}

export interface Gap {
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
  readonly text: string
}

/** What a subscription brings, one of these at a time. */
export type TailItem =
  | { readonly rune: AnyRune }
  | { readonly gap: Gap }
  | { readonly caught_up: { readonly head: number } }
  | { readonly live: Live }
  | { readonly event: ViewEvent }

export interface PushedFrame {
  readonly sub: string
  readonly rune?: AnyRune
  readonly gap?: Gap
  readonly caught_up?: { readonly head: number }
  readonly live?: Live
  readonly event?: ViewEvent
  readonly attention?: AttentionItem
  /** The subscription ended; nothing more comes of it. */
  readonly error?: WireError
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
  readonly limits?: Readonly<Record<string, number>>
}
