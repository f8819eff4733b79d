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
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { SuspendCause } from "../rune/kinds/plan.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import { protectionOf } from "./Demands.ts"
import { askedOf, checkEvidence } from "./Evidence.ts"
import { denialOf } from "./evidence/Run.ts"
import { modelText } from "./evidence/Spec.ts"
import { modelOf, planOf } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { lastAnswer } from "./LastAnswer.ts"
import * as Prompts from "./Prompts.ts"
import { type ProofPlace, placeIn, withCleanCopy } from "./ProofPlace.ts"
import { advance, failure, gitIn, type Scene, workspaceIn, worktreesIn } from "./Scene.ts"
import { agentPrefix } from "./WorktreeJanitor.ts"
import { type Conflict, mergeWorktree } from "./WorktreeMerge.ts"
import { type Opened, openWorktree, type Sweep, sweepWorktrees, worktreePath } from "./Worktrees.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

/** No place of its own: the worker works where the conversation does. */
interface Here {
  readonly _tag: "Here"
}

interface Ending {
  readonly result: string
  readonly evidence: ReadonlyArray<Evidence>
  readonly error?: ErrorInfo
  /** Why it could not be merged, and what its worker now has. */
  readonly conflict?: Conflict
  /** The files of the workspace with its work in them. */
  readonly tree?: string
}

export const agentBudget = (plan: PlanState) => plan.options.task_budget ?? limits.agentBudget

/** Workers whose place is being made and whose task is not yet on record as theirs. */
export type Opening = Set<AgentId>

/** Worktrees that nobody works in any more go; those of a task whose end is not on record stay. */
const sweepOf = ({ context, plan }: Scene, opening: Opening): Sweep => {
  // Others may have begun, and ended, since this step was listed.
  const { tasks } = planOf(context.conversation.state(), plan.plan_id) ?? plan
  const working = [...opening, ...tasks.filter(isActive).flatMap((one) => one.agent_id ?? [])]
  return { prefix: agentPrefix(plan.plan_id), working: [...new Set(working)] }
}

export const sweep = async (scene: Scene, opening: Opening): Promise<void> => {
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return
  await scene.alone(() => {
    const { prefix, working } = sweepOf(scene, opening)
    return sweepWorktrees(gitIn(scene, workspace), workspace, prefix, working)
  })
}

const placeFor = async (scene: Scene, agentId: AgentId, opening: Opening): Promise<Opened | Here> => {
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return { _tag: "Here" }
  return scene.alone(() => openWorktree(gitIn(scene, workspace), workspace, agentId, sweepOf(scene, opening)))
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
  const { dismiss = true, say, steps } = settlement(plan, task, agentId, ending)
  const [step, ...also] = steps
  await advance(scene, step, {
    ...(also.length === 0 ? {} : { also }),
    ...(say === undefined ? {} : { say: { agent_id: agentId, content: say } }),
    ...(dismiss ? { dismiss: [agentId] } : {})
  })
}

interface Settlement {
  readonly steps: readonly [AutonomyCommand, ...ReadonlyArray<AutonomyCommand>]
  /** Told to the worker, who goes on. */
  readonly say?: string
  /** Its worker is no longer needed; it is unless told. */
  readonly dismiss?: boolean
}

/** What an end means: done, failed, back with its worker, or an attempt that does not count. */
const settlement = (plan: PlanState, task: TaskState, agentId: AgentId, ending: Ending): Settlement => {
  const { conflict, error, evidence, result, tree } = ending
  const ids = { plan_id: plan.plan_id, task_id: task.task.task_id }
  if (error === undefined) {
    const payload = { ...ids, result, evidence, ...(tree === undefined ? {} : { tree }) }
    return { steps: [{ _tag: "CompleteTask", payload }] }
  }
  const cause = causeOf(error.code)
  if (cause === undefined)
    return { steps: [{ _tag: "FailTask", payload: { ...ids, attempt: task.attempts, error, evidence } }] }
  if (conflict !== undefined && task.returns < machineLimits.mergesAgainMax) {
    const back: AutonomyCommand = { _tag: "ReturnTask", payload: { ...ids, agent_id: agentId, error } }
    return { steps: [back], say: Prompts.mergePrompt(task, conflict), dismiss: false }
  }
  const asked = suspension(plan, cause, `task ${ids.task_id}`, error.message)
  // The work is there: its checks and its merge are made again when the goal is resumed.
  if (evidence.length > 0) return { steps: [asked], dismiss: false }
  return { steps: [{ _tag: "ReleaseTask", payload: { ...ids, error } }, asked] }
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
  return { result, evidence, ...(await merge(scene, agentId, place)) }
}

/** What it has to show, what it broke when it was done before, and what the person protects. */
const checksOf = (task: TaskState, plan: PlanState) => [
  ...askedOf(task),
  ...(task.regressions as ReadonlyArray<EvidenceSpec>).map((spec) => ({ spec })),
  ...protectionOf(plan)
]

/** How the workspace stood after the newest merge of this plan. */
const lastTree = ({ tasks }: PlanState): string | undefined => {
  const merged = tasks.filter((one) => one.completed_event_id !== null && one.tree !== null)
  const [newest] = merged.toSorted((left, right) => (right.completed_event_id ?? 0) - (left.completed_event_id ?? 0))
  return newest?.tree ?? undefined
}

/** What conflicts and differs from the newest merge, a person changed. */
const merge = async (
  scene: Scene,
  agentId: AgentId,
  place: ProofPlace
): Promise<Pick<Ending, "conflict" | "error" | "tree">> => {
  const tree = place.standing?.tree
  const workspace = worktreesIn(scene)
  if (workspace === undefined) return tree === undefined ? {} : { tree }
  if (tree === undefined) return { error: failure("merge_failed", "the worktree is gone") }
  const merged = await scene.alone(async () => {
    const known = scene.workspaceNow.tree ?? lastTree(scene.plan)
    const outcome = await mergeWorktree(gitIn(scene, workspace), workspace, agentId, {
      taken: tree,
      ...(known === undefined ? {} : { known }),
      ...(place.copy === undefined ? {} : { copy: place.copy })
    })
    if (outcome._tag === "Merged") scene.workspaceNow.tree = outcome.tree
    return outcome
  })
  place.copy = undefined
  if (merged._tag === "Merged") return { tree: merged.tree }
  if (merged._tag === "Failed")
    return { error: failure("merge_failed", `the work could not be merged: ${merged.reason}`) }
  return { conflict: merged, error: failure("merge_conflict", conflictText(merged), { files: merged.files }) }
}

const conflictText = ({ files, persons }: Conflict): string => {
  const others = files.filter((file) => !persons.includes(file))
  return [
    others.length === 0 ? "" : `others changed the same lines meanwhile in ${others.join(", ")}`,
    persons.length === 0 ? "" : `the person changed ${persons.join(", ")} meanwhile, and that stands`
  ]
    .filter((part) => part !== "")
    .join("; ")
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
