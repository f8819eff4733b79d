// Finds whose work broke what had been shown: a check that passed once and fails in a review is run on the files as each
// task left them, the newest first, until it passes. The task after that one turned it red, and is the one to mend it.
import { canonicalHash } from "../machine/Canonical.ts"
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { ConversationState, PlanState, TaskState } from "../machine/State.ts"
import type { AutonomyCommand } from "../machine/table/Autonomy.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import { checkEvidence, isWitness } from "./Evidence.ts"
import { markOf, modelText } from "./evidence/Spec.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { withCleanCopy } from "./ProofPlace.ts"
import { failure } from "./Scene.ts"

interface Checking {
  readonly state: ConversationState
  readonly plan: PlanState
  readonly signal: AbortSignal
}

/** What no model may see is shown to no worker either, and is left to the critic. */
const regressed = ({ green }: PlanState, evidence: ReadonlyArray<Evidence>): ReadonlyArray<Evidence> => {
  const known = new Set(green)
  return evidence
    .filter((one) => !one.passed && one.origin !== "hidden" && isWitness(one.spec))
    .filter((one) => one.was_green === true || known.has(canonicalHash(one.spec)))
    .slice(0, limits.regressionsTracedMax)
}

type Left = TaskState & { readonly tree: string }

/** Tasks in the order in which their work came into the workspace. */
const inOrder = ({ tasks }: PlanState): ReadonlyArray<Left> =>
  tasks
    .filter((one): one is Left => one.status === "completed" && one.tree !== null)
    .toSorted((left, right) => (left.completed_event_id ?? 0) - (right.completed_event_id ?? 0))

const shows = ({ evidence }: TaskState, spec: EvidenceSpec): boolean => {
  const mark = markOf(spec)
  return evidence.some((one) => one.passed && markOf(one.spec) === mark)
}

/** The task whose work turned a check red; nothing when it was something else, or too long ago. */
const culpritOf = async (
  tools: Tools,
  checking: Checking,
  workspace: string,
  { spec, tree }: Evidence
): Promise<Left | undefined> => {
  const left = inOrder(checking.plan)
  const name = `${checking.plan.plan_id}-trace`
  const passesOn = (at: string): Promise<boolean> =>
    withCleanCopy(tools, checking, workspace, { name, tree: at }, async (place) =>
      (await checkEvidence(tools, [{ spec }], place)).every((one) => one.passed)
    )
  const last = left.at(-1)
  // Somebody changed the files after the last task.
  if (last === undefined || (last.tree !== tree && (await passesOn(last.tree)))) return undefined
  for (let index = left.length - 1; index >= Math.max(0, left.length - limits.traceTasksMax); index--) {
    const suspect = left[index]
    const before = left[index - 1]
    if (suspect === undefined || shows(suspect, spec)) return suspect
    if (before !== undefined && (await passesOn(before.tree))) return suspect
  }
  return undefined
}

const reopening = (plan: PlanState, task: TaskState, evidence: ReadonlyArray<Evidence>): AutonomyCommand => {
  const found = evidence.map(modelText).join("; ")
  const message = `its work broke what had been shown before: ${found}`.slice(0, limits.findingCharsMax).toWellFormed()
  const { task_id } = task.task
  const error = failure("regression", message)
  return { _tag: "ReopenTask", payload: { plan_id: plan.plan_id, task_id, error, evidence } }
}

/** The tasks to be opened again because of what a review found, each with all that it broke. */
export const reopenings = async (
  tools: Tools,
  checking: Checking,
  workspace: string,
  evidence: ReadonlyArray<Evidence>
): Promise<ReadonlyArray<AutonomyCommand>> => {
  const broken = new Map<TaskState, ReadonlyArray<Evidence>>()
  for (const one of regressed(checking.plan, evidence)) {
    const culprit = checking.signal.aborted ? undefined : await culpritOf(tools, checking, workspace, one)
    if (culprit === undefined || culprit.reopens >= machineLimits.reopensMax) continue
    broken.set(culprit, [...(broken.get(culprit) ?? []), one])
  }
  return [...broken].map(([task, found]) => reopening(checking.plan, task, found))
}
