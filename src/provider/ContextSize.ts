// How large the context of a model is, from its own refusal: several servers name the number in prose. Where none is named,
// less than what was refused. In the measure of our own estimate, which is what the next request is compared with.
import type { ProviderError } from "./ProviderErrors.ts"
import { limits } from "./ProviderLimits.ts"

const phrases: ReadonlyArray<RegExp> = [
  /maximum context length (?:is|of) ([\d,_]+)/iu,
  /> ?([\d,_]+) (?:tokens? )?maximum/iu,
  /exceed context limit: [\d,_]+ \+ [\d,_]+ > ([\d,_]+)/iu,
  /context (?:size|length|window|limit)[^\d]{0,24}([\d,_]{3,})/iu
]

const numberIn = (message: string): number | undefined => {
  for (const phrase of phrases) {
    const digits = phrase.exec(message)?.[1]?.replaceAll(/[,_]/gu, "")
    const tokens = Number(digits)
    if (digits !== undefined && Number.isSafeInteger(tokens) && tokens > 0) return tokens
  }
  return undefined
}

/** Tokens that a model has room for, after it refused a request that we took for so many. */
export const sizeFromRefusal = ({ message }: Pick<ProviderError, "message">, refusedTokens: number): number =>
  Math.min(numberIn(message) ?? Number.POSITIVE_INFINITY, Math.floor(refusedTokens * limits.refusedShare))
