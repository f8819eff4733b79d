// What agents that pursue a goal are told: who they are, what is asked of them now, and what was found out about their
// work. Everything they need is in here; nothing refers to what they have not seen.

import { isLost } from "../machine/decide/TaskSchedule.ts"
import type { PlanState, TaskState } from "../machine/State.ts"
import { taskLines } from "../machine/view/PlanSummary.ts"
import { specText } from "../rune/EvidenceText.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { Finding } from "../rune/kinds/plan.ts"
import { modelText } from "./evidence/Spec.ts"
import { limits } from "./GoalLimits.ts"
import type { Conflict } from "./WorktreeMerge.ts"

export const orchestratorInstructions = `You lead the work on a goal. You do not do the work: you look at the workspace with tools that only read, and split the goal into tasks for workers who start with an empty context.
Submit the plan with the tool submit_plan; only that counts, text does not. Each task has an id, a title, instructions that a worker can follow without having seen anything else, the ids of the tasks it depends on, a priority, and the evidence that will show it is done: a command with the exit code it must have, a file that must exist, or a test report. The server checks the evidence itself. Tasks that do not depend on each other run side by side, so let them touch different files. Prefer few tasks; one is enough for a small goal.
When tasks fail and hold up the rest you are asked to change the plan with update_plan, or to say with give_up why the goal cannot be met.`

export const workerInstructions = `You do one task of a larger plan. Do what it asks, all of it and nothing else; others work on the other tasks at the same time. When you are done, check the evidence yourself, then end your turn with two or three sentences about what you did. The server checks the evidence after you: saying that it is done is not enough. Use update_plan to leave a note about progress or about a change that the plan needs.`

export const criticInstructions = `You review work that others say is done. You start fresh and trust nobody: read the files yourself, with tools that only read, and compare them with the goal. The server has run the evidence and tells you what came of it.
Answer with the tool submit_review; only that counts. Verdict "pass" when the goal is met; "retry" when there are findings that workers can fix, each with severity, category, title, and where possible file, line and suggested_fix; "replan" when the plan itself was wrong. A pass is refused while evidence fails.`

const evidenceLines = (evidence: ReadonlyArray<Evidence>): string =>
  evidence.length === 0 ? "(none)" : evidence.map((one) => `- ${modelText(one)}`).join("\n")

const specLines = (specs: ReadonlyArray<EvidenceSpec>): string => specs.map((spec) => `- ${specText(spec)}`).join("\n")

export const planPrompt = (plan: PlanState): string => {
  if (plan.attempts === 0)
    return `The goal:\n\n${plan.goal}\n\nLook at the workspace, then submit a plan with submit_plan.`
  return `Your plan was rejected: ${plan.reason}\n\nThe goal is still:\n\n${plan.goal}\n\nSubmit a revised plan with submit_plan.`
}

export const planReminder =
  "You ended your turn without submitting a plan. Call the tool submit_plan now, with all tasks of the plan."

export const reviewReminder =
  "You ended your turn without a verdict. Call the tool submit_review now, with your findings and your verdict."

const criteria = ({ task }: TaskState): string =>
  task.success_criteria === undefined
    ? ""
    : `\n\nIt is done when:\n${task.success_criteria.map((one) => `- ${one}`).join("\n")}`

const before = (plan: PlanState, task: TaskState): string => {
  const done = plan.tasks.filter((one) => task.task.depends_on.includes(one.task.task_id) && one.result !== null)
  const shown = (result: string | null): string => (result ?? "").slice(0, limits.resultShownCharsMax).toWellFormed()
  const lines = done.map((one) => `- ${one.task.task_id} ${one.task.title}: ${shown(one.result)}`)
  return lines.length === 0 ? "" : `\n\nDone before it:\n${lines.join("\n")}`
}

const tryLine = ({ counted, message }: TaskState["tries"][number]): string =>
  `- ${counted ? "" : "(through no fault of the work) "}${message}`

/** All that is known of the attempts before, the newest with what was checked. */
const retry = ({ evidence, failure, tries }: TaskState): string => {
  const last = failure?.message ?? tries.at(-1)?.message
  if (last === undefined) return ""
  const found = failure === null || evidence.length === 0 ? "" : `\n${evidenceLines(evidence)}`
  const earlier = tries.slice(0, -1).map(tryLine)
  const before = earlier.length === 0 ? "" : `\nAttempts before that:\n${earlier.join("\n")}`
  return `\n\nIt was tried before and failed: ${last}${found}${before}\nFind out why before you do anything else.`
}

