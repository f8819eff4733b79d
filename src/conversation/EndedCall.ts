/**
 * How a call ended, as its log tells. A call that was tried again may have ended more than once; all of its results are
 * here, the last one is its outcome.
 */
import type { PayloadOf } from "../rune/Kinds.ts"
import type { AnyRune } from "../rune/Rune.ts"

type Result = PayloadOf<"tool.result">

export interface EndedCall {
  /** Who runs it, where that was said. */
  readonly provenance: string | undefined
  readonly results: ReadonlyArray<Omit<Result, "call_id" | "duration_ms" | "exit_code"> & { readonly event_id: number }>
}

interface Page {
  readonly runes: ReadonlyArray<AnyRune>
}

const isAbout = ({ kind, payload }: AnyRune, callId: string): boolean =>
  (kind === "tool.call" || kind === "tool.result") && (payload as { readonly call_id?: unknown }).call_id === callId

/** Nothing when the pages do not have the call. */
export const endedCall = async (pages: AsyncIterable<Page>, callId: string): Promise<EndedCall | undefined> => {
  let provenance: string | undefined
  let isKnown = false
  const results: Array<EndedCall["results"][number]> = []
  for await (const { runes } of pages) {
    for (const rune of runes.filter((one) => isAbout(one, callId))) {
      isKnown = true
      if (rune.kind === "tool.call") provenance = (rune.payload as PayloadOf<"tool.call">).provenance
      if (rune.kind !== "tool.result") continue
      const { call_id: _, duration_ms: _ms, exit_code: _code, ...result } = rune.payload as Result
      results.push({ ...result, event_id: rune.event_id })
    }
  }
  return isKnown ? { provenance, results } : undefined
}
