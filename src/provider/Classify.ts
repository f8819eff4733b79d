// From what a provider said to the kind of error it is. Status first where there is one, then the provider's
// own code, then (only for the overflow of the context window, which several servers report in prose alone)
// the text. Every provider's vocabulary is in the tables below, nowhere else.
import { type ErrorKind, type ProviderError, providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"
import { type HeaderReader, parseRetryAfterMs } from "./RetryAfter.ts"

/** A failure as it came over the wire, before it has a meaning. */
export interface WireFailure {
  readonly provider: string
  readonly status?: number | undefined
  /** Codes and types in the body, most specific first. */
  readonly codes: ReadonlyArray<string>
  readonly message: string
  readonly headers?: HeaderReader | undefined
  readonly providerRequestId?: string | undefined
  readonly nowMs: number
}

const kindOfCode: ReadonlyMap<string, ErrorKind> = new Map([
  ["overloaded_error", "overloaded"],
  ["overloaded", "overloaded"],
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["service_unavailable", "overloaded"],
  ["rate_limit_error", "rate_limited"],
  ["rate_limit_exceeded", "rate_limited"],
  ["ramp_limit_exceeded", "rate_limited"],
  ["insufficient_quota", "quota_exceeded"],
  ["billing_error", "quota_exceeded"],
  ["billing_hard_limit_reached", "quota_exceeded"],
  ["enforced_spend_limit_reached", "quota_exceeded"],
  ["api_error", "server_error"],
  ["server_error", "server_error"],
  ["internal_server_error", "server_error"],
  ["timeout_error", "timeout"],
  ["authentication_error", "authentication"],
  ["permission_error", "authentication"],
  ["invalid_api_key", "authentication"],
  ["context_length_exceeded", "context_exceeded"],
  ["exceed_context_size_error", "context_exceeded"],
  ["request_too_large", "context_exceeded"],
  ["content_filter", "content_filter"],
  ["content_policy_violation", "content_filter"],
  ["bio_policy", "content_filter"],
  ["misalignment_policy_violation", "content_filter"],
  ["invalid_prompt", "invalid_request"],
  ["invalid_request_error", "invalid_request"],
  ["not_found_error", "invalid_request"],
  ["model_not_found", "invalid_request"]
])

/** Codes that say more than the status they come with. */
const decisive: ReadonlySet<ErrorKind> = new Set(["quota_exceeded", "context_exceeded", "content_filter", "overloaded"])

const kindOfStatus = (status: number): ErrorKind => {
  if (status === 401 || status === 403) return "authentication"
  if (status === 402) return "quota_exceeded"
  if (status === 408 || status === 504) return "timeout"
  if (status === 413) return "context_exceeded"
  if (status === 429) return "rate_limited"
  if (status === 503 || status === 529) return "overloaded"
  if (status === 409 || status >= 500) return "server_error"
  return "invalid_request"
}

const overflowPhrases = [
  "prompt is too long",
  "maximum context length",
  "exceeds the context window",
  "context window exceeds",
  "exceeds the available context size",
  "input length and `max_tokens` exceed"
]

const saysOverflow = (message: string): boolean => {
  const lower = message.slice(0, limits.errorMessageCharsMax).toLowerCase()
  return overflowPhrases.some((phrase) => lower.includes(phrase))
}

const kindOf = (failure: WireFailure): ErrorKind => {
  const named = failure.codes.map((code) => kindOfCode.get(code)).filter((kind) => kind !== undefined)
  const strong = named.find((kind) => decisive.has(kind))
  if (strong !== undefined) return strong
  const status = failure.status ?? statusIn(failure.codes)
  const kind = status === undefined ? (named[0] ?? "server_error") : kindOfStatus(status)
  return kind === "invalid_request" && saysOverflow(failure.message) ? "context_exceeded" : kind
}

/** Some gateways put the upstream's HTTP status where a code belongs. */
const statusIn = (codes: ReadonlyArray<string>): number | undefined => {
  const code = codes.find((candidate) => /^[45]\d\d$/.test(candidate))
  return code === undefined ? undefined : Number(code)
}

export const classify = (failure: WireFailure): ProviderError => {
  const kind = kindOf(failure)
  const code = failure.codes[0]
  return providerError({
    kind,
    provider: failure.provider,
    message: failure.message.toWellFormed().slice(0, limits.errorMessageCharsMax),
    ...(failure.headers?.get("x-should-retry") === "false" ? { retryable: false } : {}),
    retryAfterMs: parseRetryAfterMs(failure.headers, failure.nowMs),
    status: failure.status,
    code,
    providerRequestId: failure.providerRequestId
  })
}
