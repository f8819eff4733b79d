/**
 * From a model's answer to runes: the text once, the items in order, one call rune
 * for each wish. Wishes that cannot run (no such tool, arguments that are not a
 * JSON object, too many, said twice) get their typed result in the same batch.
 */
import { type CallId, callIdOf } from "../../rune/Ids.ts"
import type { PayloadOf } from "../../rune/Kinds.ts"
import type { AssistantItem } from "../../rune/kinds/turn.ts"
import { canonicalHash, isDeeperThan } from "../Canonical.ts"
import type { ResponseItem, ToolFacts } from "../Command.ts"
import { type ErrorCode, errorInfo } from "../ErrorTable.ts"
import { limits } from "../MachineLimits.ts"

type CallItem = Extract<ResponseItem, { readonly type: "tool_call" }>

/** Nothing is known of it, so the worst is assumed; it will not run anyway. */
const unknownFacts: ToolFacts = { effect_class: "effect", mutating: false }

type ParsedArguments =
  | { readonly _tag: "Good"; readonly value: unknown }
  | { readonly _tag: "Bad"; readonly code: ErrorCode; readonly message: string }

/** A model that calls without arguments sometimes writes nothing at all. */
export const parseArguments = (text: string): ParsedArguments => {
  if (text.length > limits.argumentsCharsMax) {
    const message = `arguments have ${text.length} characters, the limit is ${limits.argumentsCharsMax}`
    return { _tag: "Bad", code: "arguments_too_large", message }
  }
  let value: unknown
  try {
    value = text.trim() === "" ? {} : JSON.parse(text)
  } catch (error) {
    return { _tag: "Bad", code: "invalid_arguments", message: `arguments are not JSON: ${(error as Error).message}` }
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { _tag: "Bad", code: "invalid_arguments", message: "arguments are not a JSON object" }
  }
  if (isDeeperThan(value, limits.argumentsDepthMax)) {
    const message = `arguments nest deeper than ${limits.argumentsDepthMax} levels`
    return { _tag: "Bad", code: "invalid_arguments", message }
  }
  return { _tag: "Good", value }
}

export interface PlannedCall {
  readonly call: PayloadOf<"tool.call">
  /** Why it cannot run; absent when it can. */
  readonly refusal?: { readonly code: ErrorCode; readonly message: string }
}

interface Surroundings {
  readonly index: number
  readonly isRepeated: boolean
}

const refusalOf = (item: CallItem, parsed: ParsedArguments, around: Surroundings): PlannedCall["refusal"] => {
  if (around.index >= limits.callsPerResponseMax) {
    return { code: "too_many_calls", message: `only ${limits.callsPerResponseMax} calls of one answer are run` }
  }
  if (around.isRepeated) {
    return { code: "duplicate_call_id", message: `call id ${item.provider_call_id} was used twice in one answer` }
  }
  if (item.tool === undefined) return { code: "unknown_tool", message: `there is no tool named ${item.tool_name}` }
  return parsed._tag === "Bad" ? { code: parsed.code, message: parsed.message } : undefined
}

const planCall = (item: CallItem, callId: CallId, around: Surroundings): PlannedCall => {
  const parsed: ParsedArguments =
    item.unusable === undefined ? parseArguments(item.arguments_text) : { _tag: "Bad", ...item.unusable }
  const facts = item.tool ?? unknownFacts
  const values = parsed._tag === "Good" ? parsed.value : {}
  const refusal = refusalOf(item, parsed, around)
  const kept = item.arguments_text.slice(0, limits.argumentsKeptCharsMax)
  return {
    call: {
      call_id: callId,
      tool_name: item.tool_name,
      arguments: values,
      arguments_hash: canonicalHash(values),
      ...(parsed._tag === "Good" ? {} : { arguments_text: kept }),
      effect_class: facts.effect_class,
      mutating: facts.mutating,
      ...(facts.timeout_ms === undefined ? {} : { timeout_ms: facts.timeout_ms }),
      ...(item.provider_call_id === undefined ? {} : { provider_call_id: item.provider_call_id }),
      ...(facts.provenance === undefined ? {} : { provenance: facts.provenance }),
      ...(facts.origin === undefined ? {} : { origin: facts.origin })
    },
    ...(refusal === undefined ? {} : { refusal })
  }
}

export interface PlannedResponse {
  readonly content: string
  readonly items: ReadonlyArray<AssistantItem>
  readonly calls: ReadonlyArray<PlannedCall>
}

const nativeOf = (item: ResponseItem) => (item.native === undefined ? {} : { native: item.native })

/** Lays an answer out; calls are numbered on from `nextCall`. */
export const planResponse = (response: ReadonlyArray<ResponseItem>, nextCall: number): PlannedResponse => {
  const items: Array<AssistantItem> = []
  const calls: Array<PlannedCall> = []
  const seen = new Set<string>()
  let content = ""
  for (const item of response) {
    if (item.type === "text") {
      content += item.text
      items.push({ type: "text", chars: item.text.length, ...nativeOf(item) })
    } else if (item.type === "reasoning") {
      items.push({ type: "reasoning", ...(item.text === undefined ? {} : { text: item.text }), ...nativeOf(item) })
    } else {
      const providerId = item.provider_call_id
      const isRepeated = providerId !== undefined && seen.has(providerId)
      if (providerId !== undefined) seen.add(providerId)
      const planned = planCall(item, callIdOf(nextCall + calls.length), { index: calls.length, isRepeated })
      calls.push(planned)
      const id = providerId === undefined ? {} : { provider_call_id: providerId }
      items.push({ type: "tool_call", call_id: planned.call.call_id, ...id, ...nativeOf(item) })
    }
  }
  return { content, items, calls }
}

/** The result of a call that will never run. */
export const refusedResult = (planned: PlannedCall): PayloadOf<"tool.result"> | undefined =>
  planned.refusal === undefined
    ? undefined
    : {
        call_id: planned.call.call_id,
        status: "error",
        error: errorInfo(planned.refusal.code, planned.refusal.message),
        duration_ms: 0
      }

/** The end of a turn repeats its final text, up to a limit. */
export const finalOutput = (
  content: string
): Pick<PayloadOf<"turn.completed">, "final_output" | "final_output_truncated"> =>
  content.length <= limits.finalOutputCharsMax
    ? { final_output: content }
    : { final_output: content.slice(0, limits.finalOutputCharsMax), final_output_truncated: true }
