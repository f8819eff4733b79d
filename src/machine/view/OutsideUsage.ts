/** What an event of an outside agent says was used, as native model calls say it. */
import type { AgentEvent } from "../../rune/AgentEvent.ts"
import type { Usage } from "../../rune/kinds/shared.ts"

/** Undefined for an event that reports no usage. */
export const usageOfEvent = (event: AgentEvent): Usage | undefined => {
  if (event.type !== "usage_reported" && event.type !== "turn_completed") return undefined
  const { cached_tokens, cost_usd: usd, input_tokens, output_tokens } = event
  if (input_tokens + output_tokens + cached_tokens === 0) return undefined
  return { input_tokens, output_tokens, cached_tokens, ...(usd === null ? {} : { usd }) }
}
