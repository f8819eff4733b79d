// The last word on a goal that was met: what was done, which files changed, what was checked, what it cost.

import type { ConversationState, PlanState } from "../machine/State.ts"
import { costText, durationText, type TeamUse, teamUse } from "../machine/view/PlanSummary.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { FileChange } from "../rune/kinds/plan.ts"
import { usageOf } from "../rune/UsageTotals.ts"
import { changesSince } from "./Changes.ts"
import { specText } from "./Evidence.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

const firstLine = (text: string): string => text.trim().split("\n", 1)[0]!.slice(0, 200).toWellFormed()

const doneLines = (plan: PlanState): ReadonlyArray<string> =>
  plan.tasks
    .filter((one) => one.status === "completed")
    .slice(0, limits.changesShownMax)
    .map(({ result, task }) => `- ${task.title}${result === null || result === "" ? "" : `: ${firstLine(result)}`}`)

const changeLine = ({ added, path, removed }: FileChange): string =>
  added === undefined || removed === undefined ? `- ${path}` : `- ${path} (+${added} −${removed})`

const changeLines = (changes: ReadonlyArray<FileChange> | undefined): ReadonlyArray<string> => {
  if (changes === undefined) return ["Changed files: not known (no git, and too many files to compare)."]
  if (changes.length === 0) return ["Changed files: none."]
  const rest = changes.length - limits.changesShownMax
  const lines = changes.slice(0, limits.changesShownMax).map(changeLine)
  return [`Changed files: ${changes.length}`, ...lines, ...(rest > 0 ? [`- and ${rest} more`] : [])]
}

const checkLines = ({ evidence }: PlanState): ReadonlyArray<string> => {
  const rest = evidence.length - limits.changesShownMax
  const lines = evidence.slice(0, limits.changesShownMax).map((one) => `- ${specText(one.spec)}`)
  return ["Checked by the server:", ...lines, ...(rest > 0 ? [`- and ${rest} more`] : [])]
}

const summaryText = (
  plan: PlanState,
  facts: { readonly changes: ReadonlyArray<FileChange> | undefined; readonly use: TeamUse; readonly wallMs: number }
): string =>
  [
    `The goal is met: ${plan.goal}`,
    `Done, in ${plan.iterations} ${plan.iterations === 1 ? "review" : "reviews"}:`,
    ...doneLines(plan),
    ...changeLines(facts.changes),
    ...checkLines(plan),
    `Cost: ${costText(facts.use)}. Time: ${durationText(facts.wallMs)}.`
  ].join("\n")

/** Everything `plan.goal_met` says. */
export const goalMet = async (
  tools: Tools,
  state: ConversationState,
  plan: PlanState,
  at: { readonly signal: AbortSignal }
): Promise<PayloadOf<"plan.goal_met">> => {
  const changes = await changesSince(tools, state, plan, at.signal)
  const use = teamUse(state, plan)
  const wallMs = Math.max(0, tools.nowMs() - plan.started_ms)
  return {
    plan_id: plan.plan_id,
    summary: summaryText(plan, { changes, use, wallMs }),
    evidence: plan.evidence as PayloadOf<"plan.goal_met">["evidence"],
    ...(changes === undefined ? {} : { changes: changes.slice(0, limits.changesKeptMax) }),
    usage: usageOf(use.usage),
    wall_ms: wallMs
  }
}
