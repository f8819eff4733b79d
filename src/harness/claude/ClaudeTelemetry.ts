// Tokens and cost of Claude Code, from the log record that it sends for each model call. Its metrics and its transcript
// hold the same figures and are not counted.
import type { AgentEvent } from "../../rune/AgentEvent.ts"
import type { TelemetryRecord } from "../Port.ts"

/** Numbers come as numbers or as text. */
const numberOf = (value: string | number | boolean | undefined): number | undefined => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) && number >= 0 && number < 2 ** 50 ? number : undefined
}

const tokensOf = (value: string | number | boolean | undefined): number => Math.round(numberOf(value) ?? 0)

export const usageOfRecord = ({ attributes, name }: TelemetryRecord): AgentEvent | undefined => {
  if (name !== "api_request" && name !== "claude_code.api_request") return undefined
  const { cache_creation_tokens: created, cache_read_tokens: read, cost_usd: cost, input_tokens: input } = attributes
  const model = attributes["model"]
  return {
    type: "usage_reported",
    // What was read from a cache or written to it is input that was paid for.
    input_tokens: tokensOf(input) + tokensOf(read) + tokensOf(created),
    output_tokens: tokensOf(attributes["output_tokens"]),
    cached_tokens: tokensOf(read),
    cost_usd: numberOf(cost) ?? null,
    ...(typeof model === "string" ? { model: model.slice(0, 200) } : {})
  }
}
