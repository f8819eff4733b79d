// OpenAI Responses on the wire: named events with sequence numbers, items that open, stream and close.
import { type Answer, fragments, sse } from "./Answer.ts"

const responseId = "resp_67c9fdcecf488190bdd9a0409de3a1ec"

const baseResponse = (answer: Answer, status: string) => ({
  id: responseId,
  object: "response",
  created_at: 1741290958,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  model: answer.model,
  output: [] as ReadonlyArray<object>,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
  usage: null as object | null,
  user: null,
  metadata: {}
})

interface Event {
  readonly type: string
  readonly [field: string]: unknown
}

export const responseEvents = (events: ReadonlyArray<Event>): string =>
  events.map((event, sequence_number) => sse(event.type, { ...event, sequence_number })).join("")

interface Item {
  readonly item: object
  readonly events: ReadonlyArray<Event>
}

const reasoningItem = (answer: Answer, output_index: number): Item => {
  const id = "rs_67c9fdcf37fc8190ba82116e33fb28c5"
  const text = answer.reasoning ?? ""
  const at = { item_id: id, output_index, summary_index: 0 }
  const part = { type: "summary_text", text }
  const item = { id, type: "reasoning", summary: [part], encrypted_content: answer.seal ?? "" }
  return {
    item,
    events: [
      { type: "response.output_item.added", output_index, item: { ...item, summary: [] } },
      { type: "response.reasoning_summary_part.added", ...at, part: { type: "summary_text", text: "" } },
      ...fragments(text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      { type: "response.reasoning_summary_text.done", ...at, text },
      { type: "response.reasoning_summary_part.done", ...at, part },
      { type: "response.output_item.done", output_index, item }
    ]
  }
}

const messageItem = (answer: Answer, output_index: number): Item => {
  const id = "msg_67c9fdcf37fc8190ba82116e33fb28c5"
  const text = answer.text ?? ""
  const at = { item_id: id, output_index, content_index: 0 }
  const part = { type: "output_text", text, annotations: [], logprobs: [] }
  const item = { id, type: "message", status: "completed", role: "assistant", content: [part] }
  return {
    item,
    events: [
      { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", content: [] } },
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      ...fragments(text).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part },
      { type: "response.output_item.done", output_index, item }
    ]
  }
}

const callItem = (call: NonNullable<Answer["calls"]>[number], output_index: number): Item => {
  const id = `fc_${output_index}67ca09c6bedc8190a7abfec07b1a1332`
  const item = {
    id,
    type: "function_call",
    status: "completed",
    arguments: call.arguments,
    call_id: call.id,
    name: call.name
  }
  const at = { item_id: id, output_index }
  return {
    item,
    events: [
      { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", arguments: "" } },
      ...fragments(call.arguments).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
      { type: "response.function_call_arguments.done", ...at, arguments: call.arguments },
      { type: "response.output_item.done", output_index, item }
    ]
  }
}

const itemsOf = (answer: Answer): ReadonlyArray<Item> => {
  const makers = [
    ...(answer.reasoning === undefined ? [] : [(index: number) => reasoningItem(answer, index)]),
    ...(answer.text === undefined ? [] : [(index: number) => messageItem(answer, index)]),
    ...(answer.calls ?? []).map((call) => (index: number) => callItem(call, index))
  ]
  return makers.map((make, index) => make(index))
}

const usageOf = (answer: Answer) => ({
  input_tokens: answer.inputTokens,
  input_tokens_details: { cached_tokens: answer.cachedTokens, cache_write_tokens: 0 },
  output_tokens: answer.outputTokens,
  output_tokens_details: { reasoning_tokens: answer.reasoningTokens },
  total_tokens: answer.inputTokens + answer.outputTokens
})

const terminal = (answer: Answer, output: ReadonlyArray<object>): Event => {
  const usage = usageOf(answer)
  return answer.stop === "length"
    ? {
        type: "response.incomplete",
        response: {
          ...baseResponse(answer, "incomplete"),
          output,
          usage,
          incomplete_details: { reason: "max_output_tokens" }
        }
      }
    : { type: "response.completed", response: { ...baseResponse(answer, "completed"), output, usage } }
}

const opening = (answer: Answer): ReadonlyArray<Event> => [
  { type: "response.created", response: baseResponse(answer, "in_progress") },
  { type: "response.in_progress", response: baseResponse(answer, "in_progress") }
]

export const responsesStream = (answer: Answer): string => {
  const items = itemsOf(answer)
  return responseEvents([
    ...opening(answer),
    ...items.flatMap((item) => item.events),
    terminal(
      answer,
      items.map((item) => item.item)
    )
  ])
}

/** A stream with items written by hand. */
export const responsesStreamOf = (answer: Answer, output: ReadonlyArray<object>): string =>
  responseEvents([
    ...opening(answer),
    ...output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
    terminal(answer, output)
  ])

export const responsesFailed = (answer: Answer, code: string, message: string): string =>
  responseEvents([
    ...opening(answer),
    { type: "response.failed", response: { ...baseResponse(answer, "failed"), error: { code, message } } }
  ])

export const responsesErrorEvent = (answer: Answer, code: string, message: string): string =>
  responseEvents([...opening(answer), { type: "error", code, message, param: null }])
