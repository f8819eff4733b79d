// Chat Completions on the wire: unnamed events, tool calls in pieces by index, an optional usage chunk, `[DONE]`.
import { type Answer, fragments, sse } from "./Answer.ts"

const envelope = (answer: Answer) => ({
  id: "chatcmpl-123",
  object: "chat.completion.chunk",
  created: 1694268190,
  model: answer.model,
  system_fingerprint: "fp_44709d6fcb"
})

export const chatChunk = (answer: Answer, delta: object, finish: string | null = null): string =>
  sse(undefined, {
    ...envelope(answer),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    usage: null
  })

export const chatUsage = (answer: Answer): string =>
  sse(undefined, {
    ...envelope(answer),
    choices: [],
    usage: {
      prompt_tokens: answer.inputTokens,
      completion_tokens: answer.outputTokens,
      total_tokens: answer.inputTokens + answer.outputTokens,
      prompt_tokens_details: { cached_tokens: answer.cachedTokens, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: answer.reasoningTokens, audio_tokens: 0 }
    }
  })

export const chatDone = "data: [DONE]\n\n"

const finishReasons = { end: "stop", calls: "tool_calls", length: "length" } as const

const callChunks = (answer: Answer): ReadonlyArray<string> =>
  (answer.calls ?? []).flatMap((call, index) => [
    chatChunk(answer, {
      tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }]
    }),
    ...fragments(call.arguments).map((piece) =>
      chatChunk(answer, { tool_calls: [{ index, function: { arguments: piece } }] })
    )
  ])

export const chatStream = (answer: Answer): string =>
  [
    chatChunk(answer, { role: "assistant", content: "", refusal: null }),
    ...fragments(answer.reasoning ?? "").map((piece) => chatChunk(answer, { reasoning_content: piece })),
    ...fragments(answer.text ?? "").map((piece) => chatChunk(answer, { content: piece })),
    ...callChunks(answer),
    chatChunk(answer, {}, finishReasons[answer.stop]),
    chatUsage(answer),
    chatDone
  ].join("")

export const openaiError = (message: string, type: string, code: string | null): string =>
  JSON.stringify({ error: { message, type, param: null, code } }, null, 2)
