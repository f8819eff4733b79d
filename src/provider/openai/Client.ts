// The official OpenAI SDK, loaded on first use, with its retries, logging and look into the environment off.
import * as Redacted from "effect/Redacted"
import type { OpenAI } from "openai"
import { type HttpProviderConfig, sdkTimeoutMs } from "../HttpProvider.ts"
import type { Tap } from "../Tap.ts"

export const openaiBaseUrl = "https://api.openai.com/v1"

export const openClient = async (config: HttpProviderConfig, tap: Tap): Promise<OpenAI> => {
  const sdk = await import("openai")
  const keyless = config.apiKey === undefined
  return new sdk.OpenAI({
    // The SDK insists on a key; without one the header is left out again below.
    apiKey: config.apiKey === undefined ? "none" : Redacted.value(config.apiKey),
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: config.baseUrl ?? openaiBaseUrl,
    maxRetries: 0,
    timeout: sdkTimeoutMs,
    logLevel: "off",
    fetch: tap.fetch,
    defaultHeaders: { ...(keyless ? { Authorization: null } : {}), ...config.headers }
  })
}
