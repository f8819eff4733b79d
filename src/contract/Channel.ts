// A synchronous channel: a plain list of listeners, called in the order in which they came. A listener that throws is
// reported, and hurts neither the others nor whoever tells. Nothing waits in it, so nothing has to be bounded.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export type ListenerFailed = (listener: string, error: unknown) => void

interface Listening<A extends ReadonlyArray<unknown>> {
  readonly name: string
  readonly hear: (...told: A) => void
}

/** Listening and leaving replace the list, so a notice under way reaches those it began with. */
export class Channel<A extends ReadonlyArray<unknown>> {
  private listeners: ReadonlyArray<Listening<A>> = []
  private readonly onFailed: ListenerFailed

  constructor(onFailed: ListenerFailed) {
    this.onFailed = onFailed
  }

  /** Returns how to stop listening. */
  add(name: string, hear: Listening<A>["hear"] | undefined): () => void {
    if (hear === undefined) return () => undefined
    const listening = { name, hear }
    this.listeners = [...this.listeners, listening]
    return () => {
      this.listeners = this.listeners.filter((one) => one !== listening)
    }
  }

  tell(...told: A): void {
    for (const { hear, name } of this.listeners) {
      try {
        hear(...told)
      } catch (error) {
        this.onFailed(name, error)
      }
    }
  }
}

/** Listens for as long as the scope is open. */
export const listening = (begin: () => () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(Effect.sync(begin), (stop) => Effect.sync(stop)))
