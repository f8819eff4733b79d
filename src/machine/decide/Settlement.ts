/**
 * What a model call is charged with when it ends without its provider's final figures: what the provider has said so
 * far, and for the rest an estimate from the request and from the text that came, marked as one.
 */
import type { Usage } from "../../rune/kinds/shared.ts"
import { limits } from "../MachineLimits.ts"
import type { RequestState } from "../State.ts"

/** What is known of a request under way. */
export type Known = Pick<RequestState, "estimate" | "told" | "chars">

const estimatedOutput = ({ chars }: Known): number => Math.ceil(chars / limits.charsPerToken)

/** What was said so far, with the output that came since. */
const toldAndMore = (request: Known, told: Usage): Usage => {
  const output = Math.max(told.output_tokens, estimatedOutput(request))
  if (output === told.output_tokens) return told
  const perToken = request.estimate?.output_usd_per_token
  const { usd, ...tokens } = told
  const isPriced = usd !== undefined && perToken !== undefined
  return {
    ...tokens,
    output_tokens: output,
    ...(isPriced ? { usd: usd + (output - told.output_tokens) * perToken } : {}),
    estimated: true
  }
}

/** Nothing when no request is under way, or when nothing is known about it. */
export const settlementOf = (request: Known | null | undefined): Usage | undefined => {
  if (request == null) return undefined
  if (request.told !== null) return toldAndMore(request, request.told)
  if (request.estimate === null) return undefined
  const { input_tokens, input_usd: inputUsd, output_usd_per_token: perToken } = request.estimate
  const output = estimatedOutput(request)
  const isPriced = inputUsd !== undefined && perToken !== undefined
  return {
    input_tokens,
    output_tokens: output,
    ...(isPriced ? { usd: inputUsd + output * perToken } : {}),
    estimated: true
  }
}
