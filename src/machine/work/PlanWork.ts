/**
 * What is to be done for the goal that is pursued, derived from what is so. Every
 * piece of work ends in a command that makes it disappear from the list; after a
 * crash the list says how to go on, and nothing that is on record is done again.
 */
import type { AgentId, PlanId, TaskId } from "../../rune/Ids.ts"
import type { SuspendCause } from "../../rune/kinds/plan.ts"
import { causeOf, questionOf } from "../decide/FailureKinds.ts"
import { type Broken, loopBroken, turnBroken } from "../decide/LoopBreakers.ts"
import { criticIdOf, isActive, mergesAlone, orchestratorIdOf, outlook, readyTasks } from "../decide/TaskSchedule.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, ConversationState, PlanState } from "../State.ts"
import { autonomy } from "../table/Autonomy.ts"
import { agentOf, aliveAgents, familyOf, isAlive } from "../view/Select.ts"

export type PlanWork =
  /** DecomposeGoal: brings the orchestrator up, or tells it why its plan was rejected. */
  | { readonly _tag: "Plan"; readonly attempt: number }
  /** Asks an agent again for the answer that it has not given. */
  | { readonly _tag: "Remind"; readonly agent_id: AgentId; readonly turns: number; readonly of: "plan" | "review" }
  /** Run the checks of the plan once before the work. */
  | { readonly _tag: "Baseline"; readonly revision: number }
  | { readonly _tag: "Approve" }
  /** Nothing to do but to be there: a person has to approve or reject the plan. */
  | { readonly _tag: "AwaitPerson" }
  | { readonly _tag: "BeginTask"; readonly task_id: TaskId; readonly start: number }
  /** The worker is done: check the evidence, then CompleteTask or FailTask. */
  | { readonly _tag: "SettleTask"; readonly task_id: TaskId; readonly start: number; readonly returns: number }
  /** Check all evidence anew, then BeginReview with a critic. */
  | { readonly _tag: "Review"; readonly iteration: number }
  | { readonly _tag: "Block"; readonly task_ids: ReadonlyArray<TaskId>; readonly reason: string }
  | { readonly _tag: "Unblock"; readonly task_ids: ReadonlyArray<TaskId> }
  /** Only a person can see to what keeps it from being pursued. */
  | { readonly _tag: "Suspend"; readonly cause: SuspendCause; readonly question: string }
  | ({ readonly _tag: "Stop"; readonly step: "BreakLoop" | "GiveUp" } & Broken)
  /** ExhaustBudget when the time has come. */
  | { readonly _tag: "Deadline"; readonly due_ms: number }
  /** An agent's turn goes round in circles. */
  | ({ readonly _tag: "BreakTurn"; readonly agent_id: AgentId } & Broken)
  /** The goal is over: its agents go. */
  | { readonly _tag: "Dismiss"; readonly agent_id: AgentId }

export interface PendingPlanWork {
  readonly _tag: "PlanWork"
  readonly key: string
  readonly plan_id: PlanId
  readonly work: PlanWork
}

const keyOf = (plan: PlanState, work: PlanWork): string => {
  const name = `plan ${plan.plan_id} ${work._tag}`
  switch (work._tag) {
    case "Plan":
      return `${name} ${work.attempt}`
    case "Remind":
      return `${name} ${work.agent_id} ${work.turns}`
    case "Baseline":
      return `${name} ${work.revision}`
    case "Suspend":
      return `${name} ${work.question}`
    case "Approve":
    case "AwaitPerson":
    case "Unblock":
      return `${name} ${plan.revision} ${plan.blocks}`
    case "SettleTask":
      return `${name} ${plan.revision} ${work.task_id} ${work.start} ${work.returns}`
    case "BeginTask":
      return `${name} ${plan.revision} ${work.task_id} ${work.start}`
    case "Review":
      return `${name} ${work.iteration}`
    case "Block":
      return `${name} ${plan.blocks}`
    case "Deadline":
      return `${name} ${work.due_ms}`
    case "Stop":
      return `${name} ${work.reason}`
    case "BreakTurn":
    case "Dismiss":
      return `${name} ${work.agent_id}`
  }
}

const stop = (broken: Broken): PlanWork => ({ _tag: "Stop", step: "BreakLoop", ...broken })

/** It has done all it was asked to, or can do no more. */
const isFinished = (agent: AgentState | undefined): boolean =>
  agent === undefined || !isAlive(agent) || (agent.status === "idle" && agent.queue.length === 0 && agent.turns > 0)

