// The stream every provider hands out: what an assembly emits gathers in one bounded list, and the consumer takes all of
// it at once. Deltas cost an append each; the consumer wakes once per turn of the event loop. A plain list with one
// waiter at either end: an effect's queue per delta took a fifth of the processor time of a slow stream.

import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Pull from "effect/Pull"
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

type Resume = (effect: Effect.Effect<void>) => void

/** Events that have gathered, for one producer and one consumer. */
class Gathered {
  private events: Array<ProviderEvent> = []
  private ended: Effect.Effect<never, ProviderError | Cause.Done> | undefined
  private consumer: Resume | undefined
  private producer: Resume | undefined

  readonly add = (event: ProviderEvent): void => {
    this.events.push(event)
    this.wake()
  }

  /** Nothing more comes; what has gathered is taken first. */
  end(ended: Effect.Effect<never, ProviderError | Cause.Done>): void {
    this.ended = ended
    this.wake()
  }

  /** What one piece of the answer brings is taken together: a tick comes after the promises of that piece. */
  private wake(): void {
    const { consumer } = this
    if (consumer === undefined) return
    this.consumer = undefined
    process.nextTick(() => consumer(Effect.void))
  }

  readonly isFull = (): boolean => this.events.length >= limits.eventsBufferedMax

  readonly room: Effect.Effect<void> = Effect.suspend(() => {
    if (!this.isFull()) return Effect.void
    return Effect.callback<void>((resume) => {
      this.producer = resume
      return Effect.sync(() => {
        this.producer = undefined
      })
    })
  })

  private readonly arrival: Effect.Effect<void> = Effect.callback<void>((resume) => {
    this.consumer = resume
    return Effect.sync(() => {
      this.consumer = undefined
    })
  })

  /** Everything that has gathered, when there is something. */
  readonly pull: Pull.Pull<NonEmptyReadonlyArray<ProviderEvent>, ProviderError> = Effect.suspend(() => {
    const { ended, events, producer } = this
    if (events.length === 0) return ended ?? Effect.flatMap(this.arrival, () => this.pull)
    this.events = []
    this.producer = undefined
    producer?.(Effect.void)
    return Effect.succeed(events as unknown as NonEmptyReadonlyArray<ProviderEvent>)
  })
}

export const answerStream = ({ feed, provider, unpack }: AnswerSource): Stream.Stream<ProviderEvent, ProviderError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const gathered = new Gathered()
      const assembly = new Assembly(provider, gathered.add, unpack)
      const outcome = (exit: Exit.Exit<void>) => {
        if (Exit.isFailure(exit)) return Effect.failCause(exit.cause)
        return Effect.andThen(assembly.outcome ?? unsettled(provider), Cause.done())
      }
      const fed = feed({ assembly, isFull: gathered.isFull, room: gathered.room })
      yield* Effect.forkScoped(Effect.onExit(fed, (exit) => Effect.sync(() => gathered.end(outcome(exit)))))
      return Stream.fromPull(Effect.succeed(gathered.pull))
    })
  )
