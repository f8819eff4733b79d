// State events of all conversations: durable runes are folded once, and whoever counts or logs listens here. A synchronous
// channel, because every append passes through it.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Channel } from "../../contract/Channel.ts"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { describeError, ServerLog } from "../../contract/ServerLog.ts"
import { makeView, type ViewFold } from "../../conversation/Views.ts"
import { dropOldest } from "../../rune/Elements.ts"
import type { AnyRune } from "../../rune/Rune.ts"

/** The parts of state events that are counted and logged. */
export interface SeenEvent {
  readonly type: string
  readonly agentId?: string
  readonly from?: string
  readonly to?: string
  readonly reason?: string
  readonly code?: string
  readonly detail?: string
  readonly runId?: string
  readonly toolName?: string
  readonly hookName?: string
  readonly status?: string
  readonly attempt?: number
  readonly errorCode?: string
  readonly retryable?: boolean
}

/** Conversations whose view is kept; the longest unused are forgotten. */
const VIEWS_MAX = 4_096

type StateOfView = NonNullable<Parameters<typeof makeView>[1]>

/** A channel of events, each with the rune that it follows from. */
export class StateEventChannel extends Channel<readonly [event: SeenEvent, rune: AnyRune]> {
  private readonly views = new Map<string, ViewFold>()

  /** A conversation that another life of the server began: what follows is folded from its state on. */
  resume(state: StateOfView): void {
    this.keep(state.conversation_id, makeView("state_events", state))
  }

  /** Durable runes of a conversation, in order. */
  notice(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    const fold = this.views.get(conversationId) ?? makeView("state_events")
    this.keep(conversationId, fold)
    for (const rune of runes) for (const event of fold(rune) as ReadonlyArray<SeenEvent>) this.tell(event, rune)
  }

  private keep(conversationId: string, view: ViewFold): void {
    this.views.delete(conversationId)
    this.views.set(conversationId, view)
    if (this.views.size > VIEWS_MAX) dropOldest(this.views)
  }
}

export class StateEvents extends Context.Service<StateEvents, StateEventChannel>()("echs/StateEvents") {
  static readonly layer: Layer.Layer<StateEvents, never, ServerLog | DurableNotices> = Layer.effect(
    StateEvents,
    Effect.gen(function* () {
      const log = yield* ServerLog
      const events = new StateEventChannel((listener, error) =>
        log.write("error", "a listener of state events failed", { listener, cause: describeError(error) })
      )
      yield* DurableNotices.listen({
        name: "state events",
        appended: (conversationId, runes) => events.notice(conversationId, runes),
        loaded: (state) => events.resume(state)
      })
      return events
    })
  )
}
