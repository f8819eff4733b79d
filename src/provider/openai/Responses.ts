// OpenAI Responses through the official SDK. The terminal events are `response.completed`, `.incomplete` and
// `.failed`; anything else that ends the stream leaves the answer truncated.
import type {
  Response,
  ResponseFunctionToolCall,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseStreamEvent,
  ResponseUsage
} from "openai/resources/responses/responses"
import { makeAdapter } from "../Adapter.ts"
import type { Assembly, RawPart } from "../Assembly.ts"
import type { ModelRequest, TextPart } from "../Canonical.ts"
import { classify } from "../Classify.ts"
import type { HttpProviderConfig } from "../HttpProvider.ts"
import { type ModelProvider, originOf, type StopReason, type Usage } from "../Provider.ts"
import { providerError } from "../ProviderErrors.ts"
import { limits } from "../ProviderLimits.ts"
import { openClient } from "./Client.ts"
import { itemFormat, responsesBody } from "./ResponsesRequest.ts"

export interface ResponsesConfig extends HttpProviderConfig {
  readonly reasoningSummary?: boolean
}

const usageOf = (usage: ResponseUsage): Usage => ({
  input_tokens: usage.input_tokens,
  cached_input_tokens: usage.input_tokens_details?.cached_tokens ?? 0,
  cache_write_tokens: usage.input_tokens_details?.cache_write_tokens ?? 0,
  output_tokens: usage.output_tokens,
  reasoning_tokens: usage.output_tokens_details?.reasoning_tokens ?? 0
})

const rawCall = (item: ResponseFunctionToolCall): RawPart => ({
  type: "raw_call",
  callId: item.call_id ?? "",
  toolName: item.name ?? "",
  arguments: (item.arguments ?? "").slice(0, limits.argumentsCharsMax + 1),
  argumentsChars: item.arguments?.length ?? 0,
  incomplete: item.status === "incomplete" || item.status === "in_progress"
})

const textOf = (item: ResponseOutputMessage): TextPart => ({
  type: "text",
  text: item.content.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
  ...(item.phase === undefined || item.phase === null ? {} : { phase: item.phase })
})

const refusalIn = (items: ReadonlyArray<ResponseOutputItem>): string =>
  items
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "refusal" ? part.refusal : ""))
    .join("")

class Translator {
  readonly #items: Array<ResponseOutputItem> = []
  readonly #assembly: Assembly
  readonly #request: ModelRequest
  readonly #provider: string

  constructor(assembly: Assembly, request: ModelRequest, provider: string) {
    this.#assembly = assembly
    this.#request = request
    this.#provider = provider
  }

  readonly handle = (event: ResponseStreamEvent): void => {
    switch (event.type) {
      case "response.output_text.delta":
        this.#assembly.assistantDelta(event.delta)
        break
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#assembly.reasoningDelta(event.delta)
        break
      case "response.reasoning_summary_part.added":
        if (event.summary_index > 0) this.#assembly.reasoningDelta("\n\n")
        break
      case "response.output_item.done":
        this.#items[event.output_index] = event.item
        break
      case "response.completed":
        this.#complete(event.response, "end_turn")
        break
      case "response.incomplete":
        this.#incomplete(event.response)
        break
      case "response.failed":
        this.#failed(event.response)
        break
    }
  }

  #part(item: ResponseOutputItem): RawPart {
    if (item.type === "function_call") return rawCall(item)
    if (item.type === "message") return textOf(item)
    const origin = originOf(this.#provider, this.#request.model)
    return { type: "opaque", format: itemFormat, origin, json: JSON.stringify(item) }
  }

  /** Items as they were finished; the final response fills in those whose end was never announced. */
  #output(response: Response): ReadonlyArray<ResponseOutputItem> {
    const collected = this.#items.filter((item) => item !== undefined)
    const listed = response.output ?? []
    return listed.length > collected.length ? listed : collected
  }

  #complete(response: Response, stopReason: StopReason): void {
    if (response.usage !== undefined && response.usage !== null) this.#assembly.usage = usageOf(response.usage)
    const items = this.#output(response)
    const refusal = refusalIn(items)
    if (refusal !== "") {
      this.#assembly.fail(providerError({ kind: "refusal", provider: this.#provider, message: refusal }))
      return
    }
    this.#assembly.complete({
      // Some servers stream the text and then forget to repeat it.
      parts: items.length > 0 ? items.map((item) => this.#part(item)) : [{ type: "text", text: this.#assembly.text }],
      stopReason,
      requestId: this.#request.requestId,
      history: this.#request.messages
    })
  }

  #incomplete(response: Response): void {
    if (response.incomplete_details?.reason !== "content_filter") {
      this.#complete(response, "max_output_tokens")
      return
    }
    if (response.usage !== undefined && response.usage !== null) this.#assembly.usage = usageOf(response.usage)
    const message = "the provider's content filter stopped the answer"
    this.#assembly.fail(providerError({ kind: "content_filter", provider: this.#provider, message }))
  }

  #failed(response: Response): void {
    const { error } = response
    this.#assembly.fail(
      classify({
        provider: this.#provider,
        codes: error === null || error === undefined ? [] : [error.code],
        message: error?.message ?? "the provider gave up on the answer",
        providerRequestId: response.id,
        nowMs: 0
      })
    )
  }
}

export const makeResponses = (config: ResponsesConfig): ModelProvider =>
  makeAdapter<ResponseStreamEvent>(config, {
    translator: (assembly, request) => new Translator(assembly, request, config.name),
    open: async (request, tap, signal) => {
      const client = await openClient(config, tap)
      const info = config.modelInfo(originOf(config.name, request.model))
      const body = responsesBody(request, {
        provider: config.name,
        info,
        reasoningSummary: config.reasoningSummary ?? true
      })
      return client.responses.create(body, { signal })
    }
  })
