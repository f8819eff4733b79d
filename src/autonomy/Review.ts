// Reads a review as a critic wrote it, and makes follow-up tasks of its findings.
import { isLost } from "../machine/decide/TaskSchedule.ts"
import type { PlanState } from "../machine/State.ts"
import type { TaskId } from "../rune/Ids.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { Finding, PlanChange, PlanTask, Verdict } from "../rune/kinds/plan.ts"
import { demandsOf } from "./Demands.ts"
import { type Asked, askedOf } from "./Evidence.ts"
import { markOf, modelText } from "./evidence/Spec.ts"
import { limits } from "./GoalLimits.ts"
import { type Checked, Problems } from "./Problems.ts"
import { findingLines } from "./Prompts.ts"

export interface Review {
  readonly verdict: Verdict
  readonly findings: ReadonlyArray<Finding>
}

const severities: ReadonlySet<unknown> = new Set(["error", "warning", "suggestion", "info"])
const verdicts: ReadonlySet<unknown> = new Set(["pass", "retry", "replan"])
const texts = ["detail", "file", "suggested_fix", "task_id"] as const

const findingOf = (problems: Problems, where: string, value: unknown): Finding => {
  const given = (value ?? {}) as Readonly<Record<string, unknown>>
  const { category = "correctness", line, severity, title } = given
  if (!severities.has(severity)) problems.add(`${where}.severity`, "must be error, warning, suggestion or info")
  if (line !== undefined && !(Number.isSafeInteger(line) && Number(line) >= 0)) {
    problems.add(`${where}.line`, "must be a line number")
  }
  const optional = texts
    .filter((name) => given[name] !== undefined && given[name] !== "")
    .map((name) => [name, problems.text(`${where}.${name}`, given[name], limits.findingCharsMax)])
  return {
    severity: severity as Finding["severity"],
    category: problems.text(`${where}.category`, category, 64),
    title: problems.text(`${where}.title`, title, 512),
    ...Object.fromEntries(optional),
    ...(line === undefined ? {} : { line: Number(line) })
  }
}

/** Findings that somebody has to act on. */
export const isPressing = ({ severity }: Finding): boolean => severity === "error" || severity === "warning"

const checksOfTasks = (plan: PlanState): ReadonlyArray<Asked> =>
  plan.tasks.filter((one) => one.status === "completed" || isLost(one)).flatMap(askedOf)

/**
 * What a review checks: what the tasks have to show, and after a new plan also what the last review saw pass, which it
 * checked because the one before had seen it pass, and so on: nothing that was reached is lost on the way. What a review saw
 * fail before it asked for a new plan is not kept: no plan could get rid of it, even one that does without it.
 */
export const specsToReview = (plan: PlanState): ReadonlyArray<Asked> => {
  const passed = plan.replans === 0 ? [] : plan.evidence.filter((one) => one.passed && one.origin === undefined)
  const kept = passed.slice(0, limits.evidenceKeptMax).map((one) => ({ spec: one.spec as EvidenceSpec }))
  return [...demandsOf(plan), ...kept, ...checksOfTasks(plan)]
}

/** What an earlier review saw pass and this one saw fail: whoever plans anew has to say whether it still counts. */
export const regressions = (plan: PlanState): ReadonlyArray<Evidence> => {
  const own = new Set([...demandsOf(plan), ...checksOfTasks(plan)].map(({ spec }) => markOf(spec)))
  const failed = plan.evidence.filter((one) => !one.passed) as ReadonlyArray<Evidence>
  return plan.replans === 0 ? [] : failed.filter(({ spec }) => !own.has(markOf(spec)))
}

/** What stands against a pass, whatever the critic thinks. */
export const objections = (plan: PlanState, evidence: PlanState["evidence"] = plan.evidence): ReadonlyArray<string> => [
  ...(evidence.length === 0 ? ["nothing was checked, so nothing is shown: ask for a retry or a replan"] : []),
  ...evidence.filter((one) => !one.passed).map(modelText),
  ...plan.tasks
    .filter(isLost)
    .map((one) => `task ${one.task.task_id} failed: ${one.failure?.message ?? "no reason given"}`)
]

