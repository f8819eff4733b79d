// The official Anthropic SDK, loaded on first use, with its retries, logging, tracing and look into the
// environment off.
import type { Anthropic } from "@anthropic-ai/sdk"
import * as Redacted from "effect/Redacted"
import { type HttpProviderConfig, sdkTimeoutMs } from "../HttpProvider.ts"
import type { Tap } from "../Tap.ts"

export const anthropicBaseUrl = "https://api.anthropic.com"

export interface AnthropicConfig extends HttpProviderConfig {
  /** Older gateways want the key as `x-api-key`; the API itself takes it as a bearer token. */
  readonly keyHeader?: "authorization" | "x-api-key"
  /** Off for gateways that refuse the field for fine-grained tool input. */
  readonly eagerToolInput?: boolean
}

const authHeaders = (config: AnthropicConfig, key: string | undefined): { readonly [name: string]: string | null } => {
  if (key === undefined) return { Authorization: null, "x-api-key": null }
  return config.keyHeader === "x-api-key" ? { Authorization: null, "x-api-key": key } : {}
}

export const openClient = async (config: AnthropicConfig, tap: Tap): Promise<Anthropic> => {
  const sdk = await import("@anthropic-ai/sdk")
  const key = config.apiKey === undefined ? undefined : Redacted.value(config.apiKey)
  return new sdk.Anthropic({
    // The SDK would search this machine for other credentials if it were given none.
    apiKey: key ?? "none",
    webhookKey: null,
    baseURL: config.baseUrl ?? anthropicBaseUrl,
    maxRetries: 0,
    timeout: sdkTimeoutMs,
    logLevel: "off",
    openTelemetry: false,
    fetch: tap.fetch,
    defaultHeaders: { ...authHeaders(config, key), ...config.headers }
  })
}
