// Turns the text a model wrote as tool arguments into an object that is safe to use, or into a typed reason
// why it is not. Work is linear in the text, whatever the text is.
import type { JsonObject } from "./Canonical.ts"
import { limits } from "./ProviderLimits.ts"

export type ArgumentsFailure =
  | "invalid_json"
  | "not_an_object"
  | "too_large"
  | "too_deep"
  | "forbidden_key"
  | "incomplete"

export type ArgumentsOutcome =
  | { readonly _tag: "Parsed"; readonly value: JsonObject }
  | { readonly _tag: "Unusable"; readonly reason: ArgumentsFailure; readonly message: string }

const unusable = (reason: ArgumentsFailure, message: string): ArgumentsOutcome => ({
  _tag: "Unusable",
  reason,
  message
})

export const incompleteArguments: ArgumentsOutcome = unusable(
  "incomplete",
  "the answer ended before the arguments of this call were complete"
)

export const oversizedArguments = (chars: number): ArgumentsOutcome =>
  unusable("too_large", `the arguments have ${chars} characters; at most ${limits.argumentsCharsMax} are accepted`)

const quote = 0x22
const backslash = 0x5c
const isOpening = (code: number) => code === 0x7b || code === 0x5b
const isClosing = (code: number) => code === 0x7d || code === 0x5d

/** Deepest nesting of a JSON text, counted without building anything (a parser may recurse). */
const depthOf = (json: string): number => {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (inString) {
      if (code === backslash) at++
      else if (code === quote) inString = false
    } else if (code === quote) inString = true
    else if (isOpening(code)) deepest = Math.max(deepest, ++depth)
    else if (isClosing(code)) depth--
  }
  return deepest
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const hasForbiddenKey = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.some(hasForbiddenKey)
  if (!isRecord(value)) return false
  return Object.keys(value).some((key) => key === "__proto__" || hasForbiddenKey(value[key]))
}

/** Replaces unpaired surrogates, which no UTF-8 file, socket or log can hold. */
const wellFormed = (value: unknown): unknown => {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member)]))
}

const parseJson = (json: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(json) }
  } catch {
    return undefined
  }
}

const mayHoldSurrogate = (json: string) => !json.isWellFormed() || /\\u[dD][89a-fA-F]/.test(json)

export const parseArguments = (json: string): ArgumentsOutcome => {
  if (json.length > limits.argumentsCharsMax) return oversizedArguments(json.length)
  if (json.trim() === "") return { _tag: "Parsed", value: {} }
  const depth = depthOf(json)
  if (depth > limits.argumentsDepthMax) {
    return unusable(
      "too_deep",
      `the arguments are nested ${depth} deep; at most ${limits.argumentsDepthMax} is accepted`
    )
  }
  const parsed = parseJson(json)
  if (parsed === undefined) return unusable("invalid_json", "the arguments are not valid JSON")
  if (!isRecord(parsed.value)) return unusable("not_an_object", "the arguments are not a JSON object")
  if (json.includes("__proto__") || json.includes("\\u")) {
    if (hasForbiddenKey(parsed.value)) return unusable("forbidden_key", 'the key "__proto__" is not accepted')
  }
  if (!mayHoldSurrogate(json)) return { _tag: "Parsed", value: parsed.value }
  const repaired = wellFormed(parsed.value)
  return isRecord(repaired)
    ? { _tag: "Parsed", value: repaired }
    : unusable("not_an_object", "the arguments are not a JSON object")
}

/** Whether the last call of an answer that hit its output limit was still written out to its closing brace. */
export const isWhole = (json: string): boolean => json.trim() !== "" && parseArguments(json)._tag === "Parsed"
