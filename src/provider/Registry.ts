// From a model name to something that can be called: `provider/name` selects an adapter, an address and a key.
// Knows the four built-in providers and whatever the configuration adds. Reads nothing itself: keys, settings and
// scenario files come in through the config.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { MediaBlobs, type MediaPort } from "../contract/Blobs.ts"
import { ModelFacts } from "../contract/ServerFacts.ts"
import type { ReadBlob } from "./Attachments.ts"
import { makeMessages } from "./anthropic/Messages.ts"
import type { HttpProviderConfig } from "./HttpProvider.ts"
import { type ModelCatalog, type ModelCatalogOverrides, makeModelCatalog } from "./ModelCatalog.ts"
import { makeChatCompletions } from "./openai/ChatCompletions.ts"
import { makeResponses } from "./openai/Responses.ts"
import type { ModelProvider } from "./Provider.ts"
import {
  ModelNameInvalid,
  ProviderConfigInvalid,
  ProviderKeyMissing,
  ProviderUnknown,
  ScenarioInvalid
} from "./ProviderErrors.ts"
import { builtinScenarios } from "./scripted/Builtin.ts"
import { parseScenario, parseScenarioText, type Scenario } from "./scripted/Scenario.ts"
import { type LoadScenario, makeScripted } from "./scripted/Scripted.ts"

export const adapters = ["openai-responses", "openai-chat", "anthropic", "scripted"] as const

export type Adapter = (typeof adapters)[number]

/** A provider as the configuration describes it. Unset fields take the adapter's defaults. */
export interface ProviderSettings {
  readonly adapter: Adapter
  readonly baseUrl?: string
  /** Name of the variable that holds the key; `null` for a server that wants none. */
  readonly keyVariable?: string | null
  readonly headers?: { readonly [name: string]: string }
  readonly keyHeader?: "authorization" | "x-api-key"
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens"
  readonly includeUsage?: boolean
  readonly replayReasoning?: boolean
  readonly reasoningSummary?: boolean
  readonly eagerToolInput?: boolean
}

export interface RegistryConfig {
  /** The model to use when nobody names one. */
  readonly model?: string
  /** More providers (which need an adapter), or other settings for the built-in ones, by name. */
  readonly providers?: { readonly [name: string]: Partial<ProviderSettings> }
  /** Value of a key variable, if it is set. */
  readonly key: (variable: string) => Redacted.Redacted<string> | undefined
  readonly models?: ModelCatalogOverrides
  readonly scenarios?: { readonly [name: string]: unknown }
  /** The bytes of images and documents. */
  readonly readBlob?: ReadBlob
  /** Text of a scenario file. */
  readonly readText?: (path: string) => Promise<string>
}

export interface ResolvedModel {
  readonly provider: ModelProvider
  /** The name to put in the request. */
  readonly model: string
  readonly fullName: string
}

export type ResolveError = ModelNameInvalid | ProviderUnknown | ProviderKeyMissing | ProviderConfigInvalid

export interface Registry {
  readonly resolve: (fullName: string) => Result.Result<ResolvedModel, ResolveError>
  readonly defaultModel: () => string
  readonly catalog: ModelCatalog
  readonly providerNames: () => ReadonlyArray<string>
}

const builtinProviders: { readonly [name: string]: ProviderSettings } = {
  anthropic: { adapter: "anthropic", keyVariable: "ANTHROPIC_API_KEY" },
  openai: { adapter: "openai-responses", keyVariable: "OPENAI_API_KEY" },
  "openai-chat": { adapter: "openai-chat", keyVariable: "OPENAI_API_KEY" },
  scripted: { adapter: "scripted", keyVariable: null }
}

/** What a person gets who set a key and named no model; the first key found decides. */
const defaultByKey: ReadonlyArray<readonly [variable: string, model: string]> = [
  ["ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"],
  ["OPENAI_API_KEY", "openai/gpt-6.1-sol"]
]

export const keylessDefault = "scripted/demo"

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/