export const taskPrompt = (plan: PlanState, task: TaskState): string => {
  const { instructions, task_id: id, title } = task.task
  const specs = [...(task.task.evidence ?? []), ...task.regressions] as ReadonlyArray<EvidenceSpec>
  const checks = specs.length === 0 ? "" : `\n\nThe server will check:\n${specLines(specs)}`
  const head = `Task ${id}: ${title}\n\n${instructions}`
  return `${head}${criteria(task)}${checks}${before(plan, task)}${retry(task)}\n\nIt is part of this goal: ${plan.goal}`
}

/** To a worker whose work conflicts: what it has before it now, and what to do about it. */
export const mergePrompt = ({ task }: TaskState, { files, lost, persons }: Conflict): string => {
  const others = files.filter((file) => !persons.includes(file))
  const both =
    others.length === 0
      ? ""
      : `\n\nOthers changed the same lines meanwhile. Your files now start from theirs, and ${others.join(", ")} hold both sides: theirs after <<<<<<<, yours before >>>>>>>. Bring them together so that what they did and what you did both hold, and take the marks out.`
  const theirs =
    persons.length === 0
      ? ""
      : `\n\nThe person whose repository it is changed ${persons.join(", ")} meanwhile. That stands: your files have it as it is, and what you had done there is not in them any more. Do it again around what the person wrote. You had done this:\n${lost.slice(0, limits.findingCharsMax).toWellFormed()}`
  return `The work on task ${task.task_id} passed its checks and could not be merged.${both}${theirs}\n\nThen check the evidence again and end your turn.`
}

export const reviewPrompt = (plan: PlanState, evidence: ReadonlyArray<Evidence>): string => {
  const lost = plan.tasks.filter(isLost)
  const failures = lost.length === 0 ? "" : `\n\n${lost.length} tasks failed for good: a pass is not possible.`
  return [
    `Review ${plan.iterations + 1}. The goal:\n\n${plan.goal}`,
    `The tasks, and what came of them:\n${taskLines(plan.tasks).join("\n")}${failures}`,
    `The evidence, as the server has just checked it:\n${evidenceLines(evidence)}`,
    "Look for yourself, then call submit_review."
  ].join("\n\n")
}

const findingLine = ({ detail, file, line, severity, suggested_fix: fix, title }: Finding): string => {
  const place = file === undefined ? "" : ` (${file}${line === undefined ? "" : `:${line}`})`
  return `- ${severity}: ${title}${place}${detail === undefined ? "" : ` – ${detail}`}${fix === undefined ? "" : ` – ${fix}`}`
}

export const findingLines = (findings: ReadonlyArray<Finding>): string =>
  findings.length === 0 ? "(no findings)" : findings.map(findingLine).join("\n")

const regressionLines = (regressions: ReadonlyArray<Evidence>): string => {
  if (regressions.length === 0) return ""
  const shown = evidenceLines(regressions.slice(0, limits.regressionsShownMax))
  const more = regressions.length - limits.regressionsShownMax
  return `\n\nThis had been reached, and is so no more:\n${shown}${more > 0 ? `\n- and ${more} more` : ""}\nMake it evidence of a task of the new plan unless the goal can do without it: it is checked no more otherwise.`
}

export const replanPrompt = (
  plan: PlanState,
  findings: ReadonlyArray<Finding>,
  regressions: ReadonlyArray<Evidence>
): string =>
  `The reviewer says that the plan does not lead to the goal:\n${findingLines(findings)}${regressionLines(regressions)}\n\nWhat was done so far:\n${taskLines(plan.tasks).join("\n")}\n\nThe goal is still:\n\n${plan.goal}\n\nLook at the workspace as it is now, then submit a new plan with submit_plan. What is done stays done: plan only what is left.`

export const blockedPrompt = (plan: PlanState, reason: string): string =>
  `Nothing that is left can run: ${reason}\n\nThe goal is still:\n\n${plan.goal}\n\n${taskLines(plan.tasks).join("\n")}\n\nChange the plan with update_plan so that the work can go on: change the task that failed, cancel it, or add another. If that cannot be done, call give_up with the reason.`
