// Runs one call against a provider and keeps everything it sent, for tests to look at.
import type { ModelRequest } from "#src/provider/Canonical.ts"
import { user } from "#src/provider/Canonical.ts"
import type {
  AssistantFinal,
  ModelProvider,
  Outcome,
  ProviderEvent,
  ToolCallEvent,
  Usage
} from "#src/provider/Provider.ts"

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

export const collect = async (
  provider: ModelProvider,
  request: ModelRequest = sampleRequest(),
  signal: AbortSignal = new AbortController().signal
): Promise<Collected> => {
  const events: Array<ProviderEvent> = []
  const outcome = await provider.stream(
    request,
    (event) => {
      events.push(event)
    },
    { signal }
  )
  return summarize(outcome, events)
}
