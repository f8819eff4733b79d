// From the text of a message to a checked request. Nothing a client sends gets further than here unless it is exactly
// what the operation takes.
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { WireError } from "../../wire/Codes.ts"
import { isOperation, type OperationName, operations, requestSchema, roles } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import type { Principal } from "./Context.ts"

export interface Request {
  readonly id: string
  readonly op: OperationName
  readonly fields: Readonly<Record<string, unknown>>
  readonly idempotencyKey: string | undefined
}

export type Parsed =
  | { readonly _tag: "Request"; readonly request: Request }
  | { readonly _tag: "Refused"; readonly id: string | null; readonly error: WireError }

/** How deep the brackets of a text nest, without parsing it. */
export const depthOf = (text: string): number => {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inString) {
      if (code === 0x5c) at += 1
      else if (code === 0x22) inString = false
    } else if (code === 0x22) inString = true
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (code === 0x7d || code === 0x5d) depth -= 1
  }
  return deepest
}

const refused = (id: string | null, code: WireError["code"], message: string): Parsed => ({
  _tag: "Refused",
  id,
  error: { code, message }
})

/** The JSON object in a message, or why there is none. */
export const parseObject = (text: string): Readonly<Record<string, unknown>> | string => {
  if (depthOf(text) > limits.messageDepthMax) return `the message nests deeper than ${limits.messageDepthMax} levels`
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value)
    return isObject ? (value as Readonly<Record<string, unknown>>) : "the message is not a JSON object"
  } catch {
    return "the message is not JSON"
  }
}

const decoders = new Map<OperationName, (value: unknown) => Result.Result<unknown, unknown>>()

const decoderOf = (name: OperationName) => {
  let decoder = decoders.get(name)
  if (decoder === undefined) {
    decoder = Schema.decodeUnknownResult(requestSchema(name), { onExcessProperty: "error" })
    decoders.set(name, decoder)
  }
  return decoder
}

/** Why something does not fit its schema, in one line. */
export const reasonOf = (failure: unknown): string =>
  (failure instanceof Error ? failure.message : String(failure)).replaceAll("\n", " ").slice(0, 500).toWellFormed()

/** Checks a message that is an object: its id, its operation, and every field. */
export const parseRequest = (value: Readonly<Record<string, unknown>>): Parsed => {
  const { id, op } = value
  if (typeof id !== "string" || id.length > limits.idCharsMax) {
    return refused(null, "bad_request", `id must be a string of at most ${limits.idCharsMax} characters`)
  }
  if (typeof op !== "string") return refused(id, "bad_request", "op must be a string")
  if (!isOperation(op)) return refused(id, "bad_request", `there is no operation "${op.slice(0, 80)}"`)
  const decoded = decoderOf(op)(value)
  if (Result.isFailure(decoded)) return refused(id, "bad_request", reasonOf(decoded.failure))
  const { id: _id, op: _op, idempotency_key: key, ...fields } = decoded.success as Readonly<Record<string, unknown>>
  return { _tag: "Request", request: { id, op, fields, idempotencyKey: typeof key === "string" ? key : undefined } }
}

/** Whether the principal's role is enough for the operation. */
export const mayAsk = (principal: Principal, op: OperationName): boolean =>
  roles.indexOf(principal.role) >= roles.indexOf(operations[op].role)

/** The hash that tells whether a repeated key came with the same body. */
export const bodyHash = (op: OperationName, fields: Readonly<Record<string, unknown>>): string => {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([key, member]) => [key, sorted(member)])
    )
  }
  return createHash("sha256")
    .update(JSON.stringify([op, sorted(fields)]))
    .digest("hex")
}