const split = (
  fullName: string
): Result.Result<{ readonly provider: string; readonly model: string }, ModelNameInvalid> => {
  const slash = fullName.indexOf("/")
  const provider = fullName.slice(0, slash)
  const model = fullName.slice(slash + 1)
  const valid = slash > 0 && namePattern.test(provider) && model !== "" && model.length <= 1024 && model.isWellFormed()
  return valid ? Result.succeed({ provider, model }) : Result.fail(new ModelNameInvalid({ model: fullName }))
}

const urlProblem = (baseUrl: string | undefined): string | undefined => {
  if (baseUrl === undefined) return undefined
  if (!URL.canParse(baseUrl)) return `"${baseUrl.slice(0, 200)}" is not a URL`
  const { protocol } = new URL(baseUrl)
  return protocol === "http:" || protocol === "https:" ? undefined : `its base URL must begin with http:// or https://`
}

const isLoopback = (baseUrl: string): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(new URL(baseUrl).hostname)

type HttpAdapter = Exclude<Adapter, "scripted">

type HttpSettings = HttpProviderConfig & Omit<ProviderSettings, "adapter" | "baseUrl" | "headers" | "keyVariable">

/** How a provider of each adapter is made. An adapter without an entry does not compile. */
const httpProviders: { readonly [A in HttpAdapter]: (settings: HttpSettings) => ModelProvider } = {
  "openai-responses": makeResponses,
  "openai-chat": makeChatCompletions,
  anthropic: makeMessages
}

const httpProvider = (adapter: HttpAdapter, settings: ProviderSettings, config: HttpProviderConfig): ModelProvider => {
  const { adapter: _adapter, keyVariable: _variable, headers: _headers, baseUrl: _baseUrl, ...options } = settings
  return httpProviders[adapter]({ ...config, ...options })
}

const fileReason = (builtin: ReadonlyArray<string>, cause: unknown): string =>
  `neither built in (${builtin.join(", ")}) nor a readable file: ${cause instanceof Error ? cause.message : String(cause)}`

const scenarioLoader = (config: RegistryConfig): LoadScenario => {
  const own = { ...builtinScenarios, ...config.scenarios }
  const parsed = new Map<string, ReturnType<typeof parseScenario>>()
  const fromFile = (name: string): Effect.Effect<Scenario, ScenarioInvalid> => {
    const { readText } = config
    if (readText === undefined) {
      const reason = "no such scenario; files are read only below the directory that the setting scenarios names"
      return Effect.fail(new ScenarioInvalid({ scenario: name, reason }))
    }
    const text = Effect.tryPromise({
      try: () => readText(name),
      catch: (cause) => new ScenarioInvalid({ scenario: name, reason: fileReason(Object.keys(own), cause) })
    })
    return Effect.flatMap(text, (json) => Effect.fromResult(parseScenarioText(name, json)))
  }
  return (name) =>
    Effect.suspend(() => {
      if (!Object.hasOwn(own, name)) return fromFile(name)
      const scenario = parsed.get(name) ?? parseScenario(name, own[name])
      parsed.set(name, scenario)
      return Effect.fromResult(scenario)
    })
}

const settingsOf = (name: string, config: RegistryConfig): ProviderSettings | undefined => {
  const builtin = Object.hasOwn(builtinProviders, name) ? builtinProviders[name] : undefined
  const given =
    config.providers !== undefined && Object.hasOwn(config.providers, name) ? config.providers[name] : undefined
  const adapter = given?.adapter ?? builtin?.adapter
  return adapter === undefined ? undefined : { ...builtin, ...given, adapter }
}

/** The key a provider is used with. A server on this machine rarely wants one; any other one does. */
const keyOf = (
  name: string,
  settings: ProviderSettings,
  config: RegistryConfig
): Result.Result<Redacted.Redacted<string> | undefined, ProviderKeyMissing> => {
  const variable = settings.keyVariable ?? null
  if (variable === null) return Result.succeed(undefined)
  const key = config.key(variable)
  const optional = settings.baseUrl !== undefined && isLoopback(settings.baseUrl)
  return key === undefined && !optional
    ? Result.fail(new ProviderKeyMissing({ provider: name, variable }))
    : Result.succeed(key)
}

