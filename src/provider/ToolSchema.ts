// Makes the description of any tool one that all providers take: a root that is a plain object with properties. A root
// that says more (anyOf, oneOf, allOf, a reference, …) moves into one property; the calls of such a tool are packed the
// same way in what is sent, and unpacked before anybody runs them. Nobody outside of the adapters sees any of it.
import { type ArgumentsOutcome, parseArguments } from "./Arguments.ts"
import type { JsonObject, Message, ModelRequest, ToolDefinition } from "./Canonical.ts"

/** The one property of a packed description. */
export const packedKey = "input"

/** What providers refuse at the root of a description. */
const refusedAtRoot = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$dynamicRef"]

/** Keywords whose value names things that are schemas in turn, and keywords whose value is plain data. */
const named: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas"
])
const plain: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"])
const shared = ["$defs", "definitions"]

const isMap = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Where a local reference leads once its root has moved; what is shared stays at the root. */
const movedReference = (reference: string): string => {
  if (!reference.startsWith("#")) return reference
  const isShared = shared.some((key) => reference === `#/${key}` || reference.startsWith(`#/${key}/`))
  return isShared || !/^#(?:\/|$)/.test(reference) ? reference : `#/properties/${packedKey}${reference.slice(1)}`
}

type Rewrite = (reference: string) => string

/** Lists need items: a provider refuses every tool of a request for one that has none. */
const withItems = (schema: JsonObject): JsonObject => {
  const isList = schema["type"] === "array" || (Array.isArray(schema["type"]) && schema["type"].includes("array"))
  return isList && !("items" in schema) ? { ...schema, items: {} } : schema
}

const rewritten = (schema: unknown, rewrite: Rewrite): unknown => {
  if (Array.isArray(schema)) return schema.map((one) => rewritten(one, rewrite))
  if (!isMap(schema)) return schema
  const entries = Object.entries(withItems(schema)).map(([key, value]): [string, unknown] => {
    if (key === "$ref" && typeof value === "string") return [key, rewrite(value)]
    if (plain.has(key)) return [key, value]
    if (!named.has(key) || !isMap(value)) return [key, rewritten(value, rewrite)]
    return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, rewritten(one, rewrite)]))]
  })
  return Object.fromEntries(entries)
}

const mapOf = (value: unknown): JsonObject => (isMap(value) ? value : {})

const packed = (schema: JsonObject): JsonObject => {
  const inner = Object.fromEntries(
    Object.entries(schema).filter(([key]) => !shared.includes(key) && key !== "$schema" && key !== "$id")
  )
  const kept = shared
    .filter((key) => key in schema)
    .map((key) => [key, mapOf(rewritten({ [key]: schema[key] }, movedReference))[key]])
  return {
    type: "object",
    properties: { [packedKey]: rewritten(inner, movedReference) },
    required: [packedKey],
    ...Object.fromEntries(kept)
  }
}

interface Shaped {
  readonly parameters: JsonObject
  readonly isPacked: boolean
}

const shape = (schema: JsonObject): Shaped => {
  const type = schema["type"]
  const isPacked = refusedAtRoot.some((key) => key in schema) || (type !== undefined && type !== "object")
  if (isPacked) return { parameters: packed(schema), isPacked }
  const { $schema: _schema, $id: _id, ...rest } = mapOf(rewritten(schema, (reference) => reference))
  return { parameters: { ...rest, type: "object", properties: mapOf(rest["properties"]) }, isPacked }
}

const known = new WeakMap<JsonObject, Shaped>()

const shapeOf = (schema: JsonObject): Shaped => {
  const before = known.get(schema)
  if (before !== undefined) return before
  const made = shape(schema)
  known.set(schema, made)
  return made
}

export interface ShapedRequest {
  readonly request: ModelRequest
  /** The arguments of a call as its tool knows them. */
  readonly unpack: (toolName: string, outcome: ArgumentsOutcome) => ArgumentsOutcome
}

/** A model may leave out the wrapping, or write what is inside as text. */
const unpacked = (outcome: ArgumentsOutcome): ArgumentsOutcome => {
  if (outcome._tag === "Unusable") return outcome
  const { [packedKey]: inner, ...others } = outcome.value
  if (Object.keys(others).length > 0) return outcome
  if (isMap(inner)) return { _tag: "Parsed", value: inner }
  const read = typeof inner === "string" ? parseArguments(inner) : outcome
  return read._tag === "Parsed" ? read : outcome
}

const packedCalls = (message: Message, isPacked: (name: string) => boolean): Message => {
  if (message.role !== "assistant") return message
  const content = message.content.map((part) => {
    if (part.type !== "tool_call" || !isPacked(part.tool_name)) return part
    const outcome = parseArguments(part.arguments)
    return outcome._tag === "Unusable" ? part : { ...part, arguments: JSON.stringify({ [packedKey]: outcome.value }) }
  })
  return { ...message, content }
}

/** The request with every tool, and every call of it, in the form that all providers take. */
export const shapeRequest = (request: ModelRequest): ShapedRequest => {
  const { tools } = request
  if (tools === undefined) return { request, unpack: (_, outcome) => outcome }
  const names = new Set<string>()
  const shaped = tools.map((tool): ToolDefinition => {
    const { isPacked, parameters } = shapeOf(tool.parameters)
    if (isPacked) names.add(tool.name)
    return { ...tool, parameters }
  })
  const isPacked = (name: string): boolean => names.has(name)
  const messages = names.size === 0 ? request.messages : request.messages.map((one) => packedCalls(one, isPacked))
  return {
    request: { ...request, messages, tools: shaped },
    unpack: (name, outcome) => (isPacked(name) ? unpacked(outcome) : outcome)
  }
}
