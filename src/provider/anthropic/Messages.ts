// Anthropic Messages through the official SDK. The terminal event is `message_stop` after a stop reason. Thinking
// blocks, with their signatures, and every other block we do not interpret are kept as they were streamed.
import type {
  ContentBlock,
  RawContentBlockDelta,
  RawMessageDeltaEvent,
  RawMessageStreamEvent
} from "@anthropic-ai/sdk/resources/messages"
import { makeAdapter } from "../Adapter.ts"
import { isWhole } from "../Arguments.ts"
import { ArgumentText, type Assembly, type RawPart } from "../Assembly.ts"
import type { ModelRequest } from "../Canonical.ts"
import { type ModelProvider, originOf, type StopReason, type Usage } from "../Provider.ts"
import { providerError } from "../ProviderErrors.ts"
import { type AnthropicConfig, openClient } from "./Client.ts"
import { blockFormat, messagesBody } from "./MessagesRequest.ts"

const stopReasons: { readonly [reason: string]: StopReason } = {
  end_turn: "end_turn",
  max_tokens: "max_output_tokens",
  stop_sequence: "stop_sequence",
  tool_use: "tool_calls",
  pause_turn: "pause_turn",
  model_context_window_exceeded: "context_window"
}

/** A block while it is being streamed: its start, plus what its deltas added. */
interface OpenBlock {
  readonly start: ContentBlock
  text: string
  signature: string
  readonly input: ArgumentText
  readonly citations: Array<unknown>
}

type WireUsage = {
  readonly input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
  readonly output_tokens?: number | null
  readonly output_tokens_details?: { readonly thinking_tokens?: number } | null
}

/** Counts are cumulative; a field that is left out keeps its last value. */
const mergeUsage = (known: WireUsage, next: WireUsage): WireUsage => ({
  input_tokens: next.input_tokens ?? known.input_tokens ?? 0,
  cache_read_input_tokens: next.cache_read_input_tokens ?? known.cache_read_input_tokens ?? 0,
  cache_creation_input_tokens: next.cache_creation_input_tokens ?? known.cache_creation_input_tokens ?? 0,
  output_tokens: next.output_tokens ?? known.output_tokens ?? 0,
  output_tokens_details: next.output_tokens_details ?? known.output_tokens_details ?? null
})

const usageOf = (usage: WireUsage): Usage => {
  const cached = usage.cache_read_input_tokens ?? 0
  const written = usage.cache_creation_input_tokens ?? 0
  return {
    input_tokens: (usage.input_tokens ?? 0) + cached + written,
    cached_input_tokens: cached,
    cache_write_tokens: written,
    output_tokens: usage.output_tokens ?? 0,
    reasoning_tokens: usage.output_tokens_details?.thinking_tokens ?? 0
  }
}

class Translator {
  readonly #assembly: Assembly
  readonly #request: ModelRequest
  readonly #provider: string
  readonly #blocks: Array<OpenBlock> = []
  #usage: WireUsage = {}
  #stop: RawMessageDeltaEvent.Delta | undefined

  constructor(assembly: Assembly, request: ModelRequest, provider: string) {
    this.#assembly = assembly
    this.#request = request
    this.#provider = provider
  }

  readonly handle = (event: RawMessageStreamEvent): void => {
    switch (event.type) {
      case "content_block_delta":
        this.#delta(this.#block(event.index), event.delta)
        break
      case "content_block_start":
        this.#start(event.index, event.content_block)
        break
      case "message_start":
        this.#noteUsage(event.message.usage)
        break
      case "message_delta":
        this.#noteUsage(event.usage)
        if (event.delta?.stop_reason !== null && event.delta?.stop_reason !== undefined) this.#stop = event.delta
        break
      case "message_stop":
        this.#end()
        break
    }
  }