/** Nobody whom it had asked for help is still at work: what they do is part of its task. */
const hasNoHelpers = (state: ConversationState, agentId: AgentId | null): boolean =>
  agentId === null ||
  familyOf(state, agentId).every(
    (agent) => agent.agent_id === agentId || (agent.status === "idle" && agent.queue.length === 0)
  )

const errorOf = (agent: AgentState): string => (agent.last_error === null ? "" : `: ${agent.last_error.message}`)

/** Its last turn failed for a reason that is not its own. */
const outsideFailure = (agent: AgentState, what: string): ReadonlyArray<PlanWork> => {
  const { last_error: error, last_turn: last } = agent
  const cause = last?.status === "error" ? causeOf(error?.code) : undefined
  if (cause === undefined || error === null) return []
  return [{ _tag: "Suspend", cause, question: questionOf(cause, what, error.message) }]
}

const awaitPlan = (plan: PlanState, orchestrator: AgentState): ReadonlyArray<PlanWork> => {
  if (!isFinished(orchestrator)) return []
  const outside = outsideFailure(orchestrator, "the planner cannot work")
  if (outside.length > 0 && orchestrator.turns > plan.planner_turns) return outside
  const { agent_id, turns } = orchestrator
  const asked = turns - plan.planner_turns
  if (asked <= limits.remindersMax) return [{ _tag: "Remind", agent_id, turns, of: "plan" }]
  const detail = `the orchestrator submitted no plan in ${asked} turns${errorOf(orchestrator)}`
  return [stop({ reason: "planner_silent", detail })]
}

/** A plan is there that only a person may approve. */
export const awaitsPerson = (plan: PlanState): boolean =>
  plan.status === "planning" && plan.proposed !== null && !(plan.auto_start && plan.needs_approval === null)

const baseline = ({ revision }: PlanState): PlanWork => ({ _tag: "Baseline", revision })

/** A person approved it before its commands could be run; or an old log never had it run. */
const lacksBaseline = (plan: PlanState): boolean =>
  plan.baseline_revision !== plan.revision && plan.tasks.every((one) => one.starts === 0)

const planning = (plan: PlanState, orchestrator: AgentState): ReadonlyArray<PlanWork> => {
  if (plan.proposed === null) return awaitPlan(plan, orchestrator)
  if (awaitsPerson(plan)) return [{ _tag: "AwaitPerson" }]
  return [plan.baseline_revision === plan.revision ? { _tag: "Approve" } : baseline(plan)]
}

/** What the checks or the merge of a task wait for is with the person: they are made again when the goal is resumed. */
const holdsSettlements: ReadonlySet<SuspendCause> = new Set(["policy", "merge"])

/** Whoever merges alone is waited for by the others: nothing moves under it. */
const settlements = (state: ConversationState, plan: PlanState): ReadonlyArray<PlanWork> => {
  if (plan.waiting !== null && holdsSettlements.has(plan.waiting.cause)) return []
  const alone = plan.tasks.find(mergesAlone)
  return plan.tasks
    .filter((one) => isActive(one) && (alone === undefined || alone === one))
    .filter((one) => isFinished(agentOf(state, one.agent_id)) && hasNoHelpers(state, one.agent_id))
    .map(({ returns, starts, task }) => ({ _tag: "SettleTask", task_id: task.task_id, start: starts, returns }))
}

const review = (plan: PlanState): PlanWork => {
  const max = plan.options.max_iterations ?? limits.planIterationsMax
  if (plan.iterations < max) return { _tag: "Review", iteration: plan.iterations + 1 }
  return stop({ reason: "iterations_exhausted", detail: `the goal was not met after ${plan.iterations} reviews` })
}

const block = (plan: PlanState, work: Extract<PlanWork, { readonly _tag: "Block" }>): PlanWork =>
  plan.blocks < limits.planBlocksMax ? work : stop({ reason: "unresolvable", detail: work.reason })

const executing = (state: ConversationState, plan: PlanState): ReadonlyArray<PlanWork> => {
  if (lacksBaseline(plan)) return [baseline(plan)]
  const settled = settlements(state, plan)
  const next = outlook(plan)
  // Whoever finds no room waits for it: agents that end make some.
  const room = Math.max(0, limits.agentsAliveMax - aliveAgents(state).length)
  switch (next._tag) {
    case "Start":
      return [
        ...settled,
        ...next.tasks
          .slice(0, room)
          .map((one): PlanWork => ({ _tag: "BeginTask", task_id: one.task.task_id, start: one.starts + 1 }))
      ]
    case "Wait":
      return settled
    case "Finished":
      return room === 0 ? [] : [review(plan)]
    case "Stuck":
      return [block(plan, { _tag: "Block", task_ids: next.task_ids, reason: next.reason })]
  }
}

