// Durable notices: the one bus on which the store announces what became durable, and on which everybody else listens.
// It is synchronous and holds a plain list of listeners, because every append passes through it (decision 0025). Notices
// of one conversation come in the order of its log. A listener that throws is reported, and hurts neither the others
// nor the append.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { ConversationState } from "../machine/State.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { Channel, type ListenerFailed, listening } from "./Channel.ts"
import { describeError, ServerLog } from "./ServerLog.ts"

/** How a conversation came to the log as a whole. */
export type Appearance = "forked" | "imported" | "restored"

export interface DurableListener {
  /** Names it in the report when it throws. */
  readonly name: string
  /** Runes of a conversation are durable. */
  readonly appended?: (conversationId: string, runes: ReadonlyArray<AnyRune>) => void
  /** A whole conversation is durable that was not in the log before. */
  readonly appeared?: (conversationId: string, how: Appearance) => void
  /** A conversation was read from its log, and nothing of it runs yet. */
  readonly loaded?: (state: ConversationState) => void
  /** The log takes no more runes: of one conversation, or of all where none is named. */
  readonly refused?: (cause: Error, conversationId: string | undefined) => void
}

export class NoticeBus {
  private readonly appends: Channel<readonly [conversationId: string, runes: ReadonlyArray<AnyRune>]>
  private readonly appearances: Channel<readonly [conversationId: string, how: Appearance]>
  private readonly loads: Channel<readonly [state: ConversationState]>
  private readonly refusals: Channel<readonly [cause: Error, conversationId: string | undefined]>

  constructor(onFailed: ListenerFailed = () => undefined) {
    this.appends = new Channel(onFailed)
    this.appearances = new Channel(onFailed)
    this.loads = new Channel(onFailed)
    this.refusals = new Channel(onFailed)
  }

  /** Returns how to stop listening. */
  subscribe({ appeared, appended, loaded, name, refused }: DurableListener): () => void {
    const stops = [
      this.appends.add(name, appended),
      this.appearances.add(name, appeared),
      this.loads.add(name, loaded),
      this.refusals.add(name, refused)
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  appended(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    this.appends.tell(conversationId, runes)
  }

  appeared(conversationId: string, how: Appearance): void {
    this.appearances.tell(conversationId, how)
  }

  loaded(state: ConversationState): void {
    this.loads.tell(state)
  }

  refused(cause: Error, conversationId?: string): void {
    this.refusals.tell(cause, conversationId)
  }
}

export class DurableNotices extends Context.Service<DurableNotices, NoticeBus>()("echs/DurableNotices") {
  static readonly layer: Layer.Layer<DurableNotices, never, ServerLog> = Layer.effect(
    DurableNotices,
    Effect.map(
      ServerLog,
      (log) =>
        new NoticeBus((listener, error) =>
          log.write("error", "a listener of durable notices failed", { listener, cause: describeError(error) })
        )
    )
  )

  /** Listens for as long as the scope is open. */
  static readonly listen = (listener: DurableListener): Effect.Effect<void, never, DurableNotices | Scope.Scope> =>
    Effect.flatMap(DurableNotices, (bus) => listening(() => bus.subscribe(listener)))
}
