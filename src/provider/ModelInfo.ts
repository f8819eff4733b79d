// What the rest of the provider layer needs to know about a model. Values are in CatalogData and the user's
// configuration; prices are integer micro-USD per million tokens.

export interface Price {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
}

/** How a model is told to think: by effort, by a token budget, or not at all. */
export type Thinking = "adaptive" | "budget" | "none"

export interface ModelInfo {
  readonly contextTokens: number
  readonly maxOutputTokens: number
  readonly thinking?: Thinking
  /** Whether it can be shown images, and documents. Not, where nobody says so: a refusal would come back every turn. */
  readonly images?: boolean
  readonly files?: boolean
  readonly price?: Price
  /** Another price for the whole request once its input is larger than this. */
  readonly longInput?: { readonly aboveTokens: number; readonly price: Price }
}
