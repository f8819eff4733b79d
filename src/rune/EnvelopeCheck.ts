/**
 * Hand-written checks of what almost every rune is made of: one says yes to exactly
 * the envelopes the schema accepts, one to most payloads of streamed text, and they
 * cost a tenth of it. Replay is measured against bare JSON.parse. Ids that were seen
 * lately are looked up, not matched again. Property tests hold both to the schema; a
 * refusal here is explained, or overruled, by the schema.
 */
import { isAgentId, isConversationId, isRequestId, isTurnId } from "./Ids.ts"

/** Ids of each kind that are remembered; as many again from before the last clearing. */
const remembered = 1024

const remember = (matches: (input: unknown) => boolean): ((input: unknown) => boolean) => {
  let last: unknown
  let recent = new Set<unknown>()
  let older = new Set<unknown>()
  const keep = (input: unknown): void => {
    if (recent.size >= remembered) {
      older = recent
      recent = new Set()
    }
    recent.add(input)
  }
  return (input) => {
    if (input === last && last !== undefined) return true
    if (!recent.has(input)) {
      if (!older.has(input) && !matches(input)) return false
      keep(input)
    }
    last = input
    return true
  }
}

const isKnownConversation = remember(isConversationId)
const isKnownAgent = remember(isAgentId)
const isKnownTurn = remember(isTurnId)
const isKnownRequest = remember(isRequestId)

const isPositive = (input: unknown): boolean => Number.isSafeInteger(input) && (input as number) >= 1

/** 1 for the code of a lower-case hexadecimal digit. One look at a table is half of two comparisons. */
const isDigit = new Uint8Array(0x1_0000)
for (const digit of "0123456789abcdef") isDigit[digit.charCodeAt(0)] = 1

/** `run_` and sixteen lower-case hexadecimal digits. */
const isRuneId = (input: unknown): boolean => {
  if (typeof input !== "string" || input.length !== 20 || !input.startsWith("run_")) return false
  let all = 1
  for (let at = 4; at < 20; at++) all &= isDigit[input.charCodeAt(at)] ?? 0
  return all === 1
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

/** Yes is certain: text of a request, as it is streamed. Of anything else the schema decides. */
export const isStreamedText = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false
  const { content, request_id } = value as Readonly<Record<string, unknown>>
  return typeof content === "string" && isKnownRequest(request_id)
}