/** The orchestrator was told; if it changed the plan so that something can run, that is the way out. */
const blocked = (plan: PlanState, orchestrator: AgentState): ReadonlyArray<PlanWork> => {
  if (readyTasks(plan).length > 0 || outlook(plan)._tag === "Finished") {
    return [{ _tag: "Unblock", task_ids: plan.blocked_task_ids }]
  }
  if (!isFinished(orchestrator)) return []
  const detail = plan.reason ?? "nothing can run"
  return [{ _tag: "Stop", step: "GiveUp", reason: "unresolvable", detail }]
}

const reviewing = (state: ConversationState, plan: PlanState): ReadonlyArray<PlanWork> => {
  const critic = agentOf(state, plan.critic_id ?? criticIdOf(plan.plan_id, plan.iterations))
  if (!isFinished(critic)) return []
  const asked = (critic?.turns ?? 0) - plan.critic_turns
  const outside = critic === undefined ? [] : outsideFailure(critic, "the critic cannot work")
  if (outside.length > 0 && asked > 0) return outside
  if (critic !== undefined && isAlive(critic) && asked <= limits.remindersMax) {
    return [{ _tag: "Remind", agent_id: critic.agent_id, turns: critic.turns, of: "review" }]
  }
  const detail = critic === undefined ? "there is no critic" : `the critic gave no verdict${errorOf(critic)}`
  return [stop({ reason: "critic_silent", detail })]
}

const planAgain = (plan: PlanState): ReadonlyArray<PlanWork> => {
  if (plan.attempts < limits.planAttemptsMax) return [{ _tag: "Plan", attempt: plan.attempts + 1 }]
  const detail = `${plan.attempts} plans were rejected; the last one: ${plan.reason}`
  return [stop({ reason: "plans_rejected", detail })]
}

const underWay = (state: ConversationState, plan: PlanState): ReadonlyArray<PlanWork> => {
  if (plan.attempts === 0) return [{ _tag: "Plan", attempt: 1 }]
  const orchestrator = agentOf(state, orchestratorIdOf(plan.plan_id))
  if (orchestrator === undefined || !isAlive(orchestrator)) {
    return [stop({ reason: "orchestrator_ended", detail: "the orchestrator has ended" })]
  }
  const broken = loopBroken(state, plan)
  if (broken !== undefined) return [stop(broken)]
  if (plan.waiting !== null) return settlements(state, plan)
  if (plan.status === "goal_received") return planAgain(plan)
  if (plan.status === "planning") return planning(plan, orchestrator)
  if (plan.status === "executing") return executing(state, plan)
  return plan.status === "blocked" ? blocked(plan, orchestrator) : reviewing(state, plan)
}

const circles = (team: ReadonlyArray<AgentState>): ReadonlyArray<PlanWork> =>
  team.flatMap((agent): ReadonlyArray<PlanWork> => {
    const broken = turnBroken(agent)
    return broken === undefined ? [] : [{ _tag: "BreakTurn", agent_id: agent.agent_id, ...broken }]
  })

/** Time passes whether anybody works or not. */
const deadline = ({ budget, started_ms: startedMs }: PlanState): ReadonlyArray<PlanWork> =>
  budget?.wall_ms === undefined ? [] : [{ _tag: "Deadline", due_ms: startedMs + budget.wall_ms }]

/** Whoever speaks its last words may finish them, unless the goal was stopped. */
const dismissal = (plan: PlanState, team: ReadonlyArray<AgentState>, lead: AgentId): ReadonlyArray<PlanWork> => {
  const isQuiet = plan.status === "stopped" || team.every((agent) => agent.turn === null)
  return team.length > 0 && isQuiet ? [{ _tag: "Dismiss", agent_id: lead }] : []
}

/** The work that the goal needs now, in a stable order. Nothing while the conversation does not run. */
export const pendingPlanWork = (state: ConversationState): ReadonlyArray<PendingPlanWork> => {
  const { plan, session } = state
  if (plan === null || session.status !== "active") return []
  const lead = orchestratorIdOf(plan.plan_id)
  const team = familyOf(state, lead)
  const isOver = autonomy.terminal.includes(plan.status)
  const works = isOver ? dismissal(plan, team, lead) : [...underWay(state, plan), ...circles(team), ...deadline(plan)]
  return works.map((work) => ({ _tag: "PlanWork", key: keyOf(plan, work), plan_id: plan.plan_id, work }))
}