const problemOf = (settings: ProviderSettings): string | undefined =>
  adapters.includes(settings.adapter)
    ? urlProblem(settings.baseUrl)
    : `its adapter must be one of ${adapters.join(", ")}`

const build = (
  name: string,
  config: RegistryConfig,
  catalog: ModelCatalog
): Result.Result<ModelProvider, ResolveError> => {
  const settings = settingsOf(name, config)
  const reason = settings === undefined ? "it names no adapter" : problemOf(settings)
  if (settings === undefined || reason !== undefined) {
    return Result.fail(new ProviderConfigInvalid({ provider: name, reason: reason ?? "it names no adapter" }))
  }
  const { adapter } = settings
  if (adapter === "scripted") return Result.succeed(makeScripted({ name, load: scenarioLoader(config) }))
  return Result.map(keyOf(name, settings, config), (apiKey) =>
    httpProvider(adapter, settings, {
      name,
      modelInfo: catalog.lookup,
      ...(config.readBlob === undefined ? {} : { readBlob: config.readBlob }),
      ...(settings.baseUrl === undefined ? {} : { baseUrl: settings.baseUrl }),
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(settings.headers === undefined ? {} : { headers: settings.headers })
    })
  )
}

export const makeRegistry = (config: RegistryConfig): Registry => {
  const catalog = makeModelCatalog(config.models)
  const names = [...new Set([...Object.keys(builtinProviders), ...Object.keys(config.providers ?? {})])].sort()
  const made = new Map<string, ModelProvider>()
  const providerOf = (name: string): Result.Result<ModelProvider, ResolveError> => {
    const existing = made.get(name)
    if (existing !== undefined) return Result.succeed(existing)
    if (!names.includes(name)) return Result.fail(new ProviderUnknown({ provider: name, known: names }))
    return Result.map(build(name, config, catalog), (provider) => {
      made.set(name, provider)
      return provider
    })
  }
  return {
    catalog,
    providerNames: () => names,
    resolve: (fullName) =>
      Result.flatMap(split(fullName), ({ provider, model }) =>
        Result.map(providerOf(provider), (found) => ({ provider: found, model, fullName }))
      ),
    defaultModel: () =>
      config.model ?? defaultByKey.find(([variable]) => config.key(variable) !== undefined)?.[1] ?? keylessDefault
  }
}

export interface ProvidersOptions extends Omit<RegistryConfig, "key" | "readBlob"> {
  /** Value of a variable that holds a key. */
  readonly key?: ((variable: string) => string | undefined) | undefined
}

const registryOf = ({ key, ...config }: ProvidersOptions, blobs: MediaPort): Registry =>
  makeRegistry({
    ...config,
    readBlob: (sha256) => blobs.read(sha256),
    key: (variable) => {
      const value = key?.(variable)
      return value === undefined || value === "" ? undefined : Redacted.make(value)
    }
  })

const modelFacts = ({ catalog, defaultModel }: Registry): ModelFacts["Service"] => ({
  defaultModel,
  sight: (model) => {
    const { files = false, images = false } = catalog.lookup(model)
    return { files, images }
  }
})

/** The models of a server, by name. */
export class ModelProviders extends Context.Service<ModelProviders, Registry>()("echs/ModelProviders") {
  static readonly layer = (options: ProvidersOptions): Layer.Layer<ModelProviders | ModelFacts, never, MediaBlobs> =>
    Layer.effectContext(
      Effect.map(MediaBlobs, (blobs) => {
        const registry = registryOf(options, blobs)
        return Context.make(ModelProviders, registry).pipe(Context.add(ModelFacts, modelFacts(registry)))
      })
    )
}