const judge = (problems: Problems, plan: PlanState, { findings, verdict }: Review): void => {
  if (verdict === "pass") {
    for (const objection of objections(plan)) problems.add("a pass is refused", objection)
    for (const one of findings.filter(({ severity }) => severity === "error")) {
      problems.add("a pass is refused", `you found an error yourself: ${one.title}`)
    }
  }
  if (verdict === "retry" && !findings.some(isPressing)) {
    problems.add("findings", "a retry needs at least one finding of severity error or warning, to be fixed")
  }
}

export const parseReview = (
  value: { readonly verdict?: unknown; readonly findings?: unknown },
  plan: PlanState
): Checked<Review> => {
  const problems = new Problems()
  const { findings: given = [], verdict } = value
  if (!verdicts.has(verdict)) problems.add("verdict", "must be pass, retry or replan")
  if (!Array.isArray(given)) problems.add("findings", "must be a list")
  const list = Array.isArray(given) ? given : []
  if (list.length > limits.findingsMax) problems.add("findings", `has more than ${limits.findingsMax} entries`)
  const findings = list.slice(0, limits.findingsMax).map((one, index) => findingOf(problems, `findings[${index}]`, one))
  const review: Review = { verdict: verdict as Verdict, findings }
  if (problems.list.length === 0) judge(problems, plan, review)
  return problems.checked(review)
}

/** What shows that a finding is fixed: what its task had to show, else whatever fails now, else all that was checked. */
const evidenceFor = (plan: PlanState, finding: Finding): ReadonlyArray<EvidenceSpec> => {
  const task = plan.tasks.find((one) => one.task.task_id === finding.task_id)
  if (task?.task.evidence !== undefined) return task.task.evidence as ReadonlyArray<EvidenceSpec>
  // What no model may see is not shown to a worker either.
  const seen = plan.evidence.filter((one) => one.origin !== "hidden")
  const failing = seen.filter((one) => !one.passed)
  const shown = failing.length === 0 ? seen : failing
  return shown.slice(0, limits.evidencePerTaskMax).map((one) => one.spec as EvidenceSpec)
}

/** A planner may have given its own tasks such names. */
const freeId = (plan: PlanState, wanted: string): TaskId => {
  const taken = new Set<string>(plan.tasks.map((one) => one.task.task_id))
  let id = wanted
  for (let more = 2; taken.has(id); more += 1) id = `${wanted}-${more}`
  return id as TaskId
}

const followUp = (plan: PlanState, finding: Finding, index: number): PlanTask => {
  const evidence = evidenceFor(plan, finding)
  return {
    task_id: freeId(plan, `fix-${plan.iterations}-${index + 1}`),
    title: finding.title.slice(0, 200),
    instructions: `A review found this:\n${findingLines([finding])}\n\nFix it, and only it.`,
    depends_on: [],
    priority: finding.severity === "error" ? "high" : "medium",
    ...(evidence.length === 0 ? {} : { evidence })
  }
}

/** A task that failed for good is tried again with what the review found out about it. */
const again = (task: PlanTask, findings: ReadonlyArray<Finding>): PlanChange => {
  const about = findings.filter((one) => one.task_id === task.task_id)
  const found = about.length === 0 ? "" : `\n\nA review found:\n${findingLines(about)}`
  return { type: "task_changed", task: { ...task, instructions: `${task.instructions}${found}` } }
}

/** How the plan goes on from findings: failed tasks once more, and a task for everything else that has to be fixed. */
export const followUps = (plan: PlanState, findings: ReadonlyArray<Finding>): ReadonlyArray<PlanChange> => {
  const lost = plan.tasks.filter(isLost).map((one) => one.task as PlanTask)
  const isCovered = (finding: Finding): boolean => lost.some((task) => task.task_id === finding.task_id)
  const others = findings.filter((finding) => isPressing(finding) && !isCovered(finding))
  return [
    ...lost.map((task) => again(task, findings)),
    ...others.map((finding, index): PlanChange => ({ type: "task_added", task: followUp(plan, finding, index) }))
  ]
}
