// What a model call that failed is charged with. One that its provider turned away was free; one that was being answered
// costs what the provider has said so far, and for the rest what its text lets one expect.
import { type Known, settlementOf } from "../machine/decide/Settlement.ts"
import type { ErrorKind, ProviderError } from "../provider/ProviderErrors.ts"
import type { Usage } from "../rune/kinds/shared.ts"

/** Without a status these say that the request went out and was, or may have been, worked on. */
const isCut: ReadonlySet<ErrorKind> = new Set(["truncated", "timeout", "malformed_response"])

/** The provider itself ended the answer, and its figures are final. */
const isFinal: ReadonlySet<ErrorKind> = new Set(["refusal", "content_filter"])

export const nothingUsed: Usage = { input_tokens: 0, output_tokens: 0, usd: 0 }

export const chargeOf = ({ kind, status }: ProviderError, known: Known): Usage => {
  const isAnswered = known.chars > 0 || known.told !== null || (status === undefined && isCut.has(kind))
  if (!isAnswered) return nothingUsed
  return (isFinal.has(kind) ? known.told : null) ?? settlementOf(known) ?? nothingUsed
}
