// Stored conversations as the door sees them: listing, reading by cursor, archiving, restoring, forking. Joins the store
// with the conversations in memory, so that what leaves the log is not spoken to meanwhile.

import { CommandRefused } from "../contract/CommandErrors.ts"
import { beginCopy } from "../machine/decide/Copying.ts"
import { evolve } from "../machine/evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type ConversationId, isConversationId, makeAgentId, makeRuneId } from "../rune/Ids.ts"
import type { Rune, RuneDraft } from "../rune/Rune.ts"
import type { ListRequest } from "../store/catalog/CatalogList.ts"
import { cursorSince } from "../store/runes/Since.ts"
import type { Store } from "../store/Store.ts"
import { ConversationUnknown } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"
import type { Conversations } from "./Conversations.ts"
import { type EndedCall, endedCall } from "./EndedCall.ts"
import type { Page, RawPage, RawRequest } from "./Reading.ts"
import { stateAt } from "./StateAt.ts"
import { type WindowFigures, windowFigures } from "./Window.ts"

export interface ConversationStoreParts {
  readonly store: Store
  readonly conversations: Conversations
  readonly ids: IdSource
  readonly nowMs: () => number
}

interface Idempotency {
  readonly key: string
  readonly hash: string
}

interface ForkQuery {
  readonly from: string
  readonly atEventId: number
  readonly conversationId: string
  /** What the original had under way goes on in the copy too; else it is over there. */
  readonly isContinued?: boolean
  readonly idempotency?: Idempotency
}

interface Forked {
  readonly conversation_id: string
  readonly event_id: number
}

const LIST_PAGE = 200
const NO_HASH = "0".repeat(64)

export class ConversationStore {
  private readonly parts: ConversationStoreParts

  constructor(parts: ConversationStoreParts) {
    this.parts = parts
  }

  list(query: Omit<ListRequest, "state"> & { readonly state?: string }) {
    // A state that does not exist is refused by the store.
    return this.parts.store.listNow(query as ListRequest)
  }

