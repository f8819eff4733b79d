// What changed in a conversation between two of its events: figures, agents and tasks, each as it was and as it became.
import type { ConversationSummary } from "../../client/Client.ts"
import { money, shortNumber } from "./Format.ts"

export interface Change {
  readonly what: string
  readonly before: string
  readonly after: string
}

const tokensOf = ({ usage }: ConversationSummary): string => shortNumber(usage.input_tokens + usage.output_tokens)

const factsOf = (summary: ConversationSummary): ReadonlyArray<readonly [string, string]> => [
  ["state", summary.state],
  ["attention", summary.attention],
  ["model", [...new Set(summary.agents.map(({ model }) => model))].join(", ")],
  ["turns", String(summary.turns)],
  ["tool calls", String(summary.tool_calls)],
  ["tokens", tokensOf(summary)],
  ["cost", money(summary.cost_usd)],
  ["agents alive", String(summary.agents_alive)],
  ["plan", summary.plan === null ? "" : `${summary.plan.status}, plan ${summary.plan.revision}`],
  ...summary.agents.map((agent) => [`agent ${agent.name ?? agent.role} (${agent.agent_id})`, agent.status] as const),
  ...(summary.plan?.tasks ?? []).map(({ status, task }) => [`task ${task.title} (${task.task_id})`, status] as const)
]

/** Facts that differ, in the order of the later moment; what is gone comes last. */
export const changesBetween = (before: ConversationSummary, after: ConversationSummary): ReadonlyArray<Change> => {
  const was = new Map(factsOf(before))
  const is = new Map(factsOf(after))
  return [...new Set([...is.keys(), ...was.keys()])]
    .map((what) => ({ what, before: was.get(what) ?? "", after: is.get(what) ?? "" }))
    .filter((change) => change.before !== change.after)
}
