// The `models` of the settings: what a server is told about models that the catalog does not know, or knows otherwise.
// Sizes are tokens, prices US dollars per million tokens. What is not said stays as it is known.

export interface ModelPriceSetting {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
}

export interface ModelSetting {
  readonly contextTokens?: number
  readonly maxOutputTokens?: number
  readonly thinking?: "adaptive" | "budget" | "none"
  /** Whether it can be shown images, and documents. */
  readonly images?: boolean
  readonly files?: boolean
  /** Micro-USD per million tokens. */
  readonly price?: ModelPriceSetting
}

/** Makes the error that names a setting and says what is wrong with it. */
export type Invalid = (setting: string, reason: string) => Error

type Fields = Readonly<Record<string, unknown>>

const microUsdPerUsd = 1_000_000
const thinkings = ["adaptive", "budget", "none"] as const
const modelFields = ["context_tokens", "max_output_tokens", "thinking", "images", "files", "price"]
const priceFields = ["input", "cached_input", "cache_write", "output"]

const fieldsOf = (setting: string, value: unknown, known: ReadonlyArray<string>, invalid: Invalid): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(setting, "it must be an object")
  const other = Object.keys(value).find((name) => !known.includes(name))
  if (other !== undefined) throw invalid(setting, `there is no setting "${other}"; there are ${known.join(", ")}`)
  return value as Fields
}

const tokensOf = (setting: string, value: unknown, invalid: Invalid): number | undefined => {
  if (value === undefined) return undefined
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number
  throw invalid(setting, "it must be a whole number of tokens, 1 or more")
}

const thinkingOf = (setting: string, value: unknown, invalid: Invalid): ModelSetting["thinking"] => {
  const thinking = thinkings.find((one) => one === value)
  if (value !== undefined && thinking === undefined) throw invalid(setting, `it must be one of ${thinkings.join(", ")}`)
  return thinking
}

const abilityOf = (setting: string, value: unknown, invalid: Invalid): boolean | undefined => {
  if (value === undefined || typeof value === "boolean") return value
  throw invalid(setting, "it must be true or false")
}

const priceOf = (setting: string, value: unknown, invalid: Invalid): ModelPriceSetting | undefined => {
  if (value === undefined) return undefined
  const fields = fieldsOf(setting, value, priceFields, invalid)
  const priced = (name: string, otherwise: unknown): number => {
    const usd = fields[name] ?? otherwise
    if (typeof usd === "number" && Number.isFinite(usd) && usd >= 0) return Math.round(usd * microUsdPerUsd)
    throw invalid(`${setting}.${name}`, "it must be US dollars per million tokens, 0 or more")
  }
  const { input } = fields
  return {
    input: priced("input", undefined),
    cachedInput: priced("cached_input", input),
    cacheWrite: priced("cache_write", input),
    output: priced("output", undefined)
  }
}

const modelOf = (setting: string, value: unknown, invalid: Invalid): ModelSetting => {
  const fields = fieldsOf(setting, value, modelFields, invalid)
  const contextTokens = tokensOf(`${setting}.context_tokens`, fields["context_tokens"], invalid)
  const maxOutputTokens = tokensOf(`${setting}.max_output_tokens`, fields["max_output_tokens"], invalid)
  const thinking = thinkingOf(`${setting}.thinking`, fields["thinking"], invalid)
  const images = abilityOf(`${setting}.images`, fields["images"], invalid)
  const files = abilityOf(`${setting}.files`, fields["files"], invalid)
  const price = priceOf(`${setting}.price`, fields["price"], invalid)
  return {
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(images === undefined ? {} : { images }),
    ...(files === undefined ? {} : { files }),
    ...(price === undefined ? {} : { price })
  }
}

/** Settings of models by full name, `provider/name`. */
export const modelsOf = (value: unknown, invalid: Invalid): Readonly<Record<string, ModelSetting>> => {
  if (value === undefined) return {}
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("models", "it must be an object of models by name")
  }
  const models = Object.entries(value).map(([name, one]: [string, unknown]): [string, ModelSetting] => {
    if (!/^[^/]+\/.+$/.test(name)) throw invalid(`models.${name}`, "a model is named provider/name")
    return [name, modelOf(`models.${name}`, one, invalid)]
  })
  return Object.fromEntries(models)
}
