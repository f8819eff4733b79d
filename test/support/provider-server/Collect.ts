// Runs one call against a provider and keeps everything it sent, for tests to look at.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { ModelRequest } from "#src/provider/Canonical.ts"
import { user } from "#src/provider/Canonical.ts"
import type {
  AssistantFinal,
  ModelProvider,
  ProviderEvent,
  StopReason,
  ToolCallEvent,
  Usage
} from "#src/provider/Provider.ts"
import type { ProviderError } from "#src/provider/ProviderErrors.ts"

/** How a stream ended; one that completed has said `done` as its last event. */
export type Outcome =
  | { readonly _tag: "Completed"; readonly stopReason: StopReason }
  | { readonly _tag: "Failed"; readonly error: ProviderError }
  | { readonly _tag: "Interrupted" }

export interface Collected {
  readonly outcome: Outcome
  readonly events: ReadonlyArray<ProviderEvent>
  readonly text: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<ToolCallEvent>
  readonly final: AssistantFinal | undefined
  readonly usage: Usage | undefined
}

export const sampleRequest = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  requestId: "req_1",
  model: "test-model",
  messages: [user("Please read the file.")],
  ...more
})

export const summarize = (outcome: Outcome, events: ReadonlyArray<ProviderEvent>): Collected => ({
  outcome,
  events,
  text: events.map((event) => (event.type === "assistant_delta" ? event.content : "")).join(""),
  reasoning: events.map((event) => (event.type === "reasoning_delta" ? event.content : "")).join(""),
  calls: events.filter((event) => event.type === "tool_call"),
  final: events.find((event) => event.type === "assistant_final"),
  usage: events.find((event) => event.type === "usage")?.usage
})

export const outcomeOf = (exit: Exit.Exit<void, ProviderError>, events: ReadonlyArray<ProviderEvent>): Outcome => {
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterruptsOnly(exit.cause)) return { _tag: "Interrupted" }
    const error = Cause.squash(exit.cause)
    if (Cause.hasDies(exit.cause)) throw error
    return { _tag: "Failed", error: error as ProviderError }
  }
  const last = events.at(-1)
  if (last?.type !== "done") throw new Error(`the stream completed after ${last?.type ?? "nothing"}`)
  return { _tag: "Completed", stopReason: last.stop_reason }
}

export const collect = async (
  provider: ModelProvider,
  request: ModelRequest = sampleRequest(),
  signal: AbortSignal = new AbortController().signal
): Promise<Collected> => {
  const events: Array<ProviderEvent> = []
  const heard = Stream.runForEachArray(provider.stream(request), (some) => Effect.sync(() => events.push(...some)))
  const exit = await Effect.runPromiseExit(heard, { signal })
  return summarize(outcomeOf(exit, events), events)
}
