// What is known about models: context size, output limit, way of thinking, price. Users can add to it or override
// it; a model nobody knows gets cautious limits and no price, so its cost is reported as unknown, never as zero.
// Money is integer micro-USD; prices are micro-USD per million tokens.
import { dropOldest } from "../rune/Elements.ts"
import { builtinModels } from "./ModelCatalogData.ts"
import type { ModelInfo, Price } from "./ModelInfo.ts"
import type { Usage } from "./Provider.ts"
import { limits } from "./ProviderLimits.ts"

export interface ModelCatalogEntry extends ModelInfo {
  readonly known: boolean
  /** Nobody has said how large its context is: the number is a guess, and the model is asked before anything is cut. */
  readonly isSizeAssumed?: boolean
}

/** Overrides by full name `provider/name`; only the given fields replace what is built in. */
export type ModelCatalogOverrides = { readonly [model: string]: Partial<ModelInfo> }

export type Cost = { readonly _tag: "Known"; readonly microUsd: number } | { readonly _tag: "Unknown" }

export interface ModelCatalog {
  readonly lookup: (model: string) => ModelCatalogEntry
  /** A model whose size nobody knew has refused a request of so many tokens: it is no larger from now on. */
  readonly learnSize: (model: string, contextTokens: number) => void
  readonly cost: (model: string, usage: Usage) => Cost
  readonly models: () => ReadonlyArray<string>
}

/** A model nobody described: little is assumed where something has to be, and nothing is refused on its behalf. */
export const unknownModel: ModelCatalogEntry = {
  known: false,
  isSizeAssumed: true,
  contextTokens: 32_768,
  maxOutputTokens: limits.outputTokensUnknownModel
}

const free: Price = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 }

const scriptedModel: ModelCatalogEntry = {
  known: true,
  contextTokens: 200_000,
  maxOutputTokens: 64_000,
  thinking: "none",
  images: true,
  files: true,
  price: free
}

/** `openai-chat/…` at its default address reaches the same models as `openai/…`. */
const aliases = (model: string): ReadonlyArray<string> =>
  model.startsWith("openai-chat/") ? [model, `openai/${model.slice("openai-chat/".length)}`] : [model]

/** Names of dated snapshots end in a date: `-2026-04-23` or `-20250929`. */
const withoutDate = (model: string): string => model.replace(/-(\d{4}-\d{2}-\d{2}|\d{8})$/, "")

const builtinEntry = (model: string): ModelInfo | undefined =>
  aliases(model)
    .flatMap((name) => [name, withoutDate(name)])
    .map((name) => (Object.hasOwn(builtinModels, name) ? builtinModels[name] : undefined))
    .find((info) => info !== undefined)

/** Price of a usage, rounded up to the next micro-USD. */
export const costOf = (info: ModelInfo, usage: Usage): Cost => {
  const long = info.longInput
  const price = long !== undefined && usage.input_tokens > long.aboveTokens ? long.price : info.price
  if (price === undefined) return { _tag: "Unknown" }
  const fresh = Math.max(0, usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens)
  const total =
    fresh * price.input +
    usage.cached_input_tokens * price.cachedInput +
    usage.cache_write_tokens * price.cacheWrite +
    usage.output_tokens * price.output
  return { _tag: "Known", microUsd: Math.ceil(total / 1_000_000) }
}

export const makeModelCatalog = (overrides: ModelCatalogOverrides = {}): ModelCatalog => {
  const learned = new Map<string, number>()
  const seen = new Map<string, ModelCatalogEntry>()
  const described = (model: string): ModelCatalogEntry => {
    const known = seen.get(model)
    if (known !== undefined) return known
    const entry = describe(model)
    seen.set(model, entry)
    if (seen.size > limits.learnedModelsMax) dropOldest(seen)
    return entry
  }
  const describe = (model: string): ModelCatalogEntry => {
    const builtin = builtinEntry(model)
    const override = Object.hasOwn(overrides, model) ? overrides[model] : undefined
    if (builtin === undefined && override === undefined)
      return model.startsWith("scripted/") ? scriptedModel : unknownModel
    const isSizeAssumed = builtin === undefined && override?.contextTokens === undefined
    return { ...unknownModel, ...builtin, ...override, known: true, isSizeAssumed }
  }
  const lookup = (model: string): ModelCatalogEntry => {
    const entry = described(model)
    const contextTokens = learned.get(model)
    return entry.isSizeAssumed !== true || contextTokens === undefined
      ? entry
      : { ...entry, contextTokens, isSizeAssumed: false }
  }
  return {
    lookup,
    learnSize: (model, contextTokens) => {
      if (described(model).isSizeAssumed !== true) return
      const size = Math.max(limits.contextTokensLeast, Math.min(contextTokens, learned.get(model) ?? contextTokens))
      learned.delete(model)
      learned.set(model, size)
      if (learned.size > limits.learnedModelsMax) dropOldest(learned)
    },
    cost: (model, usage) => costOf(lookup(model), usage),
    models: () => [...new Set([...Object.keys(builtinModels), ...Object.keys(overrides)])].sort()
  }
}