  async *conversations(): AsyncGenerator<string> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.list({ limit: LIST_PAGE, ...(cursor === undefined ? {} : { cursor }) })
      for (const { conversation_id: id } of page.items) yield id
      if (page.next_cursor === undefined) return
      cursor = page.next_cursor
    }
  }

  /** Conversations that have something under way, or that need a person. */
  async waiting(): Promise<ReadonlyArray<string>> {
    const { catalog } = this.parts.store
    await catalog.flush()
    return [...new Set([...catalog.needing(), ...catalog.unfinished()])]
  }

  /** Conversations in which something happened at or after a time, the newest first. */
  async changedSince(sinceMs: number): Promise<ReadonlyArray<string>> {
    const { catalog } = this.parts.store
    await catalog.flush()
    return catalog.changedSince(sinceMs)
  }

  /** The cursor in front of the first rune at or after a time. */
  cursorSince(conversationId: string, sinceMs: number): Promise<number> {
    return cursorSince(this.parts.store.runes, conversationId, sinceMs)
  }

  /** What happened in one conversation, or in all, since a time. */
  async figuresSince(sinceMs: number, conversationId?: string): Promise<WindowFigures> {
    const { store } = this.parts
    if (conversationId !== undefined) {
      if ((await this.head(conversationId)) === 0) throw new ConversationUnknown({ conversation_id: conversationId })
      return windowFigures(store, { conversations: [conversationId], sinceMs, leftOut: 0 })
    }
    const changed = await this.changedSince(sinceMs)
    const conversations = changed.slice(0, limits.windowConversationsMax)
    return windowFigures(store, { conversations, sinceMs, leftOut: changed.length - conversations.length })
  }

  /** Of a conversation that can only be read, the end is an error that says so: more was there, or was to come. */
  async read(
    conversationId: string,
    request: { readonly after: number; readonly bytesMax: number; readonly visibilityMax: "public" | "internal" }
  ): Promise<Page> {
    const { runes } = this.parts.store
    const page = await runes.readBytesNow(conversationId, request)
    if (page.next > request.after) return page
    const refusal = await runes.refusalNow(conversationId)
    if (refusal !== undefined) throw refusal
    return page
  }

  readRaw(conversationId: string, request: RawRequest): Promise<RawPage | undefined> {
    return this.parts.store.runes.readRawNow(conversationId, request)
  }

  /** The newest event; 0 of what does not exist. Of what is damaged from its first event on, an error. */
  async head(conversationId: string): Promise<number> {
    if (!isConversationId(conversationId)) return 0
    const { runes } = this.parts.store
    const head = await runes.headNow(conversationId)
    const refusal = head === 0 ? await runes.refusalNow(conversationId) : undefined
    if (refusal?._tag === "LogDamaged") throw refusal
    return head
  }

  /** How a call ended, as the log tells from an event on; nothing when it does not know the call. */
  endedCall(conversationId: string, callId: string, from: number): Promise<EndedCall | undefined> {
    return endedCall(this.parts.store.runes.pagesNow(conversationId, { after: from - 1 }), callId)
  }

  /** All runes, page by page. */
  pages(conversationId: string) {
    return this.parts.store.runes.pagesNow(conversationId, { after: 0 })
  }

  /** The state right after an event that is durable. */
  async stateAt(conversationId: string, atEventId: number): Promise<ConversationState> {
    const head = await this.head(conversationId)
    if (head === 0) throw new ConversationUnknown({ conversation_id: conversationId })
    const pages = this.parts.store.runes.pagesNow(conversationId, { after: 0 })
    return stateAt(conversationId as ConversationId, pages, Math.min(atEventId, head))
  }

  watch(conversationId: string, listener: () => void): () => void {
    return this.parts.store.runelog.watch(conversationId, listener)
  }

  /** Seals, records, and moves the conversation out of the log. */
  async archive(conversationId: string, idempotency?: Idempotency): Promise<{ readonly event_id: number }> {
    const { conversations, store } = this.parts
    const { session } = await conversations.state(conversationId)
    const prepared =
      session.status === "closed"
        ? await store.archive.prepare(conversationId)
        : { location: store.archive.location(conversationId), hash: NO_HASH }
    const { event_id } = await conversations.submit(conversationId, { _tag: "Archive", ...prepared }, idempotency)
    const isArchived = (await conversations.state(conversationId)).session.status === "archived"
    if (isArchived) {
      conversations.unload(conversationId as ConversationId)
      await store.archive.commit(conversationId)
    }
    return { event_id }
  }

  /** Brings the conversation back into the log, where it can be spoken to again. */
  async restore(conversationId: string, idempotency?: Idempotency): Promise<{ readonly event_id: number }> {
    const { conversations, store } = this.parts
    const { session } = await conversations.state(conversationId)
    if (session.status === "archived") await store.restore(conversationId)
    const command = { _tag: "Restore", root_agent_id: makeAgentId(this.parts.ids) } as const
    const { event_id } = await conversations.submit(conversationId, command, idempotency)
    await store.archive.forget(conversationId)
    return { event_id }
  }

  /** A new conversation from another as it was at an event; what was under way then is over in the copy, unless asked for. */
  async fork(query: ForkQuery): Promise<Forked> {
    const { ids, nowMs, store } = this.parts
    const { atEventId, from, idempotency, isContinued = false } = query
    const conversationId = query.conversationId as ConversationId
    const repeated = idempotency === undefined ? undefined : await this.forkedBefore(conversationId, idempotency)
    if (repeated !== undefined) return repeated
    if ((await this.head(from)) === 0) throw new ConversationUnknown({ conversation_id: from })
    const { conversations } = this.parts
    conversations.checkWorkspace((await conversations.state(from)).session.config, "Fork")
    const state = emptyConversation(conversationId)
    const { eventId } = await store.fork({
      from: from as ConversationId,
      atEventId,
      conversationId,
      ids,
      nowMs: nowMs(),
      observe: (rune) => void evolve(state, rune as Rune),
      finish: () => this.beginningOf(state, isContinued ? "continued" : "ended"),
      ...(idempotency === undefined ? {} : { idempotency })
    })
    if (isContinued) await conversations.load(conversationId)
    return { conversation_id: conversationId, event_id: eventId }
  }

  /** The same key made this conversation before. */
  private async forkedBefore(conversationId: ConversationId, { hash, key }: Idempotency): Promise<Forked | undefined> {
    if ((await this.head(conversationId)) === 0) return undefined
    const { runes } = this.parts.store
    // The last rune of the copy carries the key too; what came later belongs to no answer.
    let eventId = 0
    for await (const page of runes.pagesNow(conversationId, { after: 0 })) {
      const marked = page.runes.findLast((rune) => rune.idempotency_key === key && rune.idempotency_hash === hash)
      eventId = marked?.event_id ?? eventId
    }
    if (eventId > 0) return { conversation_id: conversationId, event_id: eventId }
    const refusal = { code: "idempotency_conflict", message: "the key was used for another command" } as const
    throw new CommandRefused({ refusal, command: "Fork" })
  }

  private beginningOf(state: ConversationState, work: "ended" | "continued"): ReadonlyArray<RuneDraft> {
    if (state.session.root_agent_id === null) {
      const message = `at event ${state.head} nobody is there yet who could be spoken to; fork at a later event`
      throw new CommandRefused({ refusal: { code: "bad_request", message }, command: "Fork" })
    }
    const { ids, nowMs } = this.parts
    const around = { at_ms: nowMs(), runeId: () => makeRuneId(ids) }
    return beginCopy(state, { ...around, reason: "forked", work, root_agent_id: makeAgentId(ids) })
  }
}
