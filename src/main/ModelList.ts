// The models that a server of these settings could call, with what is known of their size, price and key.
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { ListedModel } from "../cli/verbs/models.ts"
import { keyOf } from "../config/Credentials.ts"
import type { Environment } from "../config/Environment.ts"
import { providerAddresses, serverSettings } from "../config/Settings.ts"
import { makeRegistry } from "../provider/Registry.ts"

const microUsd = 1_000_000

export const listModels = (environment: Environment, dataDirectory: string): ReadonlyArray<ListedModel> => {
  const { model, models, providers } = serverSettings(environment, dataDirectory)
  const registry = makeRegistry({
    key: (variable) => {
      const key = keyOf(environment, dataDirectory, variable)
      return key === undefined || key === "" ? undefined : Redacted.make(key)
    },
    providers: { ...providerAddresses(environment), ...providers },
    models,
    ...(model === undefined ? {} : { model })
  })
  const chosen = registry.defaultModel()
  return [...new Set([chosen, ...registry.catalog.models(), "scripted/demo"])].map((name): ListedModel => {
    const { contextTokens, price } = registry.catalog.lookup(name)
    const found = registry.resolve(name)
    return {
      model: name,
      context_tokens: contextTokens,
      input_usd: price === undefined ? null : price.input / microUsd,
      output_usd: price === undefined ? null : price.output / microUsd,
      missing: Result.isSuccess(found) ? null : found.failure.message,
      is_default: name === chosen
    }
  })
}
