/**
 * A hand-written check that says yes to exactly the envelopes the schema accepts
 * and costs a tenth of it: replay is measured against bare JSON.parse. Ids that
 * were seen last are compared, not matched again. A property test holds it to the
 * schema; a refusal here is explained by the schema.
 */
import { isAgentId, isConversationId, isTurnId } from "./Ids.ts"

const remember = (matches: (input: unknown) => boolean): ((input: unknown) => boolean) => {
  let last: unknown
  return (input) => {
    if (input === last && last !== undefined) return true
    if (!matches(input)) return false
    last = input
    return true
  }
}

const isKnownConversation = remember(isConversationId)
const isKnownAgent = remember(isAgentId)
const isKnownTurn = remember(isTurnId)

const isPositive = (input: unknown): boolean => Number.isSafeInteger(input) && (input as number) >= 1

/** `run_` and sixteen lower-case hexadecimal digits. */
const isRuneId = (input: unknown): boolean => {
  if (typeof input !== "string" || input.length !== 20 || !input.startsWith("run_")) return false
  for (let at = 4; at < 20; at++) {
    const code = input.charCodeAt(at)
    if (!((code >= 48 && code <= 57) || (code >= 97 && code <= 102))) return false
  }
  return true
}

const isVisibility = (input: unknown): boolean => input === "public" || input === "internal" || input === "secret"

const isKey = (input: unknown): boolean => typeof input === "string" && input.length >= 1 && input.length <= 256

const isHash = (input: unknown): boolean => typeof input === "string" && /^[0-9a-f]{64}$/u.test(input)

// An absent key reads as undefined; JSON cannot hold undefined, so the two never differ here.
const optional = (input: unknown, accepts: (input: unknown) => boolean): boolean =>
  input === undefined || accepts(input)

/** Every envelope field but kind, version and payload, which their own checks cover. */
export const acceptsEnvelope = (value: unknown): boolean => {
  const envelope = value as Readonly<Record<string, unknown>>
  return (
    isPositive(envelope["event_id"]) &&
    isRuneId(envelope["rune_id"]) &&
    isKnownConversation(envelope["conversation_id"]) &&
    optional(envelope["agent_id"], isKnownAgent) &&
    optional(envelope["turn_id"], isKnownTurn) &&
    isVisibility(envelope["visibility"]) &&
    (isPositive(envelope["ts_ms"]) || envelope["ts_ms"] === 0) &&
    optional(envelope["cause"], isPositive) &&
    optional(envelope["idempotency_key"], isKey) &&
    optional(envelope["idempotency_hash"], isHash)
  )
}
