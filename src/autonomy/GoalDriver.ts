// Does what the goal of a conversation needs next, one piece of work at a time as the machine lists them. Every piece
// ends in one command that puts its outcome on record with all that belongs to it; cut off before that, it is simply
// done again, and what it does before is of a kind that may be.
import { setTimeout as sleep } from "node:timers/promises"
import { exhaustion } from "../machine/decide/Exhaustion.ts"
import { orchestratorIdOf, serverName } from "../machine/decide/TaskSchedule.ts"
import type { PendingPlanWork, PlanWork } from "../machine/work/PlanWork.ts"
import { review } from "./Critic.ts"
import { type GoalContext, planOf } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { beginPlanning, block, checkBaseline, remind, unblock } from "./Planner.ts"
import { advance, type Scene, submit } from "./Scene.ts"
import { begin, type Opening, settle, sweep } from "./Worker.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

export class GoalDriver {
  private readonly context: GoalContext
  private merging: Promise<unknown> = Promise.resolve()
  private readonly opening: Opening = new Set()
  private readonly workspaceNow: Scene["workspaceNow"] = {}

  constructor(context: GoalContext) {
    this.context = context
  }

  async perform({ plan_id: planId, work }: PendingPlanWork, signal: AbortSignal): Promise<void> {
    const state = this.context.conversation.state()
    const plan = planOf(state, planId)
    if (plan === undefined) return
    const { context, workspaceNow } = this
    await this.step({ context, state, plan, signal, workspaceNow, alone: (one) => this.alone(one) }, work)
  }

  private step(scene: Scene, work: PlanWork): Promise<void> {
    switch (work._tag) {
      case "Plan":
        return beginPlanning(scene, work)
      case "Remind":
        return remind(scene, work)
      case "Baseline":
        return checkBaseline(scene, work)
      case "Approve":
        return advance(scene, { _tag: "ApprovePlan", payload: { plan_id: scene.plan.plan_id, approver: serverName } })
      case "AwaitPerson":
        return untilAborted(scene.signal)
      case "BeginTask":
        return begin(scene, work, this.opening)
      case "SettleTask":
        return settle(scene, work)
      case "Review":
        return review(scene, work)
      case "Block":
        return block(scene, work)
      case "Unblock":
        return unblock(scene, work)
      case "Suspend":
        return suspend(scene, work)
      case "Stop":
        return stop(scene, work)
      case "Deadline":
        return deadline(scene, work)
      case "BreakTurn":
        return breakTurn(scene, work)
      case "Dismiss":
        return this.dismiss(scene, work)
    }
  }

  private async dismiss(scene: Scene, { agent_id }: Of<"Dismiss">): Promise<void> {
    await sweep(scene, this.opening)
    await submit(scene, { _tag: "KillAgent", agent_id, reason: "goal_over", force: true })
  }

  private alone<A>(work: () => Promise<A>): Promise<A> {
    const turn = this.merging.then(work)
    this.merging = turn.catch(() => undefined)
    return turn
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))

const suspend = (scene: Scene, { cause, question }: Of<"Suspend">): Promise<void> =>
  advance(scene, { _tag: "Suspend", payload: { plan_id: scene.plan.plan_id, cause, question } })

const stop = (scene: Scene, { detail, reason, step }: Of<"Stop">): Promise<void> => {
  const { plan_id: planId } = scene.plan
  const payload = { plan_id: planId, reason, summary: detail }
  return advance(scene, { _tag: step, payload }, { dismiss: [orchestratorIdOf(planId)] })
}

/** Time in a log never runs backwards, so neither does the wait for a time that is written there. */
const deadline = async (scene: Scene, { due_ms: dueMs }: Of<"Deadline">): Promise<void> => {
  const { context, plan, signal, state } = scene
  for (;;) {
    const leftMs = dueMs - Math.max(context.nowMs(), state.last_ms)
    if (leftMs <= 0) break
    await sleep(Math.min(leftMs, limits.timerMsMax), undefined, { signal, ref: false }).catch(() => undefined)
    if (signal.aborted) return
  }
  const lead = orchestratorIdOf(plan.plan_id)
  const limit = plan.budget?.wall_ms ?? 0
  await submit(scene, exhaustion(state, lead, { which: "wall_ms", used: limit, limit, node: lead }))
}

const breakTurn = (scene: Scene, { agent_id, detail, reason }: Of<"BreakTurn">): Promise<void> => {
  const error = { error_type: reason, message: detail, retryable: false, source: "orchestrator" } as const
  return submit(scene, { _tag: "FailTurn", agent_id, error })
}
