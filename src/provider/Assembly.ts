// Builds one canonical answer out of whatever pieces a wire format delivers, and emits its events in the fixed
// order: deltas as they come; then, once the provider has said that the answer is complete, the tool calls, the
// usage, the final message and `done`. Holds the only mutable state of a running call.
import * as Exit from "effect/Exit"
import { type ArgumentsOutcome, incompleteArguments, oversizedArguments, parseArguments } from "./Arguments.ts"
import type { AssistantPart, Message } from "./Canonical.ts"
import type { ProviderEvent, StopReason, ToolCallEvent, Usage } from "./Provider.ts"
import { type ProviderError, providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

/** A tool call as the wire delivered it; ids and names may be missing. */
export interface RawCall {
  readonly type: "raw_call"
  readonly callId: string
  readonly toolName: string
  readonly arguments: string
  /** Length of the arguments, which may exceed what was kept. */
  readonly argumentsChars: number
  /** The wire itself said, or implied, that the arguments stop short. */
  readonly incomplete: boolean
}

export type RawPart = Exclude<AssistantPart, { readonly type: "tool_call" }> | RawCall

const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff

/** Holds back half a character until its other half arrives: any encoder in between would destroy it. */
class WholeCharacters {
  #half = ""

  push(delta: string): string {
    const joined = this.#half === "" ? delta : this.#half + delta
    if (!isHighSurrogate(joined.charCodeAt(joined.length - 1))) {
      this.#half = ""
      return joined.toWellFormed()
    }
    this.#half = joined.slice(-1)
    return joined.slice(0, -1).toWellFormed()
  }
}

/** Collects argument text up to the limit and counts the rest. */
export class ArgumentText {
  kept = ""
  chars = 0

  add(fragment: string): void {
    this.chars += fragment.length
    if (this.kept.length <= limits.argumentsCharsMax) this.kept += fragment
  }
}

const historyCallIds = (messages: ReadonlyArray<Message>): Set<string> => {
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const part of message.content) if (part.type === "tool_call") ids.add(part.call_id)
  }
  return ids
}

const uniqueId = (wanted: string, requestId: string, index: number, taken: Set<string>): string => {
  const base = wanted === "" ? `call_${requestId}_${index}` : wanted
  let id = base
  for (let copy = 2; taken.has(id); copy++) id = `${base}_${copy}`
  taken.add(id)
  return id
}

const outcomeOf = (call: RawCall): ArgumentsOutcome => {
  if (call.incomplete) return incompleteArguments
  return call.argumentsChars > limits.argumentsCharsMax
    ? oversizedArguments(call.argumentsChars)
    : parseArguments(call.arguments)
}

/** Makes the arguments of a call of what was sent for them, where a tool had to be described differently. */
export type Unpack = (toolName: string, outcome: ArgumentsOutcome) => ArgumentsOutcome

export type Emit = (event: ProviderEvent) => void

export class Assembly {
  /** How the answer ended, once it has. */
  outcome: Exit.Exit<void, ProviderError> | undefined
  usage: Usage | undefined
  text = ""
  #chars = 0
  readonly #textCharacters = new WholeCharacters()
  readonly #reasoningCharacters = new WholeCharacters()
  readonly #provider: string
  readonly #emit: Emit
  readonly #unpack: Unpack

  constructor(provider: string, emit: Emit, unpack: Unpack = (_, outcome) => outcome) {
    this.#provider = provider
    this.#emit = emit
    this.#unpack = unpack
  }

