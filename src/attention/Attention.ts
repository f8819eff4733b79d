// Attention: everything that waits for a person, in all conversations, in memory or not. Derived from durable runes by one
// projection, for lists and for changes alike. Bounded: too many conversations are counted, not asked. Changes are looked
// for only while somebody follows them.
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import * as RcRef from "effect/RcRef"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RuntimeClosed } from "../contract/CommandErrors.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import type { WireFailure } from "../contract/WireFailure.ts"
import { attempt } from "../conversation/Attempt.ts"
import { ConversationService, StoredConversations } from "../conversation/ConversationService.ts"
import type { ConversationStore } from "../conversation/ConversationStore.ts"
import type { Conversations } from "../conversation/Conversations.ts"
import { approvalItems, attentionSummary } from "../conversation/Summary.ts"
import type { ConversationState } from "../machine/State.ts"
import { limits } from "./AttentionLimits.ts"

export type AttentionItem = ReturnType<typeof attentionSummary>[number]
export type ApprovalItem = ReturnType<typeof approvalItems>[number]

export interface Found<Item> {
  readonly items: ReadonlyArray<Item>
  /** Conversations that were not asked because there are too many. */
  readonly left_out?: number
}

export interface AttentionChange {
  readonly change: "raised" | "changed" | "resolved"
  /** Names the item among all of them. */
  readonly name: string
  readonly item: AttentionItem
}

export interface AttentionParts {
  readonly conversations: {
    readonly state: (conversationId: string) => Promise<ConversationState>
    readonly residentStates: Conversations["residentStates"]
  }
  readonly conversationStore: Pick<ConversationStore, "waiting">
  readonly log: Pick<Log, "write">
}

/** The items of one conversation, as JSON, by their keys. */
type SentItems = Map<string, ReadonlyMap<string, string>>

/** From the first follower to the last. */
interface Watch {
  readonly told: SentItems
  readonly changes: PubSub.PubSub<AttentionChange>
  /** There are conversations to look at. */
  readonly woken: Queue.Queue<void>
}

const byKey = (state: ConversationState): ReadonlyMap<string, string> =>
  new Map(attentionSummary(state).map((item) => [item.key, JSON.stringify(item)]))

const remember = (told: SentItems, conversationId: string, items: ReadonlyMap<string, string>): void => {
  if (items.size === 0) told.delete(conversationId)
  else told.set(conversationId, items)
}

/** What is different from what was told before, which it replaces. */
const changesOf = (
  told: SentItems,
  conversationId: string,
  now: ReadonlyMap<string, string>
): ReadonlyArray<AttentionChange> => {
  const before = told.get(conversationId) ?? new Map<string, string>()
  remember(told, conversationId, now)
  const changed = (change: AttentionChange["change"], key: string, item: string): AttentionChange => ({
    ...{ change, name: `${conversationId} ${key}` },
    item: JSON.parse(item)
  })
  const begun = [...now].filter(([key, item]) => before.get(key) !== item)
  const over = [...before].filter(([key]) => !now.has(key))
  return [
    ...begun.map(([key, item]) => changed(before.has(key) ? "changed" : "raised", key, item)),
    ...over.map(([key, item]) => changed("resolved", key, item))
  ]
}

export class AttentionProjection {
  private readonly parts: AttentionParts
  private readonly shared: RcRef.RcRef<Watch>
  /** Conversations that wait to be looked at, each once. */
  private readonly looking = new Set<string>()
  private watch: Watch | undefined

  private constructor(parts: AttentionParts, shared: RcRef.RcRef<Watch>) {
    this.parts = parts
    this.shared = shared
  }

  static readonly make = (parts: AttentionParts): Effect.Effect<AttentionProjection, never, Scope.Scope> =>
    Effect.gen(function* () {
      const made: AttentionProjection = new AttentionProjection(
        parts,
        yield* RcRef.make({ acquire: Effect.suspend(() => made.begin) })
      )
      return made
    })

  get list(): Effect.Effect<Found<AttentionItem>, WireFailure> {
    return this.collect(attentionSummary)
  }

  get approvals(): Effect.Effect<Found<ApprovalItem>, WireFailure> {
    return this.collect(approvalItems)
  }

