// The review of a goal: all evidence on a clean copy of the files as they are, with what is suspect about it, and a critic
// with a fresh context. A pass holds only for the files that were checked; when they changed meanwhile, it is checked again.
import { criticIdOf, orchestratorIdOf } from "../machine/decide/TaskSchedule.ts"
import type { ConversationState, PlanState } from "../machine/State.ts"
import type { PlanWork } from "../machine/work/PlanWork.ts"
import type { Evidence } from "../rune/kinds/evidence.ts"
import { standingOf, treeNameOf } from "./Changes.ts"
import { checkEvidence } from "./Evidence.ts"
import { makeGit } from "./Git.ts"
import { modelOf, type Tools } from "./GoalContext.ts"
import * as Prompts from "./Prompts.ts"
import { withCleanCopy } from "./ProofPlace.ts"
import { reopenings } from "./Regressions.ts"
import { specsToReview } from "./Review.ts"
import { advance, type Scene, workspaceIn } from "./Scene.ts"
import { withSuspects } from "./Suspects.ts"
import { agentBudget } from "./Worker.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

interface Checking {
  readonly state: ConversationState
  readonly plan: PlanState
  readonly signal: AbortSignal
}

/** Checks everything that the goal has to show, on the files as they are now. */
const checkAll = async (tools: Tools, checking: Checking, workspace: string, name: string) =>
  withCleanCopy(tools, checking, workspace, { name }, async (place) => {
    const evidence = await checkEvidence(tools, specsToReview(checking.plan), place)
    return withSuspects(evidence, (await place.changes()) ?? [])
  })

export const review = async (scene: Scene, { iteration }: Of<"Review">): Promise<void> => {
  const { context, plan, signal, state } = scene
  const { plan_id: planId } = plan
  const workspace = workspaceIn(scene)
  const evidence = workspace === undefined ? [] : await checkAll(context, scene, workspace, `${planId}-review`)
  if (signal.aborted) return
  const [reopened, ...also] = workspace === undefined ? [] : await reopenings(context, scene, workspace, evidence)
  if (signal.aborted) return
  if (reopened !== undefined) return advance(scene, reopened, also.length === 0 ? {} : { also })
  const agentId = criticIdOf(planId, iteration)
  await advance(
    scene,
    { _tag: "BeginReview", payload: { plan_id: planId, iteration, agent_id: agentId, evidence } },
    {
      spawn: {
        agent_id: agentId,
        role: "critic",
        name: `review ${iteration}`,
        model: modelOf(state, "critic"),
        parent_id: orchestratorIdOf(planId),
        instructions: Prompts.criticInstructions,
        budget: agentBudget(plan)
      },
      say: { agent_id: agentId, content: Prompts.reviewPrompt(plan, evidence) }
    }
  )
}

/** The evidence of the review where the files are still those; what a new check found where they are not. */
export const currentEvidence = async (tools: Tools, checking: Checking): Promise<ReadonlyArray<Evidence>> => {
  const { plan, signal, state } = checking
  const evidence = plan.evidence as ReadonlyArray<Evidence>
  const { workspace } = state.session.config
  if (workspace === undefined) return evidence
  const now = treeNameOf(await standingOf(tools, makeGit(tools, workspace, signal), workspace))
  if (evidence.every((one) => one.tree === now)) return evidence
  return checkAll(tools, checking, workspace, `${plan.plan_id}-pass`)
}
