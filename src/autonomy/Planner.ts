// Planning: brings the orchestrator up or tells it what was wrong, and runs the checks of its plan once before the work.
// A check that passes already shows nothing; a plan whose tasks have no other goes back once, and then to a person.
import { orchestratorIdOf, serverName } from "../machine/decide/TaskSchedule.ts"
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { PlanState } from "../machine/State.ts"
import { agentOf, isAlive } from "../machine/view/Select.ts"
import type { PlanWork } from "../machine/work/PlanWork.ts"
import { specText } from "../rune/EvidenceText.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { PlanTask } from "../rune/kinds/plan.ts"
import { standingOf } from "./Changes.ts"
import { demandsOf } from "./Demands.ts"
import { type Asked, askedOf, checkEvidence, distinct, isWitness } from "./Evidence.ts"
import { markOf } from "./evidence/Spec.ts"
import { modelOf } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import * as Prompts from "./Prompts.ts"
import { withCleanCopy } from "./ProofPlace.ts"
import { advance, gitIn, type Scene, submit, workspaceIn, worktreesIn } from "./Scene.ts"
import { worktreesIssue } from "./Worktrees.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

const issueOfWorktrees = async (scene: Scene): Promise<string | undefined> => {
  const workspace = worktreesIn(scene)
  return workspace === undefined ? undefined : scene.alone(() => worktreesIssue(gitIn(scene, workspace), workspace))
}

const baseIn = async (scene: Scene) => {
  const workspace = workspaceIn(scene)
  if (scene.plan.base !== null || workspace === undefined) return undefined
  return standingOf(scene.context, gitIn(scene, workspace), workspace)
}

const orchestrator = ({ plan, state }: Scene) => {
  const { wall_ms: _, ...budget } = plan.budget ?? {}
  const root = agentOf(state, state.session.root_agent_id)
  return {
    agent_id: orchestratorIdOf(plan.plan_id),
    role: "orchestrator",
    name: "orchestrator",
    model: modelOf(state, "planner"),
    instructions: Prompts.orchestratorInstructions,
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
    ...(root === undefined || !isAlive(root) ? {} : { parent_id: root.agent_id })
  }
}

export const beginPlanning = async (scene: Scene, { attempt }: Of<"Plan">): Promise<void> => {
  const { plan, signal, state } = scene
  const { plan_id: planId } = plan
  const issue = await issueOfWorktrees(scene)
  if (signal.aborted) return
  // A plan is paid for, and would be of no use.
  if (issue !== undefined) {
    const summary = `no worktrees can be made: ${issue}; begin again without worktrees, or at the top of the repository`
    const payload = { plan_id: planId, reason: "no_worktrees", summary }
    return advance(scene, { _tag: "BreakLoop", payload }, { dismiss: [orchestratorIdOf(planId)] })
  }
  const base = await baseIn(scene)
  if (signal.aborted) return
  const payload = { plan_id: planId, attempt, ...(base === undefined ? {} : { base }) }
  const agentId = orchestratorIdOf(planId)
  const isThere = agentOf(state, agentId) !== undefined
  await advance(
    scene,
    { _tag: "DecomposeGoal", payload },
    {
      ...(isThere ? {} : { spawn: orchestrator(scene) }),
      say: { agent_id: agentId, content: Prompts.planPrompt(plan) }
    }
  )
}

export const remind = (scene: Scene, { agent_id, of, turns }: Of<"Remind">): Promise<void> => {
  const content = of === "plan" ? Prompts.planReminder : Prompts.reviewReminder
  return submit(scene, { _tag: "PromptTeam", plan_id: scene.plan.plan_id, agent_id, turns, content })
}

const specsOf = (task: PlanTask): ReadonlyArray<EvidenceSpec> => task.evidence ?? []

/** Every check of the goal that has not run before the work of an earlier plan. */
const unknownChecks = (plan: PlanState): ReadonlyArray<Asked> => {
  const known = new Set(plan.baseline.map(({ spec }) => markOf(spec)))
  const ofTasks = plan.tasks.flatMap(askedOf)
  return distinct([...demandsOf(plan), ...ofTasks]).filter(({ spec }) => !known.has(markOf(spec)))
}

/** Tasks that none of their own checks could show to be done: all of them pass before the work. */
export const unprovenTasks = (
  tasks: ReadonlyArray<PlanTask>,
  before: ReadonlyArray<Pick<Evidence, "spec" | "passed" | "origin">>
): ReadonlyArray<PlanTask> => {
  const red = new Set(before.filter((one) => !one.passed && isWitness(one.spec)).map((one) => markOf(one.spec)))
  // What the person asked for shows whether the goal is met, whatever the plan checks.
  const isShownAnyway = before.some((one) => one.origin !== undefined && red.has(markOf(one.spec)))
  return isShownAnyway ? [] : tasks.filter((task) => !specsOf(task).some((spec) => red.has(markOf(spec))))
}

const unprovenText = (tasks: ReadonlyArray<PlanTask>): string =>
  tasks
    .slice(0, limits.problemsMax)
    .map((task) => `- ${task.task_id}: ${specsOf(task).map(specText).join("; ")}`)
    .join("\n")

const returned = (tasks: ReadonlyArray<PlanTask>): string =>
  `these tasks have only checks that pass already, before any work: they would show nothing.\n${unprovenText(tasks)}\nName for each a check that fails now and passes when the task is done.`

/** Runs what has not run yet, on a clean copy, and says what follows for the plan. */
export const checkBaseline = async (scene: Scene, { revision }: Of<"Baseline">): Promise<void> => {
  const { context, plan, signal } = scene
  const workspace = workspaceIn(scene)
  const name = `${plan.plan_id}-baseline`
  const evidence =
    workspace === undefined
      ? []
      : await withCleanCopy(context, scene, workspace, { name, isBaseline: true }, (place) =>
          checkEvidence(context, unknownChecks(plan), place)
        )
  if (signal.aborted) return
  const { plan_id: planId } = plan
  const tasks = plan.tasks.map(({ task }) => task as PlanTask)
  const unproven =
    workspace === undefined ? [] : unprovenTasks(tasks, [...(plan.baseline as ReadonlyArray<Evidence>), ...evidence])
  const payload = { plan_id: planId, revision, evidence }
  if (unproven.length === 0 || plan.status !== "planning") return advance(scene, { _tag: "CheckBaseline", payload })
  if (plan.returned < machineLimits.plansReturnedMax) {
    const rejected = { plan_id: planId, reason: returned(unproven), approver: serverName }
    return advance(scene, { _tag: "CheckBaseline", payload }, { also: [{ _tag: "RejectPlan", payload: rejected }] })
  }
  const why = `checks of ${unproven.map((one) => one.task_id).join(", ")} pass before any work is done, so they would show nothing`
  await advance(scene, { _tag: "CheckBaseline", payload: { ...payload, needs_approval: why } })
}

export const block = (scene: Scene, { reason, task_ids }: Of<"Block">): Promise<void> => {
  const { plan } = scene
  const payload = { plan_id: plan.plan_id, task_ids, reason }
  const content = Prompts.blockedPrompt(plan, reason)
  return advance(scene, { _tag: "Block", payload }, { say: { agent_id: orchestratorIdOf(plan.plan_id), content } })
}

export const unblock = (scene: Scene, { task_ids }: Of<"Unblock">): Promise<void> => {
  const payload = { plan_id: scene.plan.plan_id, task_ids, reason: "the plan was changed" }
  return advance(scene, { _tag: "ResolveDependency", payload })
}
