// What an operation may use: the conversations of this process, the conversation store of stored ones, and who asks. Handlers see
// nothing of sockets; the same handler answers a WebSocket frame, an HTTP request and a test.

import * as Context from "effect/Context"
import type { Attention } from "../../attention/Attention.ts"
import type { MediaPort } from "../../contract/Blobs.ts"
import type { PromptGate } from "../../contract/CallGates.ts"
import type { OutsideAgents } from "../../contract/OutsideAgents.ts"
import type { RemoteTools } from "../../contract/RemoteTools.ts"
import type { Approvals } from "../../conversation/Approvals.ts"
import type { Conversations } from "../../conversation/Conversations.ts"
import type { EndedCall } from "../../conversation/EndedCall.ts"
import type { Policies } from "../../conversation/Policies.ts"
import type { PromptView } from "../../conversation/PromptView.ts"
import type { Page, RawPage, RawRequest } from "../../conversation/Reading.ts"
import type { Undo } from "../../conversation/Undo.ts"
import type { WindowFigures as WindowSchema } from "../../wire/Answers.ts"
import type { AnswerOf, FieldsOf, Role } from "../../wire/Operations.ts"

type WindowFigures = (typeof WindowSchema)["Encoded"]

export interface Principal {
  readonly name: string
  readonly role: Role
}

/** What only an admin may ask for: who comes in, and whether the server goes on. */
export interface Administration {
  readonly tokens: () => ReadonlyArray<{ readonly name: string; readonly role: Role }>
  /** The new token; nothing when there is one of this name. */
  readonly createToken: (name: string, role: Role) => string | undefined
  /** Whoever came in with it is sent away. False when there is none of this name. */
  readonly removeToken: (name: string) => boolean
  readonly stop: (reason: string) => void
}

/** Where tokens are kept; nothing where only the program that holds the server may change them. */
export class TokenAdministration extends Context.Service<
  TokenAdministration,
  Omit<Administration, "stop"> | undefined
>()("echs/TokenAdministration") {}

/** What the role may see at most; secret runes never leave the process. */
export const visibilityCap = ({ role }: Principal): "public" | "internal" => (role === "viewer" ? "public" : "internal")

export interface ListQuery {
  readonly state?: string
  readonly label?: string
  readonly q?: string
  readonly limit: number
  readonly cursor?: string
}

export interface IdempotencyOf {
  readonly key: string
  /** Of the operation and its body. */
  readonly hash: string
}

export interface ReadRequest {
  readonly after: number
  readonly bytesMax: number
  readonly visibilityMax: "public" | "internal"
}

/** Stored conversations, in memory or not, archived or not. */
export interface ConversationStore {
  readonly list: (query: ListQuery) => Promise<AnswerOf<"conversation.list">>
  /** The ids of all conversations. */
  readonly conversations: () => AsyncIterable<string>
  /** Conversations in which somebody may be waited for. */
  readonly waiting: () => Promise<ReadonlyArray<string>>
  readonly archive: (conversationId: string, idempotency?: IdempotencyOf) => Promise<{ readonly event_id: number }>
  readonly restore: (conversationId: string, idempotency?: IdempotencyOf) => Promise<{ readonly event_id: number }>
  readonly fork: (request: ForkQuery) => Promise<{ readonly conversation_id: string; readonly event_id: number }>
  readonly read: (conversationId: string, request: ReadRequest) => Promise<Page>
  /** The state right after an event. */
  readonly stateAt: (conversationId: string, atEventId: number) => ReturnType<Conversations["state"]>
  /** The same as it lies in the log, in the caller's buffer and unfiltered; nothing when it has to be read as a page. */
  readonly readRaw: (conversationId: string, request: RawRequest) => Promise<RawPage | undefined>
  /** Conversations in which something happened at or after a time. */
  readonly changedSince: (sinceMs: number) => Promise<ReadonlyArray<string>>
  /** The cursor in front of the first rune at or after a time. */
  readonly cursorSince: (conversationId: string, sinceMs: number) => Promise<number>
  /** What happened in one conversation, or in all, since a time. */
  readonly figuresSince: (sinceMs: number, conversationId?: string) => Promise<WindowFigures>
  /** How a call ended, as the log tells from an event on; nothing when it does not know the call. */
  readonly endedCall: (conversationId: string, callId: string, from: number) => Promise<EndedCall | undefined>
  /** The newest durable event; 0 when there is no such conversation. */
  readonly head: (conversationId: string) => Promise<number>
  /** Calls the listener whenever the conversation has new durable runes; returns how to stop. */
  readonly watch: (conversationId: string, listener: () => void) => () => void
}

export interface ForkQuery {
  readonly from: string
  readonly atEventId: number
  /** Of the new conversation. */
  readonly conversationId: string
  /** What the original had under way goes on in the copy too; else it is over there. */
  readonly isContinued?: boolean
  readonly idempotency?: IdempotencyOf
}

/** Where bytes are kept, and what models can be shown. */
export interface AttachmentPort extends MediaPort {
  readonly sight: (model: string) => { readonly images: boolean; readonly files: boolean }
}

export interface OperationContext {
  readonly conversations: Conversations
  readonly conversationStore: ConversationStore
  /** Takes the yes of a person to a call. */
  readonly approvals: Approvals
  /** What waits for a person. */
  readonly attention: Attention["Service"]
  /** Brings files and conversations back. */
  readonly undo: Pick<Undo, "preview" | "restore">
  /** What models are told before and beside the messages. */
  readonly prompts: Pick<PromptView, "show">
  /** The policy of the server; absent where there is none. */
  readonly policies?: Policies
  /** Sixteen random hexadecimal digits. */
  readonly newId: () => string
  readonly defaultModel: () => string
  /** The process, and what holds its commands. */
  readonly about: () => Omit<AnswerOf<"server.info">, "model">
  readonly nowMs: () => number
  /** Figures of the whole process, for `stats`. */
  readonly figures: () => Readonly<Record<string, unknown>>
  /** Tools that clients run; absent where there are none. */
  readonly remoteTools?: RemoteTools
  /** Agents of other programs; absent where there are none. */
  readonly outsideAgents?: OutsideAgents
  readonly administration?: Administration
  /** Keeps images and files that come with messages; absent where none are taken. */
  readonly attachments?: AttachmentPort
  /** Has a say about messages and goals before they are taken. */
  readonly beforePrompt?: PromptGate
  /** Lays out the workspace of the demo and answers with its goal; absent where there is none. */
  readonly prepareDemo?: () => Promise<FieldsOf<"goal.submit">>
  readonly principal: Principal
  /** The connection that asks, known by identity alone; absent where there is none. */
  readonly connection?: object | undefined
  /** Where the question came from: `websocket`, `http`, … */
  readonly channel: string
  readonly idempotency: IdempotencyOf | undefined
}