  #noteUsage(usage: WireUsage | null | undefined): void {
    if (usage === null || usage === undefined) return
    this.#usage = mergeUsage(this.#usage, usage)
    this.#assembly.noteUsage(usageOf(this.#usage))
  }

  #block(index: number): OpenBlock {
    const block = this.#blocks[index]
    if (block === undefined) throw new Error(`a delta for block ${index}, which was never started`)
    return block
  }

  #start(index: number, start: ContentBlock): void {
    const block = { start, text: "", signature: "", input: new ArgumentText(), citations: [] }
    this.#blocks[index] = block
    if (start.type === "text" && start.text !== "") this.#delta(block, { type: "text_delta", text: start.text })
    if (start.type === "thinking" && start.thinking !== "") {
      this.#delta(block, { type: "thinking_delta", thinking: start.thinking })
    }
    if (start.type === "thinking" && typeof start.signature === "string") block.signature = start.signature
  }

  #delta(block: OpenBlock, delta: RawContentBlockDelta): void {
    switch (delta.type) {
      case "text_delta":
        block.text += delta.text
        this.#assembly.assistantDelta(delta.text)
        break
      case "thinking_delta":
        block.text += delta.thinking
        this.#assembly.reasoningDelta(delta.thinking)
        break
      case "input_json_delta":
        if (this.#assembly.grow(delta.partial_json.length)) block.input.add(delta.partial_json)
        break
      case "signature_delta":
        block.signature += delta.signature
        break
      case "citations_delta":
        block.citations.push(delta.citation)
        break
    }
  }

  #opaque(block: unknown): RawPart {
    const origin = originOf(this.#provider, this.#request.model)
    return { type: "opaque", format: blockFormat, origin, json: JSON.stringify(block) }
  }

  #part(block: OpenBlock, cut: boolean): RawPart {
    const { start } = block
    if (start.type === "text" && block.citations.length === 0) return { type: "text", text: block.text }
    if (start.type === "thinking") return this.#opaque({ ...start, thinking: block.text, signature: block.signature })
    if (start.type !== "tool_use") return this.#opaque(sealed(block))
    const written = block.input.chars === 0 && hasKeys(start.input) ? JSON.stringify(start.input) : block.input.kept
    return {
      type: "raw_call",
      callId: start.id ?? "",
      toolName: start.name ?? "",
      arguments: written,
      argumentsChars: Math.max(block.input.chars, written.length),
      incomplete: cut && !isWhole(written)
    }
  }

  #refused(stop: RawMessageDeltaEvent.Delta): void {
    const details = stop.stop_details
    const message = details?.explanation ?? "the provider refused to answer"
    this.#assembly.fail(
      providerError({ kind: "refusal", provider: this.#provider, message, code: details?.category ?? undefined })
    )
  }

  #end(): void {
    const stop = this.#stop
    if (stop === undefined) return
    if (stop.stop_reason === "refusal") {
      this.#refused(stop)
      return
    }
    const stopReason = stopReasons[stop.stop_reason ?? "end_turn"] ?? "end_turn"
    const cut = stopReason === "max_output_tokens" || stopReason === "context_window"
    const last = this.#blocks.length - 1
    this.#assembly.complete({
      parts: this.#blocks.map((block, at) => this.#part(block, cut && at === last)),
      stopReason,
      requestId: this.#request.requestId,
      history: this.#request.messages
    })
  }
}

const hasKeys = (input: unknown): boolean =>
  typeof input === "object" && input !== null && Object.keys(input).length > 0

/** A block we pass through, with what its deltas brought. */
const sealed = (block: OpenBlock): unknown => {
  if (block.start.type === "text") return { ...block.start, text: block.text, citations: block.citations }
  if (block.start.type === "server_tool_use" && block.input.chars > 0) {
    return { ...block.start, input: JSON.parse(block.input.kept) }
  }
  return block.start
}

export const makeMessages = (config: AnthropicConfig): ModelProvider =>
  makeAdapter<RawMessageStreamEvent>(config, {
    translator: (assembly, request) => new Translator(assembly, request, config.name),
    open: async (request, tap, signal) => {
      const client = await openClient(config, tap)
      const info = config.modelInfo(originOf(config.name, request.model))
      const body = messagesBody(request, {
        provider: config.name,
        info,
        eagerToolInput: config.eagerToolInput ?? true
      })
      return client.messages.create(body, { signal })
    }
  })
