// The loop all SDK adapters share: open the stream, feed its events to a translator, and decide how the call
// ended. An end without the provider's terminal event is a truncation; an abort is an interrupt, not a failure.
// The loop is plain code, awaited by one effect: an effect per event would cost more than handling it.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Answer } from "./AnswerStream.ts"
import { providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"
import { sdkFailure } from "./SdkFailure.ts"
import type { Tap } from "./Tap.ts"

export interface StreamRun<Event> {
  readonly provider: string
  readonly tap: Tap
  readonly secrets: ReadonlyArray<string>
  /** Sends the request. Its signal also aborts a connection that outlives its answer. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<Event>>
  /** Translates one event; settles the assembly when it is the terminal one. */
  readonly handle: (event: Event) => void
  /** Called when the stream ended by itself before the assembly was settled. */
  readonly onEnd?: () => void
}

/** Reads the rest of a finished answer so that its connection can be used again. */
const readRest = async (iterator: AsyncIterator<unknown>): Promise<void> => {
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next());
  } catch {
    // The answer was complete; how its connection died does not matter any more.
  }
}

class Reading<Event> {
  private readonly run: StreamRun<Event>
  private readonly answer: Answer
  private readonly clock: Clock.Clock
  private readonly connection = new AbortController()
  private iterator: AsyncIterator<Event> | undefined
  private events = 0
  private isAbandoned = false

  constructor(run: StreamRun<Event>, answer: Answer, clock: Clock.Clock) {
    this.run = run
    this.answer = answer
    this.clock = clock
  }

  /** Reads until the answer is settled, or until the consumer has fallen behind; never rejects. */
  async advance(): Promise<void> {
    const { assembly, isFull } = this.answer
    try {
      this.iterator ??= (await this.run.open(this.connection.signal))[Symbol.asyncIterator]()
      for (let next = await this.iterator.next(); next.done !== true; next = await this.iterator.next()) {
        this.events++
        this.translate(next.value)
        if (assembly.outcome !== undefined || isFull()) return
      }
      this.end(() => this.truncation())
    } catch (cause) {
      this.end(() => this.failure(cause))
    }
  }

  /** Runs the translator. An event it cannot make sense of is the provider's fault and ends the call. */
  private translate(event: Event): void {
    try {
      this.run.handle(event)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const message = `an event of the stream has an unknown shape: ${reason}`
      this.answer.assembly.fail(providerError({ kind: "malformed_response", provider: this.run.provider, message }))
    }
  }

  /** The connection is over. What that means is up to the adapter, unless nobody listens any more. */
  private end(error: () => ReturnType<typeof providerError>): void {
    const { assembly } = this.answer
    if (assembly.outcome !== undefined || this.isAbandoned) return
    this.run.onEnd?.()
    if (assembly.outcome === undefined) assembly.fail(error())
  }

  private truncation() {
    const type = this.run.tap.contentType()
    const foreign = this.events === 0 && type !== "" && !type.includes("event-stream")
    return providerError({
      kind: foreign ? "malformed_response" : "truncated",
      provider: this.run.provider,
      message: foreign
        ? `the answer is ${type}, not an event stream`
        : "the stream ended before the answer was complete"
    })
  }

  private failure(cause: unknown) {
    const { provider, secrets, tap } = this.run
    return sdkFailure(cause, {
      provider,
      secrets,
      nowMs: this.clock.currentTimeMillisUnsafe(),
      answered: tap.answered(),
      bodyEnded: tap.bodyEnded()
    })
  }

  /** Ends the connection without waiting for it; that of a complete answer can be used again when it is drained. */
  get release(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { connection, iterator } = this
      const { outcome } = this.answer.assembly
      this.isAbandoned = true
      if (outcome !== undefined && Exit.isSuccess(outcome) && iterator !== undefined) {
        const drained = Effect.timeoutOption(
          Effect.promise(() => readRest(iterator)),
          limits.drainMs
        )
        const closed = Effect.ensuring(
          drained,
          Effect.sync(() => connection.abort())
        )
        return Effect.asVoid(Effect.forkDetach(closed))
      }
      connection.abort()
      iterator?.return?.().catch(() => undefined)
      return Effect.void
    })
  }
}

/** Feeds the answer from an SDK's stream; the request is aborted when the scope closes before its end. */
export const readStream = Effect.fnUntraced(function* <Event>(
  run: StreamRun<Event>,
  answer: Answer
): Effect.fn.Return<void, never, Scope.Scope> {
  const reading = new Reading(run, answer, yield* Clock.Clock)
  yield* Effect.addFinalizer(() => reading.release)
  while (answer.assembly.outcome === undefined) {
    yield* Effect.promise(() => reading.advance())
    yield* answer.room
  }
})
