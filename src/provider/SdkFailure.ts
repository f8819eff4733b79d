// Reads the exceptions of the official SDKs. Both throw objects of the same outline (status, headers, parsed
// body); which fields of the body carry the code differs, and is settled here for both.
import { makeSecretMask } from "../rune/Secrets.ts"
import { classify } from "./Classify.ts"
import { type ProviderError, providerError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"
import type { HeaderReader } from "./RetryAfter.ts"

export interface FailureContext {
  readonly provider: string
  /** Secrets that a provider may repeat in an error text. */
  readonly secrets: ReadonlyArray<string>
  readonly nowMs: number
  /** Response headers were received: the connection worked. */
  readonly answered: boolean
  /** The body came to its end (as opposed to: is broken in its middle). */
  readonly bodyEnded: boolean
}

interface SdkError extends Error {
  readonly status?: unknown
  readonly headers?: unknown
  readonly error?: unknown
  readonly requestID?: unknown
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const isHeaders = (value: unknown): value is HeaderReader => isRecord(value) && typeof value["get"] === "function"

const codeOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" || typeof value === "number" ? [String(value)] : []

/** The innermost error object of a body: `{error: {…}}` or the object itself. */
const innermost = (body: unknown): Record<string, unknown> | undefined => {
  if (!isRecord(body)) return undefined
  return isRecord(body["error"]) ? body["error"] : body
}

const codesIn = (error: Record<string, unknown> | undefined): ReadonlyArray<string> => {
  if (error === undefined) return []
  const details = error["details"]
  return [
    ...(isRecord(details) ? codeOf(details["error_code"]) : []),
    ...codeOf(error["code"]),
    ...codeOf(error["type"]).filter((type) => type !== "error")
  ]
}

const messageIn = (error: Record<string, unknown> | undefined, fallback: string): string => {
  const message = error?.["message"]
  return typeof message === "string" && message !== "" ? message : fallback
}

const without = (text: string, secrets: ReadonlyArray<string>): string => makeSecretMask(secrets).text(text)

const causeText = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  return cause.cause instanceof Error ? `${cause.message}: ${cause.cause.message}` : cause.message
}

const isApiFailure = (cause: SdkError): boolean => typeof cause.status === "number" || cause.error !== undefined

const transportFailure = (cause: unknown, context: FailureContext): ProviderError => {
  const broken = cause instanceof SyntaxError && !context.bodyEnded
  const kind = !context.answered ? "connection" : broken ? "malformed_response" : "truncated"
  const message = without(causeText(cause), context.secrets).slice(0, limits.errorMessageCharsMax)
  return providerError({ kind, provider: context.provider, message })
}

export const sdkFailure = (cause: unknown, context: FailureContext): ProviderError => {
  if (!(cause instanceof Error) || !isApiFailure(cause)) return transportFailure(cause, context)
  const { status, headers, error, requestID }: SdkError = cause
  const body = innermost(error)
  return classify({
    provider: context.provider,
    status: typeof status === "number" ? status : undefined,
    codes: codesIn(body),
    message: without(messageIn(body, cause.message), context.secrets),
    headers: isHeaders(headers) ? headers : undefined,
    providerRequestId: typeof requestID === "string" ? requestID : undefined,
    nowMs: context.nowMs
  })
}
