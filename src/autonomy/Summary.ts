// The last word on a goal that was met: what was done, which files changed, what was checked, what it cost.

import type { ConversationState, PlanState } from "../machine/State.ts"
import { costText, durationText, type TeamUse, teamUse } from "../machine/view/PlanSummary.ts"
import { textBefore } from "../rune/Elements.ts"
import { specText } from "../rune/EvidenceText.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { Evidence } from "../rune/kinds/evidence.ts"
import type { FileChange } from "../rune/kinds/plan.ts"
import { usageOf } from "../rune/UsageTotals.ts"
import { changesSince } from "./Changes.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

const firstLine = (text: string): string => textBefore(text.trim(), "\n").slice(0, 200).toWellFormed()

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

const checkLine = ({ origin, spec, suspect = [], was_green: wasGreen }: Evidence): string => {
  if (origin === "hidden") return "- a check that no model saw"
  const whose = origin === "person" ? " (yours)" : ""
  const before = wasGreen === true ? " (passed before any work, so it shows nothing)" : ""
  const bent = suspect.length === 0 ? "" : ` (look at it: workers changed ${suspect.join(", ")})`
  return `- ${specText(spec)}${whose}${before}${bent}`
}

const checkLines = (evidence: ReadonlyArray<Evidence>): ReadonlyArray<string> => {
  const rest = evidence.length - limits.changesShownMax
  const lines = evidence.slice(0, limits.changesShownMax).map(checkLine)
  const on = evidence[0]?.tree === undefined ? "" : ` on ${evidence[0].tree}`
  return [`Checked by the server${on}:`, ...lines, ...(rest > 0 ? [`- and ${rest} more`] : [])]
}

const summaryText = (
  plan: PlanState,
  evidence: ReadonlyArray<Evidence>,
  facts: { readonly changes: ReadonlyArray<FileChange> | undefined; readonly use: TeamUse; readonly wallMs: number }
): string =>
  [
    `The goal is met: ${plan.goal}`,
    `Done, in ${plan.iterations} ${plan.iterations === 1 ? "review" : "reviews"}:`,
    ...doneLines(plan),
    ...changeLines(facts.changes),
    ...checkLines(evidence),
    `Cost: ${costText(facts.use)}. Time: ${durationText(facts.wallMs)}.`
  ].join("\n")

/** Everything `plan.goal_met` says. */
export const goalMet = async (
  tools: Tools,
  state: ConversationState,
  plan: PlanState,
  evidence: ReadonlyArray<Evidence>,
  at: { readonly signal: AbortSignal }
): Promise<PayloadOf<"plan.goal_met">> => {
  const changes = await changesSince(tools, state.session.config.workspace, plan, at.signal)
  const tree = evidence[0]?.tree
  const use = teamUse(state, plan)
  const wallMs = Math.max(0, tools.nowMs() - plan.started_ms)
  return {
    plan_id: plan.plan_id,
    summary: summaryText(plan, evidence, { changes, use, wallMs }),
    evidence,
    ...(tree === undefined ? {} : { tree }),
    ...(changes === undefined ? {} : { changes: changes.slice(0, limits.changesKeptMax) }),
    usage: usageOf(use.usage),
    wall_ms: wallMs
  }
}
