// The stream every provider hands out: what an assembly emits goes through one bounded queue, whose consumer takes all
// that has gathered at once. Deltas cost an append each; the fiber wakes once per turn of the event loop.
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Assembly, type Unpack } from "./Assembly.ts"
import type { ProviderEvent } from "./Provider.ts"
import { type ProviderError, providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

/** What whoever feeds an answer works with. */
export interface Answer {
  readonly assembly: Assembly
  /** The consumer has fallen behind: feed no more before there is room. */
  readonly isFull: () => boolean
  /** Waits until the consumer has taken enough. */
  readonly room: Effect.Effect<void>
}

export interface AnswerSource {
  readonly provider: string
  readonly unpack?: Unpack
  /** Feeds the assembly until it is settled. Its scope closes with the stream. */
  readonly feed: (answer: Answer) => Effect.Effect<void, never, Scope.Scope>
}

const unsettled = (provider: string): ProviderError =>
  providerError({ kind: "truncated", provider, message: "the stream ended before the answer was complete" })

export const answerStream = ({ feed, provider, unpack }: AnswerSource): Stream.Stream<ProviderEvent, ProviderError> =>
  Stream.callback<ProviderEvent, ProviderError>(
    Effect.fnUntraced(function* (queue) {
      const waiting: Array<ProviderEvent> = []
      const emit = (event: ProviderEvent): void => {
        if (waiting.length > 0 || !Queue.offerUnsafe(queue, event)) waiting.push(event)
      }
      const assembly = new Assembly(provider, emit, unpack)
      const isFull = (): boolean => waiting.length > 0
      const room = Effect.suspend(() => (isFull() ? Queue.offerAll(queue, waiting.splice(0)) : Effect.void))
      yield* feed({ assembly, isFull, room: Effect.asVoid(room) })
      yield* room
      yield* assembly.outcome ?? unsettled(provider)
      yield* Queue.end(queue)
    }),
    { bufferSize: limits.eventsBufferedMax }
  )
