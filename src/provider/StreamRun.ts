// The loop all SDK adapters share: open the stream, feed its events to a translator, and decide how the call
// ended. An end without the provider's terminal event is a truncation; an abort is an interrupt, not a failure.
import type { Assembly } from "./Assembly.ts"
import type { Outcome } from "./Provider.ts"
import { providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"
import { sdkFailure } from "./SdkFailure.ts"
import type { Tap } from "./Tap.ts"

export interface StreamRun<Event> {
  readonly provider: string
  readonly assembly: Assembly
  readonly tap: Tap
  readonly signal: AbortSignal
  readonly secrets: ReadonlyArray<string>
  readonly nowMs: () => number
  /** Sends the request. Its signal also aborts a connection that outlives its answer. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<Event>>
  /** Translates one event; settles the assembly when it is the terminal one. */
  readonly handle: (event: Event) => void
  /** Called when the stream ended by itself before the assembly was settled. */
  readonly onEnd?: () => void
}

const interrupted: Outcome = { _tag: "Interrupted" }

/** Ends the connection without waiting for it. */
const abandon = (iterator: AsyncIterator<unknown>, connection: AbortController): void => {
  connection.abort()
  iterator.return?.().catch(() => undefined)
}

/** Reads the rest of a finished answer so that its connection can be used again. */
const drain = async (iterator: AsyncIterator<unknown>, connection: AbortController): Promise<void> => {
  const timer = setTimeout(() => connection.abort(), limits.drainMs)
  timer.unref()
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next());
  } catch {
    // The answer was complete; how its connection died does not matter any more.
  } finally {
    clearTimeout(timer)
  }
}

/** Runs the translator. An event it cannot make sense of is the provider's fault and ends the call. */
const translate = <Event>(run: StreamRun<Event>, event: Event): void => {
  try {
    run.handle(event)
  } catch (cause) {
    if (run.assembly.sinkFailure !== undefined) throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `an event of the stream has an unknown shape: ${reason}`
    run.assembly.fail(providerError({ kind: "malformed_response", provider: run.provider, message }))
  }
}

const consume = async <Event>(
  run: StreamRun<Event>,
  connection: AbortController
): Promise<{ readonly events: number }> => {
  const { assembly } = run
  const stream = await run.open(connection.signal)
  const iterator = stream[Symbol.asyncIterator]()
  let events = 0
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      events++
      translate(run, next.value)
      if (assembly.backlog !== undefined) await assembly.drained()
      if (assembly.outcome !== undefined) break
    }
  } catch (cause) {
    abandon(iterator, connection)
    throw cause
  }
  if (assembly.outcome?._tag === "Completed") void drain(iterator, connection)
  else abandon(iterator, connection)
  return { events }
}

const truncation = <Event>(run: StreamRun<Event>, events: number) => {
  const type = run.tap.contentType()
  const foreign = events === 0 && type !== "" && !type.includes("event-stream")
  return providerError({
    kind: foreign ? "malformed_response" : "truncated",
    provider: run.provider,
    message: foreign ? `the answer is ${type}, not an event stream` : "the stream ended before the answer was complete"
  })
}

const settle = async <Event>(run: StreamRun<Event>): Promise<void> => {
  const { assembly } = run
  const connection = new AbortController()
  const onAbort = () => connection.abort()
  run.signal.addEventListener("abort", onAbort)
  if (run.signal.aborted) onAbort()
  try {
    const { events } = await consume(run, connection)
    if (assembly.outcome !== undefined || run.signal.aborted) return
    run.onEnd?.()
    if (assembly.outcome === undefined) assembly.fail(truncation(run, events))
  } catch (cause) {
    if (assembly.sinkFailure !== undefined) throw assembly.sinkFailure.cause
    if (assembly.outcome !== undefined || run.signal.aborted) return
    run.onEnd?.()
    if (assembly.outcome !== undefined) return
    assembly.fail(
      sdkFailure(cause, {
        provider: run.provider,
        secrets: run.secrets,
        nowMs: run.nowMs(),
        answered: run.tap.answered(),
        bodyEnded: run.tap.bodyEnded()
      })
    )
  } finally {
    run.signal.removeEventListener("abort", onAbort)
  }
}

export const runStream = async <Event>(run: StreamRun<Event>): Promise<Outcome> => {
  await settle(run)
  if (run.assembly.backlog !== undefined) await run.assembly.drained()
  return run.assembly.outcome ?? interrupted
}
