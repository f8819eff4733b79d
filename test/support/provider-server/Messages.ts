// Anthropic Messages on the wire: server-sent events with names, pings in between, cumulative usage.
import { type Answer, fragments, sse } from "./Answer.ts"

const messageId = "msg_01XFDUDYJgAACzvnptvVoYEL"

const start = (answer: Answer): string =>
  sse("message_start", {
    type: "message_start",
    message: {
      id: messageId,
      type: "message",
      role: "assistant",
      model: answer.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: answer.inputTokens - answer.cachedTokens,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: answer.cachedTokens,
        output_tokens: 1,
        service_tier: "standard"
      }
    }
  })

const block = (index: number, contentBlock: object, deltas: ReadonlyArray<object>): string =>
  [
    sse("content_block_start", { type: "content_block_start", index, content_block: contentBlock }),
    ...deltas.map((delta) => sse("content_block_delta", { type: "content_block_delta", index, delta })),
    sse("content_block_stop", { type: "content_block_stop", index })
  ].join("")

const ping = sse("ping", { type: "ping" })

const thinkingBlock = (index: number, answer: Answer): string =>
  block(index, { type: "thinking", thinking: "", signature: "" }, [
    ...fragments(answer.reasoning ?? "").map((thinking) => ({ type: "thinking_delta", thinking })),
    { type: "signature_delta", signature: answer.seal ?? "" }
  ])

const blocks = (answer: Answer): ReadonlyArray<(index: number) => string> => [
  ...(answer.reasoning === undefined ? [] : [(index: number) => thinkingBlock(index, answer)]),
  ...(answer.text === undefined
    ? []
    : [
        (index: number) =>
          block(
            index,
            { type: "text", text: "" },
            fragments(answer.text ?? "").map((text) => ({ type: "text_delta", text }))
          )
      ]),
  ...(answer.calls ?? []).map(
    (call) => (index: number) =>
      block(index, { type: "tool_use", id: call.id, name: call.name, input: {} }, [
        { type: "input_json_delta", partial_json: "" },
        ...fragments(call.arguments).map((partial_json) => ({ type: "input_json_delta", partial_json }))
      ])
  )
]

const stopReasons = { end: "end_turn", calls: "tool_use", length: "max_tokens" } as const

export interface Stop {
  readonly stop_reason: string
  readonly stop_sequence?: string | null
  readonly stop_details?: object | null
}

export const messageEnd = (stop: Stop, outputTokens: number, reasoningTokens = 0): string =>
  sse("message_delta", {
    type: "message_delta",
    delta: { stop_sequence: null, stop_details: null, container: null, ...stop },
    usage: { output_tokens: outputTokens, output_tokens_details: { thinking_tokens: reasoningTokens } }
  }) + sse("message_stop", { type: "message_stop" })

export const messagesStream = (answer: Answer): string =>
  [
    start(answer),
    ping,
    ...blocks(answer).map((write, index) => write(index)),
    ping,
    messageEnd({ stop_reason: stopReasons[answer.stop] }, answer.outputTokens, answer.reasoningTokens)
  ].join("")

/** A stream with blocks written by hand, for what `Answer` cannot say. */
export const messagesStreamOf = (
  answer: Answer,
  written: ReadonlyArray<{ readonly start: object; readonly deltas: ReadonlyArray<object> }>,
  stop: Stop
): string =>
  [
    start(answer),
    ...written.map((one, index) => block(index, one.start, one.deltas)),
    messageEnd(stop, answer.outputTokens)
  ].join("")

export const messagesError = (type: string, message: string): string =>
  JSON.stringify({ type: "error", error: { type, message }, request_id: "req_011CSHoEeqs5C35K2UUqR7Fy" })

export const messagesErrorEvent = (type: string, message: string): string =>
  sse("error", { type: "error", error: { details: null, type, message }, request_id: "req_011CSHoEeqs5C35K2UUqR7Fy" })

export const messagesStart = start
