// Chat Completions at any compatible address, through the official OpenAI SDK. Compatible servers differ most in
// what they leave out: usage, call ids, indices, `[DONE]`. The terminal event is the finish reason; what follows
// it (usage, `[DONE]`) is welcome but not needed.
import type { ChatCompletionChunk } from "openai/resources/chat/completions"
import type { CompletionUsage } from "openai/resources/completions"
import { makeAdapter } from "../Adapter.ts"
import { isWhole } from "../Arguments.ts"
import { ArgumentText, type Assembly, type RawPart } from "../Assembly.ts"
import type { ModelRequest } from "../Canonical.ts"
import type { HttpProviderConfig } from "../HttpProvider.ts"
import { type ModelProvider, originOf, type StopReason, type Usage } from "../Provider.ts"
import { type ErrorKind, providerError } from "../ProviderErrors.ts"
import { limits } from "../ProviderLimits.ts"
import { type ChatOptions, type ChatReasoning, chatBody, reasoningFormat } from "./ChatRequest.ts"
import { openaiBaseUrl, openClient } from "./Client.ts"

export interface ChatConfig extends HttpProviderConfig {
  readonly maxTokensField?: ChatOptions["maxTokensField"]
  readonly includeUsage?: boolean
  readonly replayReasoning?: boolean
}

/** What servers add to the official delta. */
type Delta = ChatCompletionChunk.Choice["delta"] & {
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly reasoning_details?: ReadonlyArray<unknown> | null
}

type ToolCallDelta = ChatCompletionChunk.Choice.Delta.ToolCall

interface OpenCall {
  id: string
  name: string
  readonly index: number | undefined
  readonly text: ArgumentText
}

const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ["length", "max_output_tokens"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"]
])

const failedReasons: ReadonlyMap<string, ErrorKind> = new Map([
  ["content_filter", "content_filter"],
  ["error", "server_error"],
  ["abort", "truncated"]
])

const usageOf = (usage: CompletionUsage): Usage => ({
  input_tokens: usage.prompt_tokens ?? 0,
  cached_input_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  cache_write_tokens: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
  output_tokens: usage.completion_tokens ?? 0,
  reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0
})

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** A call that began without an id may get it later: the fragment that brings it then brings no name. */
const nameless = (fragment: ToolCallDelta, newest: OpenCall | undefined): OpenCall | undefined =>
  newest?.id === "" && textOf(fragment.function?.name) === "" ? newest : undefined

const beginsAnother = (open: OpenCall, fragment: ToolCallDelta): boolean => {
  const name = textOf(fragment.function?.name)
  if (name === "" || open.name === "" || !isWhole(open.text.kept)) return false
  return name !== open.name || textOf(fragment.function?.arguments).trim() !== ""
}

class Translator {
  readonly #assembly: Assembly
  readonly #request: ModelRequest
  readonly #provider: string
  readonly #calls: Array<OpenCall> = []
  #finish: string | undefined
  #reasoningContent = ""
  #reasoning = ""
  readonly #reasoningDetails: Array<unknown> = []
  #refusal = ""

  constructor(assembly: Assembly, request: ModelRequest, provider: string) {
    this.#assembly = assembly
    this.#request = request
    this.#provider = provider
  }

  readonly handle = (chunk: ChatCompletionChunk): void => {
    if (chunk.usage !== undefined && chunk.usage !== null) this.#assembly.noteUsage(usageOf(chunk.usage))
    const choice = chunk.choices?.[0]
    if (choice === undefined) return
    // Servers send `delta: null` in closing chunks, whatever the specification says.
    const delta: Delta | null | undefined = choice.delta
    if (delta !== undefined && delta !== null) this.#delta(delta)
    if (typeof choice.finish_reason === "string") this.#finish = choice.finish_reason
  }