  /** Counts towards the size of the answer; false once it is too large (the call has then failed). */
  grow(chars: number): boolean {
    this.#chars += chars
    if (this.#chars <= limits.answerCharsMax) return true
    this.fail(
      providerError({
        kind: "malformed_response",
        provider: this.#provider,
        message: `the answer is longer than ${limits.answerCharsMax} characters`
      })
    )
    return false
  }

  assistantDelta(delta: string): void {
    if (delta === "" || !this.grow(delta.length)) return
    const content = this.#textCharacters.push(delta)
    if (content === "") return
    this.text += content
    this.#emit({ type: "assistant_delta", content })
  }

  reasoningDelta(delta: string): void {
    if (delta === "" || !this.grow(delta.length)) return
    const content = this.#reasoningCharacters.push(delta)
    if (content !== "") this.#emit({ type: "reasoning_delta", content })
  }

  /** The provider said what the answer uses so far. */
  noteUsage(usage: Usage): void {
    if (this.outcome !== undefined) return
    this.usage = usage
    this.#emit({ type: "usage_so_far", usage })
  }

  /** The provider said the answer is complete. */
  complete(answer: {
    readonly parts: ReadonlyArray<RawPart>
    readonly stopReason: StopReason
    readonly requestId: string
    readonly history: ReadonlyArray<Message>
  }): void {
    if (this.outcome !== undefined) return
    const calls = this.#callEvents(answer.parts, answer.requestId, answer.history)
    if (calls === undefined) return
    for (const call of calls) this.#emit(call)
    if (this.usage !== undefined) this.#emit({ type: "usage", usage: this.usage })
    const items = itemsOf(answer.parts, calls)
    this.#emit({ type: "assistant_final", content: this.text.toWellFormed() || textIn(items), items })
    const stopReason = calls.length > 0 && answer.stopReason === "end_turn" ? "tool_calls" : answer.stopReason
    this.outcome = Exit.void
    this.#emit({ type: "done", stop_reason: stopReason })
  }

  #callEvents(
    parts: ReadonlyArray<RawPart>,
    requestId: string,
    history: ReadonlyArray<Message>
  ): ReadonlyArray<ToolCallEvent> | undefined {
    const raw = parts.filter((part) => part.type === "raw_call")
    if (raw.length > limits.toolCallsMax) {
      const message = `the answer holds ${raw.length} tool calls; at most ${limits.toolCallsMax} are accepted`
      this.fail(providerError({ kind: "malformed_response", provider: this.#provider, message }))
      return undefined
    }
    const taken = raw.length === 0 ? new Set<string>() : historyCallIds(history)
    return raw.map((call, index) =>
      callEvent(call, index, uniqueId(call.callId.toWellFormed(), requestId, index, taken), this.#unpack)
    )
  }

  fail(error: ProviderError): void {
    if (this.outcome !== undefined) return
    if (this.usage !== undefined) this.#emit({ type: "usage", usage: this.usage })
    this.outcome = Exit.fail(error)
  }
}

/** Text of an answer whose server sent it whole instead of in deltas. */
const textIn = (items: ReadonlyArray<AssistantPart>): string =>
  items.map((item) => (item.type === "text" ? item.text : "")).join("")

const callEvent = (call: RawCall, index: number, call_id: string, unpack: Unpack): ToolCallEvent => {
  const written = outcomeOf(call)
  const parsed = unpack(call.toolName, written)
  const kept =
    parsed._tag === "Unusable"
      ? call.arguments.slice(0, limits.unusableArgumentsCharsKept)
      : parsed === written
        ? call.arguments
        : JSON.stringify(parsed.value)
  return {
    type: "tool_call",
    call_id,
    tool_name: call.toolName.toWellFormed().slice(0, 256),
    arguments: kept.toWellFormed(),
    parsed,
    index
  }
}

const itemsOf = (parts: ReadonlyArray<RawPart>, calls: ReadonlyArray<ToolCallEvent>): ReadonlyArray<AssistantPart> => {
  let next = 0
  const items: Array<AssistantPart> = []
  for (const part of parts) {
    if (part.type === "raw_call") {
      const call = calls[next++]
      if (call === undefined) continue
      items.push({ type: "tool_call", call_id: call.call_id, tool_name: call.tool_name, arguments: call.arguments })
    } else if (part.type === "text") {
      if (part.text !== "") items.push({ ...part, text: part.text.toWellFormed() })
    } else items.push(part)
  }
  return items
}
