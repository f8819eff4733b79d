// A task from its start to its end: a worker in a place of its own, then the evidence, then the merge. What failed is told
// by its kind: what is not the work's fault costs no attempt, and the goal waits for whoever can see to it.
import { causeOf, questionOf } from "../machine/decide/FailureKinds.ts"
import { isActive, orchestratorIdOf, workerIdOf } from "../machine/decide/TaskSchedule.ts"
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { AgentState, PlanState, TaskState } from "../machine/State.ts"
import type { AutonomyCommand } from "../machine/table/Autonomy.ts"
import { agentOf, isAlive } from "../machine/view/Select.ts"
import type { PlanWork } from "../machine/work/PlanWork.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Evidence } from "../rune/kinds/evidence.ts"
import type { SuspendCause } from "../rune/kinds/plan.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import { protectionOf } from "./Demands.ts"
import { askedOf, checkEvidence } from "./Evidence.ts"
import { denialOf } from "./evidence/Run.ts"
import { modelText } from "./evidence/Spec.ts"
import { modelOf } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { lastAnswer } from "./LastAnswer.ts"
import * as Prompts from "./Prompts.ts"
import { type ProofPlace, placeIn, withCleanCopy } from "./ProofPlace.ts"
import { advance, failure, gitIn, type Scene, workspaceIn, worktreesIn } from "./Scene.ts"
import { agentPrefix } from "./WorktreeJanitor.ts"
import { mergeWorktree, type Opened, openWorktree, sweepWorktrees, worktreePath } from "./Worktrees.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

/** No place of its own: the worker works where the conversation does. */
interface Here {
  readonly _tag: "Here"
}

interface Ending {
  readonly result: string
  readonly evidence: ReadonlyArray<Evidence>
  readonly error?: ErrorInfo
}

export const agentBudget = (plan: PlanState) => plan.options.task_budget ?? limits.agentBudget

/** Workers whose place is being made and whose task is not yet on record as theirs. */
export type Opening = Set<AgentId>

/** Removes worktrees that nobody works in any more; those of a task whose end is not on record are kept. */
export const sweep = async (scene: Scene, opening: Opening): Promise<void> => {
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return
  const { plan } = scene
  const kept = [...opening, ...plan.tasks.filter(isActive).flatMap((one) => one.agent_id ?? [])]
  const prefix = agentPrefix(plan.plan_id)
  await scene.alone(() => sweepWorktrees(gitIn(scene, workspace), workspace, prefix, kept))
}

const placeFor = async (scene: Scene, agentId: AgentId, opening: Opening): Promise<Opened | Here> => {
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return { _tag: "Here" }
  await sweep(scene, opening)
  return scene.alone(() => openWorktree(gitIn(scene, workspace), workspace, agentId))
}

const suspension = (plan: PlanState, cause: SuspendCause, what: string, message: string): AutonomyCommand => ({
  _tag: "Suspend",
  payload: { plan_id: plan.plan_id, cause, question: questionOf(cause, what, message).slice(0, limits.findingCharsMax) }
})

export const begin = async (scene: Scene, work: Of<"BeginTask">, opening: Opening): Promise<void> => {
  const task = scene.plan.tasks.find((one) => one.task.task_id === work.task_id)
  if (task === undefined) return
  const agentId = workerIdOf(scene.plan, task)
  opening.add(agentId)
  try {
    await beginIn(scene, task, await placeFor(scene, agentId, opening))
  } finally {
    opening.delete(agentId)
  }
}

const beginIn = async (scene: Scene, task: TaskState, place: Opened | Here): Promise<void> => {
  const { plan, signal, state } = scene
  if (signal.aborted) return
  const agentId = workerIdOf(plan, task)
  const ids = { plan_id: plan.plan_id, task_id: task.task.task_id }
  if (place._tag === "Failed") {
    return advance(scene, suspension(plan, "workspace", `no worktree could be made for ${ids.task_id}`, place.reason))
  }
  const start = { _tag: "StartTask", payload: { ...ids, attempt: task.attempts + 1 } } as const
  await advance(
    scene,
    { _tag: "AssignTask", payload: { ...ids, agent_id: agentId } },
    {
      also: [start],
      spawn: {
        agent_id: agentId,
        role: task.task.role ?? "worker",
        name: task.task.title,
        model: task.task.model ?? modelOf(state, "worker"),
        parent_id: orchestratorIdOf(plan.plan_id),
        instructions: Prompts.workerInstructions,
        budget: agentBudget(plan),
        ...(place._tag === "Opened" ? { workspace: place.path } : {})
      },
      say: { agent_id: agentId, content: Prompts.taskPrompt(plan, task) }
    }
  )
}

export const settle = async (scene: Scene, work: Of<"SettleTask">): Promise<void> => {
  const { plan, signal } = scene
  const task = plan.tasks.find((one) => one.task.task_id === work.task_id)
  if (task === undefined || task.agent_id === null) return
  const { agent_id: agentId } = task
  const ending = await endingOf(scene, task, agentId)
  if (signal.aborted) return
  const [step, ...also] = settlement(plan, task, ending)
  await advance(scene, step, { ...(also.length === 0 ? {} : { also }), dismiss: [agentId] })
}

