/**
 * The commands that carry out the work of a goal, without models, files or programs:
 * what the pursuit of a goal would submit if every agent were brought up and asked.
 */
import type { Command } from "#src/machine/Command.ts"
import { criticIdOf, orchestratorIdOf, workerIdOf } from "#src/machine/decide/TaskSchedule.ts"
import type { ConversationState, PlanState } from "#src/machine/State.ts"
import { agentOf, isAlive } from "#src/machine/view/Select.ts"
import type { PendingPlanWork, PlanWork } from "#src/machine/work/PlanWork.ts"
import type { AgentId } from "#src/rune/Ids.ts"

export type Outcome = "completed" | "failed"

type Of<Tag extends PlanWork["_tag"]> = Extract<PlanWork, { readonly _tag: Tag }>

const error = { code: "evidence_failed", message: "npm test exited with 1" }

const begin = (plan: PlanState, work: Of<"BeginTask">): Command => {
  const task = plan.tasks.find((one) => one.task.task_id === work.task_id)!
  const agentId = workerIdOf(plan, task)
  const ids = { plan_id: plan.plan_id, task_id: work.task_id }
  return {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: { _tag: "AssignTask", payload: { ...ids, agent_id: agentId } },
    also: [{ _tag: "StartTask", payload: { ...ids, attempt: task.attempts + 1 } }],
    spawn: { agent_id: agentId, role: "worker", model: "m", parent_id: orchestratorIdOf(plan.plan_id) },
    say: { agent_id: agentId, content: "work" }
  }
}

const settle = (plan: PlanState, work: Of<"SettleTask">, outcome: Outcome): Command => {
  const task = plan.tasks.find((one) => one.task.task_id === work.task_id)!
  const ids = { plan_id: plan.plan_id, task_id: work.task_id }
  const isDone = outcome === "completed" && task.status === "running"
  return {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: isDone
      ? { _tag: "CompleteTask", payload: { ...ids, result: "done", evidence: [] } }
      : { _tag: "FailTask", payload: { ...ids, attempt: Math.max(1, task.attempts), error } },
    ...(task.agent_id === null ? {} : { dismiss: [task.agent_id] })
  }
}

const spawning = (state: ConversationState, agentId: AgentId, role: string, parentId: AgentId | null) => {
  if (agentOf(state, agentId) !== undefined) return {}
  const parent = agentOf(state, parentId)
  const under = parent !== undefined && isAlive(parent) ? { parent_id: parent.agent_id } : {}
  return { spawn: { agent_id: agentId, role, model: "m", ...under } }
}

/** The command for one piece of work; `outcome` is what a task that is settled came to. */
export const planCommand = (state: ConversationState, { work }: PendingPlanWork, outcome: Outcome): Command => {
  const plan = state.plan!
  const { plan_id } = plan
  const lead = orchestratorIdOf(plan_id)
  const advance = { _tag: "AdvancePlan", plan_id } as const
  switch (work._tag) {
    case "Plan":
      return {
        ...advance,
        step: { _tag: "DecomposeGoal", payload: { plan_id, attempt: work.attempt } },
        ...spawning(state, lead, "orchestrator", state.session.root_agent_id),
        say: { agent_id: lead, content: "plan" }
      }
    case "Remind":
      return { _tag: "PromptTeam", plan_id, agent_id: work.agent_id, turns: work.turns, content: "well?" }
    case "Baseline":
      return {
        ...advance,
        step: { _tag: "CheckBaseline", payload: { plan_id, revision: work.revision, evidence: [] } }
      }
    case "Suspend": {
      const { cause, question } = work
      return { ...advance, step: { _tag: "Suspend", payload: { plan_id, cause, question } } }
    }
    case "Approve":
      return { ...advance, step: { _tag: "ApprovePlan", payload: { plan_id, approver: "auto_start" } } }
    case "AwaitPerson":
      return { ...advance, step: { _tag: "ApprovePlan", payload: { plan_id, approver: "ada" } } }
    case "BeginTask":
      return begin(plan, work)
    case "SettleTask":
      return settle(plan, work, outcome)
    case "Review": {
      const critic = criticIdOf(plan_id, work.iteration)
      const payload = { plan_id, iteration: work.iteration, agent_id: critic, evidence: [] }
      return {
        ...advance,
        step: { _tag: "BeginReview", payload },
        ...spawning(state, critic, "critic", lead),
        say: { agent_id: critic, content: "review" }
      }
    }
    case "Block": {
      const payload = { plan_id, task_ids: work.task_ids, reason: work.reason }
      return { ...advance, step: { _tag: "Block", payload }, say: { agent_id: lead, content: "blocked" } }
    }
    case "Unblock":
      return {
        ...advance,
        step: { _tag: "ResolveDependency", payload: { plan_id, task_ids: work.task_ids, reason: "changed" } }
      }
    case "Stop":
      return {
        ...advance,
        step: { _tag: work.step, payload: { plan_id, reason: work.reason, summary: work.detail } },
        dismiss: [lead]
      }
    case "Deadline":
      return {
        ...advance,
        step: { _tag: "ExhaustBudget", payload: { plan_id, reason: "budget_exhausted" } },
        dismiss: [lead]
      }
    case "BreakTurn": {
      const { agent_id, detail: message, reason } = work
      return {
        _tag: "FailTurn",
        agent_id,
        error: { error_type: reason, message, retryable: false, source: "orchestrator" }
      }
    }
    case "Dismiss":
      return { _tag: "KillAgent", agent_id: work.agent_id, reason: "goal_over", force: true }
  }
}