  /** Ends when it is known what waits now; the stream has every change from then on, until the scope closes. */
  get changes(): Effect.Effect<Stream.Stream<AttentionChange>, never, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const { changes } = yield* RcRef.get(this.shared)
      return Stream.fromSubscription(yield* PubSub.subscribe(changes))
    })
  }

  /** Something happened in a conversation. */
  notice(conversationId: string): void {
    if (this.watch === undefined || this.looking.has(conversationId)) return
    this.looking.add(conversationId)
    Queue.offerUnsafe(this.watch.woken, undefined)
  }

  private readonly begin: Effect.Effect<Watch, never, Scope.Scope> = Effect.gen({ self: this }, function* () {
    const woken = yield* Queue.sliding<void>(1)
    const changes = yield* Effect.acquireRelease(PubSub.bounded<AttentionChange>(limits.changesMax), PubSub.shutdown)
    const watch: Watch = { told: new Map(), changes, woken }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        this.watch = watch
        this.looking.clear()
      }),
      () =>
        Effect.sync(() => {
          if (this.watch === watch) this.watch = undefined
        })
    )
    const remembered = (state: ConversationState) => {
      remember(watch.told, state.conversation_id, byKey(state))
      return []
    }
    const report = (cause: Cause.Cause<unknown>) => this.report(cause)
    yield* Effect.catchCause(this.collect(remembered, report), report)
    yield* Stream.runForEach(Stream.fromQueue(woken), () => this.lookAtAll(watch)).pipe(Effect.forkScoped)
    return watch
  })

  private lookAtAll(watch: Watch): Effect.Effect<void> {
    const ids = [...this.looking]
    this.looking.clear()
    return Effect.forEach(ids, (id) => this.look(watch, id), { concurrency: limits.lanes, discard: true })
  }

  private look(watch: Watch, conversationId: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const now = byKey(yield* attempt(() => this.parts.conversations.state(conversationId)))
      yield* PubSub.publishAll(watch.changes, changesOf(watch.told, conversationId, now))
    }).pipe(Effect.catchCause((cause) => this.report(cause)))
  }

  /** A server that stops has nobody left to tell. */
  private report(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const error = Cause.squash(cause)
    if (error instanceof RuntimeClosed || Cause.hasInterruptsOnly(cause)) return Effect.void
    const fields = { conversation_id: "*", cause: describeError(error) }
    return Effect.sync(() => this.parts.log.write("warn", "a conversation could not be read for its followers", fields))
  }

  /** Asks every conversation in which somebody may be waited for. One that cannot be read hides no other. */
  private collect<Item>(
    itemsOf: (state: ConversationState) => ReadonlyArray<Item>,
    onUnreadable: (cause: Cause.Cause<unknown>) => Effect.Effect<void> = () => Effect.void
  ): Effect.Effect<Found<Item>, WireFailure> {
    const { conversationStore, conversations } = this.parts
    const readable = (id: string): Effect.Effect<ReadonlyArray<Item>> =>
      attempt(() => conversations.state(id)).pipe(
        Effect.map(itemsOf),
        Effect.catchCause((cause) => Effect.as(onUnreadable(cause), []))
      )
    return Effect.gen(function* () {
      // Read at once: a state is not kept across a wait.
      const resident = conversations.residentStates()
      const known = new Set<string>(resident.map(({ conversation_id: id }) => id))
      const items = resident.flatMap(itemsOf)
      const others = (yield* attempt(() => conversationStore.waiting())).filter((id) => !known.has(id))
      const asked = others.slice(0, limits.conversationsMax)
      const found = yield* Effect.forEach(asked, readable, { concurrency: limits.lanes })
      const all = { items: [...items, ...found.flat()] }
      return asked.length === others.length ? all : { ...all, left_out: others.length - asked.length }
    })
  }
}

type Needs = ConversationService | StoredConversations | DurableNotices | ServerLog

export class Attention extends Context.Service<
  Attention,
  Pick<AttentionProjection, "list" | "approvals" | "changes">
>()("echs/Attention") {
  static readonly layer: Layer.Layer<Attention, never, Needs> = Layer.effect(
    Attention,
    Effect.gen(function* () {
      const attention = yield* AttentionProjection.make({
        conversations: yield* ConversationService,
        conversationStore: yield* StoredConversations,
        log: yield* ServerLog
      })
      yield* DurableNotices.listen({
        name: "attention",
        appended: (conversationId) => attention.notice(conversationId),
        appeared: (conversationId) => attention.notice(conversationId)
      })
      return attention
    })
  )
}
