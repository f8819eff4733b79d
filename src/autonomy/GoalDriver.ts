// Does what the goal of a conversation needs next, one piece of work at a time as the machine lists them. Every piece
// ends in one command that puts its outcome on record with all that belongs to it; cut off before that, it is simply
// done again, and what it does before is of a kind that may be.
import { setTimeout as sleep } from "node:timers/promises"
import { tryCommand } from "../contract/TryCommand.ts"
import type { Command } from "../machine/Command.ts"
import { criticIdOf, isActive, orchestratorIdOf, workerIdOf } from "../machine/decide/TaskSchedule.ts"
import type { AgentState, ConversationState, PlanState, TaskState } from "../machine/State.ts"
import { agentOf, isAlive } from "../machine/view/Select.ts"
import type { PendingPlanWork, PlanWork } from "../machine/work/PlanWork.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/plan.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import { baseOf } from "./Changes.ts"
import { checkEvidence, denialOf, evidenceText } from "./Evidence.ts"
import { makeGit } from "./Git.ts"
import { type GoalContext, modelOf, planOf, selfApprover } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { lastAnswer } from "./LastAnswer.ts"
import * as Prompts from "./Prompts.ts"
import { specsToReview } from "./Review.ts"
import { agentPrefix } from "./WorktreeJanitor.ts"
import { mergeWorktree, type Opened, openWorktree, sweepWorktrees, worktreesIssue } from "./Worktrees.ts"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

interface Scene {
  readonly state: ConversationState
  readonly plan: PlanState
  readonly signal: AbortSignal
}

interface Ending {
  readonly result: string
  readonly evidence: ReadonlyArray<Evidence>
  readonly error?: ErrorInfo
}

/** No place of its own: the worker works where the conversation does. */
interface Here {
  readonly _tag: "Here"
}

const failure = (code: string, message: string, data?: unknown): ErrorInfo => ({
  code,
  message,
  source: "orchestrator",
  ...(data === undefined ? {} : { data })
})

const agentBudget = (plan: PlanState) => plan.options.task_budget ?? limits.agentBudget

export class GoalDriver {
  private readonly goalContext: GoalContext
  private merging: Promise<unknown> = Promise.resolve()
  /** Workers whose place is being made and whose task is not yet on record as theirs. */
  private readonly opening = new Set<AgentId>()

  constructor(goalContext: GoalContext) {
    this.goalContext = goalContext
  }

