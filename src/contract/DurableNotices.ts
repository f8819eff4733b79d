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
}

type Failed = (listener: string, error: unknown) => void

interface Listening<A, B> {
  readonly name: string
  readonly hear: (first: A, second: B) => void
}

/** One kind of notice. Listening and leaving replace the list, so a notice under way reaches those it began with. */
class Channel<A, B> {
  private listeners: ReadonlyArray<Listening<A, B>> = []
  private readonly onFailed: Failed

  constructor(onFailed: Failed) {
    this.onFailed = onFailed
  }

  add(name: string, hear: Listening<A, B>["hear"] | undefined): () => void {
    if (hear === undefined) return () => undefined
    const listening = { name, hear }
    this.listeners = [...this.listeners, listening]
    return () => {
      this.listeners = this.listeners.filter((one) => one !== listening)
    }
  }

  tell(first: A, second: B): void {
    for (const { hear, name } of this.listeners) {
      try {
        hear(first, second)
      } catch (error) {
        this.onFailed(name, error)
      }
    }
  }
}

export class NoticeBus {
  private readonly appends: Channel<string, ReadonlyArray<AnyRune>>
  private readonly appearances: Channel<string, Appearance>
  private readonly loads: Channel<ConversationState, undefined>

  constructor(onFailed: Failed = () => undefined) {
    this.appends = new Channel(onFailed)
    this.appearances = new Channel(onFailed)
    this.loads = new Channel(onFailed)
  }

  /** Returns how to stop listening. */
  subscribe({ appeared, appended, loaded, name }: DurableListener): () => void {
    const stops = [this.appends.add(name, appended), this.appearances.add(name, appeared), this.loads.add(name, loaded)]
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
    this.loads.tell(state, undefined)
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
    Effect.flatMap(DurableNotices, (bus) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => bus.subscribe(listener)),
          (stop) => Effect.sync(stop)
        )
      )
    )
}
