// The three wire formats side by side, so that one test can run over all of them.

import * as Redacted from "effect/Redacted"
import { makeMessages } from "#src/provider/anthropic/Messages.ts"
import type { HttpProviderConfig } from "#src/provider/HttpProvider.ts"
import { makeModelCatalog } from "#src/provider/ModelCatalog.ts"
import { makeChatCompletions } from "#src/provider/openai/ChatCompletions.ts"
import { makeResponses } from "#src/provider/openai/Responses.ts"
import type { ModelProvider } from "#src/provider/Provider.ts"
import type { Answer } from "./Answer.ts"
import { chatStream, openaiError } from "./ChatCompletions.ts"
import { messagesError, messagesErrorEvent, messagesStart, messagesStream } from "./Messages.ts"
import { responsesErrorEvent, responsesStream } from "./Responses.ts"
import { serverKey, type WireFormat } from "./Server.ts"

export interface Format {
  readonly name: WireFormat
  readonly provider: (serverUrl: string, config?: Partial<HttpProviderConfig>) => ModelProvider
  readonly stream: (answer: Answer) => string
  readonly errorBody: (message: string, kind: "rate_limit" | "overloaded" | "server" | "too_long") => string
  /** A stream that begins well and then reports an overload. */
  readonly errorInStream: (answer: Answer) => string
}

const catalog = makeModelCatalog({
  "responses/test-model": { thinking: "adaptive" },
  "messages/test-model": { thinking: "adaptive" }
})

const config = (name: string, baseUrl: string, more: Partial<HttpProviderConfig>): HttpProviderConfig => ({
  name,
  baseUrl,
  apiKey: Redacted.make(serverKey),
  modelInfo: catalog.lookup,
  ...more
})

const openaiCodes = {
  rate_limit: ["requests", "rate_limit_exceeded"],
  overloaded: ["server_error", "server_is_overloaded"],
  server: ["server_error", null],
  too_long: ["invalid_request_error", "context_length_exceeded"]
} as const

const anthropicTypes = {
  rate_limit: "rate_limit_error",
  overloaded: "overloaded_error",
  server: "api_error",
  too_long: "invalid_request_error"
} as const

const openaiBody: Format["errorBody"] = (message, kind) => {
  const [type, code] = openaiCodes[kind]
  return openaiError(message, type, code)
}

export const formats: ReadonlyArray<Format> = [
  {
    name: "responses",
    provider: (url, more = {}) => makeResponses(config("responses", `${url}/v1`, more)),
    stream: responsesStream,
    errorBody: openaiBody,
    errorInStream: (answer) => responsesErrorEvent(answer, "server_is_overloaded", "Our servers are overloaded.")
  },
  {
    name: "chat",
    provider: (url, more = {}) => makeChatCompletions(config("chat", `${url}/v1`, more)),
    stream: chatStream,
    errorBody: openaiBody,
    errorInStream: (answer) =>
      `${chatStream(answer).slice(0, 600).split("\n\n").slice(0, -1).join("\n\n")}\n\ndata: ${JSON.stringify({ error: { message: "Overloaded", type: "server_error", code: "server_is_overloaded" } })}\n\n`
  },
  {
    name: "messages",
    provider: (url, more = {}) => makeMessages(config("messages", url, more)),
    stream: messagesStream,
    errorBody: (message, kind) => messagesError(anthropicTypes[kind], message),
    errorInStream: (answer) => messagesStart(answer) + messagesErrorEvent("overloaded_error", "Overloaded")
  }
]