  #delta(delta: Delta): void {
    if (typeof delta.content === "string") this.#assembly.assistantDelta(delta.content)
    if (typeof delta.reasoning_content === "string") {
      this.#reasoningContent += delta.reasoning_content
      this.#assembly.reasoningDelta(delta.reasoning_content)
    } else if (typeof delta.reasoning === "string") {
      this.#reasoning += delta.reasoning
      this.#assembly.reasoningDelta(delta.reasoning)
    }
    if (Array.isArray(delta.reasoning_details)) this.#reasoningDetails.push(...delta.reasoning_details)
    if (typeof delta.refusal === "string") this.#refusal += delta.refusal
    if (Array.isArray(delta.tool_calls)) for (const call of delta.tool_calls) this.#toolCall(call)
  }

  /**
   * The call a fragment belongs to: by index, else by id, else the newest. An id that is null or empty says nothing. A new
   * id is another call, and so is a name that comes with the beginning of arguments when those before it are complete.
   */
  #openCall(fragment: ToolCallDelta): OpenCall | undefined {
    const id = textOf(fragment.id)
    const candidate =
      typeof fragment.index === "number"
        ? this.#calls.findLast((call) => call.index === fragment.index)
        : id === ""
          ? this.#calls.at(-1)
          : (this.#calls.find((call) => call.id === id) ?? nameless(fragment, this.#calls.at(-1)))
    if (candidate === undefined) return undefined
    const another = id !== "" && candidate.id !== "" ? candidate.id !== id : beginsAnother(candidate, fragment)
    return another ? undefined : candidate
  }

  #toolCall(fragment: ToolCallDelta): void {
    const known = this.#openCall(fragment)
    const index = typeof fragment.index === "number" ? fragment.index : undefined
    const call = known ?? { id: "", name: "", index, text: new ArgumentText() }
    if (known === undefined) {
      if (this.#calls.length > limits.toolCallsMax) return
      this.#calls.push(call)
    }
    if (call.id === "" && typeof fragment.id === "string") call.id = fragment.id
    if (call.name === "" && typeof fragment.function?.name === "string") call.name = fragment.function.name
    const text: unknown = fragment.function?.arguments
    if (text === undefined || text === null) return
    // Some servers send the arguments as an object instead of as text.
    const written = typeof text === "string" ? text : JSON.stringify(text)
    if (this.#assembly.grow(written.length)) call.text.add(written)
  }

  #reasoningPart(): ReadonlyArray<RawPart> {
    const kept: ChatReasoning = {
      ...(this.#reasoningContent === "" ? {} : { reasoning_content: this.#reasoningContent }),
      ...(this.#reasoning === "" ? {} : { reasoning: this.#reasoning }),
      ...(this.#reasoningDetails.length === 0 ? {} : { reasoning_details: this.#reasoningDetails })
    }
    if (Object.keys(kept).length === 0) return []
    const origin = originOf(this.#provider, this.#request.model)
    return [{ type: "opaque", format: reasoningFormat, origin, json: JSON.stringify(kept) }]
  }

  #parts(stopReason: StopReason): ReadonlyArray<RawPart> {
    const last = this.#calls.length - 1
    return [
      ...this.#reasoningPart(),
      { type: "text", text: this.#assembly.text },
      ...this.#calls.map(
        (call, at): RawPart => ({
          type: "raw_call",
          callId: call.id,
          toolName: call.name,
          arguments: call.text.kept,
          argumentsChars: call.text.chars,
          incomplete: stopReason === "max_output_tokens" && at === last && !isWhole(call.text.kept)
        })
      )
    ]
  }

  /** The stream is over: the answer is complete if its finish reason came. */
  readonly end = (): void => {
    if (this.#finish === undefined) return
    const failed = failedReasons.get(this.#finish)
    if (failed !== undefined) {
      const message = `the server finished with "${this.#finish}"`
      this.#assembly.fail(providerError({ kind: failed, provider: this.#provider, message }))
      return
    }
    if (this.#refusal !== "") {
      this.#assembly.fail(providerError({ kind: "refusal", provider: this.#provider, message: this.#refusal }))
      return
    }
    const stopReason = stopReasons.get(this.#finish) ?? "end_turn"
    this.#assembly.complete({
      parts: this.#parts(stopReason),
      stopReason: stopReason === "tool_calls" && this.#calls.length === 0 ? "end_turn" : stopReason,
      requestId: this.#request.requestId,
      history: this.#request.messages
    })
  }
}

const optionsOf = (config: ChatConfig): ChatOptions => {
  const official = (config.baseUrl ?? openaiBaseUrl) === openaiBaseUrl
  return {
    provider: config.name,
    maxTokensField: config.maxTokensField ?? (official ? "max_completion_tokens" : "max_tokens"),
    includeUsage: config.includeUsage ?? true,
    replayReasoning: config.replayReasoning ?? true
  }
}

export const makeChatCompletions = (config: ChatConfig): ModelProvider =>
  makeAdapter<ChatCompletionChunk>(config, {
    translator: (assembly, request) => new Translator(assembly, request, config.name),
    open: async (request, tap, signal) => {
      const client = await openClient(config, tap)
      return client.chat.completions.create(chatBody(request, optionsOf(config)), { signal })
    }
  })
