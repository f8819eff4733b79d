// What can go wrong in a model call: one table of kinds, one error that carries the facts. Everything a
// provider, a proxy or the network does wrong ends as one of these kinds; an interrupt is none of them.
import * as Data from "effect/Data"

export interface ErrorTraits {
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /**
   * What it says about the provider itself, for its circuit breaker: that it is down, that it answers, or nothing,
   * because one conversation's request, limits or connection may be all there is to it.
   */
  readonly provider: "down" | "up" | "unknown"
  /** Nothing was answered, and waiting may help: the same request is tried again for a long time. */
  readonly outage?: true
  /** Waiting does not help, a person does: a key to set, a bill to pay. */
  readonly needsPerson?: true
}

export const errorTable = {
  rate_limited: { retryable: true, provider: "up", outage: true },
  quota_exceeded: { retryable: false, provider: "up", needsPerson: true },
  overloaded: { retryable: true, provider: "down", outage: true },
  server_error: { retryable: true, provider: "down", outage: true },
  authentication: { retryable: false, provider: "up", needsPerson: true },
  invalid_request: { retryable: false, provider: "up" },
  context_exceeded: { retryable: false, provider: "up" },
  /** An image or a file of the request: it is tried again without any. */
  attachment_refused: { retryable: true, provider: "up" },
  truncated: { retryable: true, provider: "unknown" },
  timeout: { retryable: true, provider: "unknown", outage: true },
  connection: { retryable: true, provider: "down", outage: true },
  refusal: { retryable: false, provider: "up" },
  content_filter: { retryable: false, provider: "up" },
  malformed_response: { retryable: true, provider: "unknown" },
  /** The circuit of this provider is open: nothing was sent. */
  circuit_open: { retryable: true, provider: "unknown", outage: true },
  /** Too many calls wait for this provider: nothing was sent. */
  queue_full: { retryable: true, provider: "unknown", outage: true }
} as const satisfies Record<string, ErrorTraits>

export type ErrorKind = keyof typeof errorTable

/** What is known about a kind of error. */
export const traitsOf = (kind: ErrorKind): ErrorTraits => errorTable[kind]

/** What a failure says about the provider itself; a status says more than the kind. */
export const providerHealth = ({ kind, status }: ProviderError): ErrorTraits["provider"] => {
  if (status !== undefined) return status >= 500 ? "down" : "up"
  return errorTable[kind].provider
}

export const errorKinds = Object.keys(errorTable) as ReadonlyArray<ErrorKind>

export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly kind: ErrorKind
  readonly provider: string
  readonly message: string
  readonly retryable: boolean
  /** Pause the provider asked for. */
  readonly retryAfterMs?: number
  /** HTTP status, if the failure had one. */
  readonly status?: number
  /** The provider's own code or type for it. */
  readonly code?: string
  /** The provider's id of the request, for its support. */
  readonly providerRequestId?: string
}> {}

export interface ErrorFacts {
  readonly kind: ErrorKind
  readonly provider: string
  readonly message: string
  readonly retryable?: boolean
  readonly retryAfterMs?: number | undefined
  readonly status?: number | undefined
  readonly code?: string | undefined
  readonly providerRequestId?: string | undefined
}

/** Builds the error with the table's retryability, leaving out what is not known. */
export const providerError = (facts: ErrorFacts): ProviderError =>
  new ProviderError({
    kind: facts.kind,
    provider: facts.provider,
    message: facts.message,
    retryable: facts.retryable ?? errorTable[facts.kind].retryable,
    ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs }),
    ...(facts.status === undefined ? {} : { status: facts.status }),
    ...(facts.code === undefined ? {} : { code: facts.code }),
    ...(facts.providerRequestId === undefined ? {} : { providerRequestId: facts.providerRequestId })
  })

/** The model name is not `provider/name`. */
export class ModelNameInvalid extends Data.TaggedError("ModelNameInvalid")<{ readonly model: string }> {
  override get message() {
    return `"${this.model.slice(0, 120)}" is not a model name: expected provider/name, for example openai/gpt-6.1-sol`
  }
}

export class ProviderUnknown extends Data.TaggedError("ProviderUnknown")<{
  readonly provider: string
  readonly known: ReadonlyArray<string>
}> {
  override get message() {
    return `there is no provider "${this.provider.slice(0, 120)}"; known: ${this.known.join(", ")}`
  }
}

export class ProviderKeyMissing extends Data.TaggedError("ProviderKeyMissing")<{
  readonly provider: string
  readonly variable: string
}> {
  override get message() {
    return `provider "${this.provider}" needs a key: set ${this.variable}`
  }
}

export class ProviderConfigInvalid extends Data.TaggedError("ProviderConfigInvalid")<{
  readonly provider: string
  readonly reason: string
}> {
  override get message() {
    return `provider "${this.provider}" is configured wrongly: ${this.reason}`
  }
}

export class ScenarioInvalid extends Data.TaggedError("ScenarioInvalid")<{
  readonly scenario: string
  readonly reason: string
}> {
  override get message() {
    return `scenario "${this.scenario.slice(0, 200)}": ${this.reason}`
  }
}