/** Attempts that ended with this code in a row, through no fault of theirs. */
const inRow = ({ tries }: TaskState, code: string): number => {
  const other = tries.findLastIndex((one) => one.code !== code)
  return tries.length - 1 - other
}

/** What an end means: done, failed, or an attempt that does not count. */
const settlement = (
  plan: PlanState,
  task: TaskState,
  { error, evidence, result }: Ending
): readonly [AutonomyCommand, ...ReadonlyArray<AutonomyCommand>] => {
  const ids = { plan_id: plan.plan_id, task_id: task.task.task_id }
  if (error === undefined) return [{ _tag: "CompleteTask", payload: { ...ids, result, evidence } }]
  const cause = causeOf(error.code)
  if (cause === undefined) return [{ _tag: "FailTask", payload: { ...ids, attempt: task.attempts, error, evidence } }]
  const released: AutonomyCommand = { _tag: "ReleaseTask", payload: { ...ids, error } }
  // Done again on top of the others' work, until it is plain that this does not lead anywhere.
  const isRepeated = cause === "merge" && inRow(task, error.code) < machineLimits.mergesAgainMax
  return isRepeated ? [released] : [released, suspension(plan, cause, `task ${ids.task_id}`, error.message)]
}

/** What came of a task: by the end of its worker, by its evidence, and by the merge of its worktree. */
const endingOf = async (scene: Scene, task: TaskState, agentId: AgentId): Promise<Ending> => {
  const { context, state } = scene
  const agent = agentOf(state, agentId)
  const broken = endError(agent)
  const result = agent === undefined ? "" : lastAnswer(agent)
  if (broken !== undefined) return { result, evidence: [], error: broken }
  const workspace = workspaceIn(scene)
  if (workspace === undefined) return endingNowhere(scene, task, result)
  if (worktreesIn(scene) === undefined) {
    return judged(scene, task, agentId, result, await placeIn(context, scene, workspace, { name: agentId, agentId }))
  }
  // On a copy: what a check leaves behind is not part of the work.
  const request = { name: agentId, agentId, directory: worktreePath(workspace, agentId) }
  return withCleanCopy(context, scene, workspace, request, (place) => judged(scene, task, agentId, result, place))
}

/** Without a workspace there is nothing to check on and nothing to merge: a task that asks for neither is done. */
const endingNowhere = ({ plan }: Scene, task: TaskState, result: string): Ending =>
  checksOf(task, plan).length === 0
    ? { result, evidence: [] }
    : { result, evidence: [], error: failure("no_workspace", "the conversation has no workspace") }

const judged = async (
  scene: Scene,
  task: TaskState,
  agentId: AgentId,
  result: string,
  place: ProofPlace
): Promise<Ending> => {
  const { context, plan, state } = scene
  const evidence = await checkEvidence(context, checksOf(task, plan), place)
  const failed = evidence.filter((one) => !one.passed)
  if (failed.length > 0) {
    const isDenied = failed.some(({ origin, spec }) => {
      const isPersons = origin !== undefined
      return denialOf(context, spec, { state, agentId, isPersons }) !== undefined
    })
    return { result, evidence, error: evidenceError(failed, isDenied ? "evidence_denied" : "evidence_failed") }
  }
  const error = await merge(scene, agentId, place.standing?.tree)
  return error === undefined ? { result, evidence } : { result, evidence, error }
}

const checksOf = (task: TaskState, plan: PlanState) => [...askedOf(task), ...protectionOf(plan)]

const merge = async (scene: Scene, agentId: AgentId, tree: string | undefined): Promise<ErrorInfo | undefined> => {
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return undefined
  if (tree === undefined) return failure("merge_failed", "the worktree is gone")
  const merged = await scene.alone(() => mergeWorktree(gitIn(scene, workspace), workspace, agentId, tree))
  if (merged._tag === "Merged") return undefined
  if (merged._tag === "Failed") return failure("merge_failed", `the work could not be merged: ${merged.reason}`)
  const message = `others changed the same lines meanwhile in ${merged.files.join(", ")}; do it again on top of theirs`
  return failure("merge_conflict", message, { files: merged.files })
}

const evidenceError = (failed: ReadonlyArray<Evidence>, code: "evidence_denied" | "evidence_failed"): ErrorInfo => {
  const message = `the worker said it was done, and the evidence does not show it: ${failed.map(modelText).join("; ")}`
  return failure(code, message.slice(0, limits.findingCharsMax).toWellFormed())
}

/** Why a worker that is done has not done its task, as far as its own end tells. */
const endError = (agent: AgentState | undefined): ErrorInfo | undefined => {
  const isOver = agent === undefined || (!isAlive(agent) && agent.last_error?.code !== "budget_exhausted")
  if (isOver) return failure("agent_ended", "the agent that worked on it is gone")
  const { last_error: error, last_turn: last } = agent
  if (last?.status === "interrupted") return failure("interrupted", "the work was interrupted")
  if (last?.status !== "error" || error === null) return undefined
  const code = error.code === "context_exceeded" ? "compaction_without_headroom" : error.code
  return failure(code, error.message)
}