  async perform({ plan_id: planId, work }: PendingPlanWork, signal: AbortSignal): Promise<void> {
    const state = this.goalContext.conversation.state()
    const plan = planOf(state, planId)
    if (plan === undefined) return
    const scene: Scene = { state, plan, signal }
    switch (work._tag) {
      case "Plan":
        return this.plan(scene, work)
      case "Remind":
        return this.remind(scene, work)
      case "Approve":
        return this.submit({
          _tag: "AdvancePlan",
          plan_id: plan.plan_id,
          step: { _tag: "ApprovePlan", payload: { plan_id: plan.plan_id, approver: selfApprover } }
        })
      case "AwaitPerson":
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))
      case "BeginTask":
        return this.begin(scene, work)
      case "SettleTask":
        return this.settle(scene, work)
      case "Review":
        return this.review(scene, work)
      case "Block":
        return this.block(scene, work)
      case "Unblock":
        return this.unblock(scene, work)
      case "Stop":
        return this.stop(scene, work)
      case "Deadline":
        return this.deadline(scene, work)
      case "BreakTurn":
        return this.breakTurn(work)
      case "Dismiss":
        await this.sweep(scene)
        return this.submit({ _tag: "KillAgent", agent_id: work.agent_id, reason: "goal_over", force: true })
    }
  }

  /** What the machine refuses is out of date; the next look at the state says what is to be done instead. */
  private async submit(command: Command): Promise<void> {
    await tryCommand(this.goalContext.conversation, command)
  }

  private async plan({ plan, signal, state }: Scene, { attempt }: Of<"Plan">): Promise<void> {
    const { plan_id: planId } = plan
    const agentId = orchestratorIdOf(planId)
    const issue = await this.worktreesIssue({ plan, signal, state })
    if (signal.aborted) return
    // A plan is paid for, and would be of no use.
    if (issue !== undefined) {
      const detail = `no worktrees can be made: ${issue}; begin again without worktrees, or at the top of the repository`
      return this.stop({ plan, signal, state }, { _tag: "Stop", step: "BreakLoop", reason: "no_worktrees", detail })
    }
    const base = plan.base === null ? await baseOf(this.goalContext, state, signal) : undefined
    if (signal.aborted) return
    const payload = { plan_id: planId, attempt, ...(base === undefined ? {} : { base }) }
    const isThere = agentOf(state, agentId) !== undefined
    const { wall_ms: _, ...budget } = plan.budget ?? {}
    const root = agentOf(state, state.session.root_agent_id)
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "DecomposeGoal", payload },
      ...(isThere
        ? {}
        : {
            spawn: {
              agent_id: agentId,
              role: "orchestrator",
              name: "orchestrator",
              model: modelOf(state),
              instructions: Prompts.orchestratorInstructions,
              ...(Object.keys(budget).length === 0 ? {} : { budget }),
              ...(root === undefined || !isAlive(root) ? {} : { parent_id: root.agent_id })
            }
          }),
      say: { agent_id: agentId, content: Prompts.planPrompt(plan) }
    })
  }

  private async worktreesIssue({ plan, signal, state }: Scene): Promise<string | undefined> {
    const { workspace } = state.session.config
    if (plan.options.worktrees !== true || workspace === undefined) return undefined
    return this.alone(() => worktreesIssue(makeGit(this.goalContext, workspace, signal), workspace))
  }

  private async remind({ plan }: Scene, { agent_id, of, turns }: Of<"Remind">): Promise<void> {
    const content = of === "plan" ? Prompts.planReminder : Prompts.reviewReminder
    await this.submit({ _tag: "PromptTeam", plan_id: plan.plan_id, agent_id, turns, content })
  }

  private async begin(scene: Scene, work: Of<"BeginTask">): Promise<void> {
    const { plan } = scene
    const task = plan.tasks.find((one) => one.task.task_id === work.task_id)
    if (task === undefined) return
    const agentId = workerIdOf(plan, task)
    this.opening.add(agentId)
    try {
      await this.beginIn(scene, task, await this.placeFor(scene, agentId))
    } finally {
      this.opening.delete(agentId)
    }
  }

  private async beginIn({ plan, signal, state }: Scene, task: TaskState, place: Opened | Here): Promise<void> {
    if (signal.aborted) return
    const agentId = workerIdOf(plan, task)
    const ids = { plan_id: plan.plan_id, task_id: task.task.task_id }
    const attempt = task.attempts + 1
    const steps = {
      _tag: "AdvancePlan",
      plan_id: plan.plan_id,
      step: { _tag: "AssignTask", payload: { ...ids, agent_id: agentId } },
      also: [{ _tag: "StartTask", payload: { ...ids, attempt } }]
    } as const
    if (place._tag === "Failed") {
      const error = failure("worktree_failed", `no worktree could be made: ${place.reason}`)
      const failed = { _tag: "FailTask", payload: { ...ids, attempt, error } } as const
      return this.submit({ ...steps, also: [...steps.also, failed] })
    }
    await this.submit({
      ...steps,
      spawn: {
        agent_id: agentId,
        role: task.task.role ?? "worker",
        name: task.task.title,
        model: modelOf(state),
        parent_id: orchestratorIdOf(plan.plan_id),
        instructions: Prompts.workerInstructions,
        budget: agentBudget(plan),
        ...(place._tag === "Opened" ? { workspace: place.path } : {})
      },
      say: { agent_id: agentId, content: Prompts.taskPrompt(plan, task) }
    })
  }

  private async placeFor(scene: Scene, agentId: AgentId): Promise<Opened | Here> {
    const { plan, signal, state } = scene
    const { workspace } = state.session.config
    if (plan.options.worktrees !== true || workspace === undefined) return { _tag: "Here" } as const
    await this.sweep(scene)
    return this.alone(() => openWorktree(makeGit(this.goalContext, workspace, signal), workspace, agentId))
  }

  private async settle(scene: Scene, work: Of<"SettleTask">): Promise<void> {
    const { plan, signal } = scene
    const task = plan.tasks.find((one) => one.task.task_id === work.task_id)
    if (task === undefined || task.agent_id === null) return
    const { agent_id: agentId, attempts: attempt } = task
    const ending = await this.endingOf(scene, task, agentId)
    if (signal.aborted) return
    const ids = { plan_id: plan.plan_id, task_id: work.task_id }
    const { error, evidence, result } = ending
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: plan.plan_id,
      step:
        error === undefined
          ? { _tag: "CompleteTask", payload: { ...ids, result, evidence } }
          : { _tag: "FailTask", payload: { ...ids, attempt, error, evidence } },
      dismiss: [agentId]
    })
  }

  /** What came of a task: by the end of its worker, by its evidence, and by the merge of its worktree. */
  private async endingOf(scene: Scene, task: TaskState, agentId: AgentId): Promise<Ending> {
    const { plan, signal, state } = scene
    const agent = agentOf(state, agentId)
    const broken = endError(agent)
    const result = agent === undefined ? "" : lastAnswer(agent)
    if (broken !== undefined) return { result, evidence: [], error: broken }
    const specs = (task.task.evidence ?? []) as ReadonlyArray<EvidenceSpec>
    const evidence = await checkEvidence(this.goalContext, specs, { state, agentId, sinceMs: plan.started_ms, signal })
    const failed = evidence.filter((one) => !one.passed)
    if (failed.length > 0) {
      const isDenied = failed.some(({ spec }) => denialOf(this.goalContext, spec, { state, agentId }) !== undefined)
      return { result, evidence, error: evidenceError(failed, isDenied ? "evidence_denied" : "evidence_failed") }
    }
    const error = await this.merge(scene, agentId)
    return error === undefined ? { result, evidence } : { result, evidence, error }
  }

  private async merge({ plan, signal, state }: Scene, agentId: AgentId): Promise<ErrorInfo | undefined> {
    const { workspace } = state.session.config
    if (plan.options.worktrees !== true || workspace === undefined) return undefined
    const merged = await this.alone(() =>
      mergeWorktree(makeGit(this.goalContext, workspace, signal), workspace, agentId)
    )
    if (merged._tag === "Merged") return undefined
    if (merged._tag === "Failed") return failure("merge_failed", `the work could not be merged: ${merged.reason}`)
    const message = `others changed the same lines meanwhile in ${merged.files.join(", ")}; do it again on top of theirs`
    return failure("merge_conflict", message, { files: merged.files })
  }

  /** Removes worktrees that nobody works in any more; those of a task whose end is not on record are kept. */
  private async sweep({ plan, signal, state }: Scene): Promise<void> {
    const { workspace } = state.session.config
    if (plan.options.worktrees !== true || workspace === undefined) return
    const kept = [...this.opening, ...plan.tasks.filter(isActive).flatMap((one) => one.agent_id ?? [])]
    const prefix = agentPrefix(plan.plan_id)
    await this.alone(() => sweepWorktrees(makeGit(this.goalContext, workspace, signal), workspace, prefix, kept))
  }

  /** One after another: each starts from what the one before it left of the repository. */
  private alone<A>(work: () => Promise<A>): Promise<A> {
    const turn = this.merging.then(work)
    this.merging = turn.catch(() => undefined)
    return turn
  }

  private async review({ plan, signal, state }: Scene, { iteration }: Of<"Review">): Promise<void> {
    const place = { state, agentId: null, sinceMs: plan.started_ms, signal }
    const evidence = await checkEvidence(this.goalContext, specsToReview(plan), place)
    if (signal.aborted) return
    const { plan_id: planId } = plan
    const agentId = criticIdOf(planId, iteration)
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "BeginReview", payload: { plan_id: planId, iteration, agent_id: agentId, evidence } },
      spawn: {
        agent_id: agentId,
        role: "critic",
        name: `review ${iteration}`,
        model: modelOf(state),
        parent_id: orchestratorIdOf(planId),
        instructions: Prompts.criticInstructions,
        budget: agentBudget(plan)
      },
      say: { agent_id: agentId, content: Prompts.reviewPrompt(plan, evidence) }
    })
  }

  private async block({ plan }: Scene, { reason, task_ids }: Of<"Block">): Promise<void> {
    const { plan_id: planId } = plan
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "Block", payload: { plan_id: planId, task_ids, reason } },
      say: { agent_id: orchestratorIdOf(planId), content: Prompts.blockedPrompt(plan, reason) }
    })
  }

  private async unblock({ plan }: Scene, { task_ids }: Of<"Unblock">): Promise<void> {
    const payload = { plan_id: plan.plan_id, task_ids, reason: "the plan was changed" }
    await this.submit({ _tag: "AdvancePlan", plan_id: plan.plan_id, step: { _tag: "ResolveDependency", payload } })
  }

  private async stop({ plan }: Scene, { detail, reason, step }: Of<"Stop">): Promise<void> {
    const { plan_id: planId } = plan
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: step, payload: { plan_id: planId, reason, summary: detail } },
      dismiss: [orchestratorIdOf(planId)]
    })
  }

  /** Time in a log never runs backwards, so neither does the wait for a time that is written there. */
  private async deadline({ plan, signal, state }: Scene, { due_ms: dueMs }: Of<"Deadline">): Promise<void> {
    const { plan_id: planId } = plan
    for (;;) {
      const leftMs = dueMs - Math.max(this.goalContext.nowMs(), state.last_ms)
      if (leftMs <= 0) break
      await sleep(Math.min(leftMs, limits.timerMsMax), undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
    const payload = { plan_id: planId, reason: "budget_exhausted", summary: "the time for it is over" }
    await this.submit({
      _tag: "AdvancePlan",
      plan_id: planId,
      step: { _tag: "ExhaustBudget", payload },
      dismiss: [orchestratorIdOf(planId)]
    })
  }

  private async breakTurn({ agent_id, detail, reason }: Of<"BreakTurn">): Promise<void> {
    const error = { error_type: reason, message: detail, retryable: false, source: "orchestrator" } as const
    await this.submit({ _tag: "FailTurn", agent_id, error })
  }
}

const evidenceError = (failed: ReadonlyArray<Evidence>, code: "evidence_denied" | "evidence_failed"): ErrorInfo => {
  const message = `the worker said it was done, and the evidence does not show it: ${failed.map(evidenceText).join("; ")}`
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
