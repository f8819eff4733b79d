// How a conversation's state and its need for attention are worded and colored in `ls` and `show`.
import type { Tone } from "../Verb.ts"

export const stateTones: Readonly<Record<string, Tone>> = {
  active: "good",
  paused: "notice",
  suspended: "bad",
  closed: "quiet",
  archived: "quiet"
}

export const attentionText = (attention: unknown): string => {
  const status =
    typeof attention === "string" ? attention : ((attention as { readonly status?: unknown } | null)?.status ?? "")
  return String(status).replaceAll("_", " ")
}
