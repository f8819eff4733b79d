/** How plan runes change the state of the goal being pursued; the newest goal is the one. */
import type { PlanId } from "../../rune/Ids.ts"
import type { Evidence } from "../../rune/kinds/evidence.ts"
import type { PlanChange } from "../../rune/kinds/plan.ts"
import type { RuneOf } from "../../rune/Rune.ts"
import { canonicalHash } from "../Canonical.ts"
import { orchestratorIdOf, serverName } from "../decide/TaskSchedule.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableConversation, MutablePlan } from "../State.ts"
import { findAgent, type Handlers, pushBounded } from "./Parts.ts"
import { changeTask, newTask, onPlan, onTask, type TaskKind, tried } from "./PlanParts.ts"
import { personal } from "./planTask.ts"

const tokensOf = ({ usage }: MutableConversation): number => usage.input_tokens + usage.output_tokens

/** A goal of which nothing is known but that it is there. */
export const blankPlan = (planId: PlanId): MutablePlan => ({
  plan_id: planId,
  status: "goal_received",
  goal: "",
  auto_start: false,
  max_parallel: null,
  budget: null,
  options: {},
  demands: { evidence: [], hidden_evidence: [], protect: [] },
  models: {},
  started_ms: 0,
  attempts: 0,
  planner_turns: 0,
  base: null,
  proposed: null,
  needs_approval: null,
  approver: null,
  revision: 0,
  tasks: [],
  steers: [],
  baseline: [],
  baseline_revision: 0,
  returned: 0,
  waiting: null,
  critic_id: null,
  critic_turns: 0,
  evidence: [],
  verdicts: [],
  blocks: 0,
  progress_tokens: 0,
  green: [],
  green_reviewed: 0,
  stale_reviews: 0,
  blocked_task_ids: [],
  iterations: 0,
  replans: 0,
  last_verdict: null,
  reason: null
})

const newPlan = (state: MutableConversation, { payload, ts_ms: tsMs }: RuneOf<"plan.goal_received">): MutablePlan => ({
  ...blankPlan(payload.plan_id),
  goal: payload.goal,
  auto_start: payload.auto_start,
  max_parallel: payload.max_parallel ?? null,
  budget: payload.budget ?? null,
  options: payload.options ?? {},
  demands: {
    evidence: payload.evidence ?? [],
    hidden_evidence: payload.hidden_evidence ?? [],
    protect: payload.protect ?? []
  },
  models: payload.models ?? {},
  started_ms: tsMs,
  progress_tokens: tokensOf(state)
})

const applyChange = (plan: MutablePlan, change: PlanChange): void => {
  if (change.type === "task_added") {
    plan.tasks.push(newTask(change.task, plan.tasks.length + 1))
    return
  }
  const id = change.type === "task_changed" ? change.task.task_id : change.task_id
  const found = plan.tasks.find((one) => one.task.task_id === id)
  if (found === undefined) return
  if (change.type === "task_cancelled") found.status = "cancelled"
  else if (change.type === "task_noted") found.note = change.note.slice(0, limits.taskResultCharsMax)
  else changeTask(found, change.task)
}

/** The planner is asked from here on: only turns that begin now count. */
const askPlanner = (plan: MutablePlan, state: MutableConversation): void => {
  plan.proposed = null
  plan.planner_turns = findAgent(state, orchestratorIdOf(plan.plan_id))?.turns ?? 0
}

/** What is kept of a check that ran before the work: how it ended, and on which files. */
const ofBaseline = ({ detail: _, ...kept }: Evidence): Evidence => kept

const proposals: Pick<
  Handlers<"plan">,
  | "plan.goal_received"
  | "plan.planning_started"
  | "plan.created"
  | "plan.baseline_checked"
  | "plan.updated"
  | "plan.approved"
  | "plan.rejected"
> = {
  "plan.goal_received": (state, rune) => {
    state.plan = newPlan(state, rune)
  },
  "plan.planning_started": onPlan((plan, rune, state) => {
    plan.attempts = rune.payload.attempt
    plan.base = rune.payload.base ?? plan.base
    askPlanner(plan, state)
  }),
  "plan.created": onPlan((plan, rune, state) => {
    plan.tasks = rune.payload.tasks.map((task, index) => newTask(task, index + 1))
    plan.revision = rune.payload.revision ?? plan.revision + 1
    plan.proposed = rune.event_id
    plan.needs_approval = rune.payload.needs_approval ?? null
    plan.progress_tokens = tokensOf(state)
  }),
  "plan.baseline_checked": onPlan((plan, rune) => {
    const { evidence, needs_approval: why, revision } = rune.payload
    plan.baseline_revision = revision
    plan.baseline = [...plan.baseline, ...evidence.map(ofBaseline)].slice(0, limits.baselineMax)
    plan.needs_approval ??= why ?? null
  }),
  "plan.updated": onPlan((plan, rune) => {
    for (const change of rune.payload.changes) applyChange(plan, change)
  }),
  "plan.approved": onPlan((plan, rune) => {
    plan.proposed = null
    plan.approver = rune.payload.approver
    plan.reason = null
  }),
  "plan.rejected": onPlan((plan, rune) => {
    plan.proposed = null
    plan.reason = rune.payload.reason
    if (rune.payload.approver === serverName) plan.returned += 1
  })
}

/** Checks that pass now and were never seen to: before the work, for a task, or in a review. */
const turnGreen = (plan: MutablePlan, evidence: ReadonlyArray<Evidence>): boolean => {
  const known = new Set(plan.green)
  for (const { passed, spec, was_green: wasGreen } of evidence) {
    if (passed && wasGreen !== true) known.add(canonicalHash(spec))
  }
  const isProgress = known.size > plan.green.length
  if (isProgress) plan.green = [...known].slice(0, limits.baselineMax)
  return isProgress
}

const tasks: Omit<Pick<Handlers<"plan">, TaskKind>, keyof typeof personal> = {
  "plan.task_assigned": onTask((task, rune) => {
    task.status = "assigned"
    task.starts += 1
    task.returns = 0
    task.agent_id = rune.payload.agent_id
  }),
  "plan.task_started": onTask((task, rune) => {
    task.status = "running"
    task.attempts = rune.payload.attempt
  }),
  "plan.task_completed": onTask((task, rune, plan, state) => {
    task.status = "completed"
    task.failure = null
    task.result = rune.payload.result.slice(0, limits.taskResultCharsMax)
    task.evidence = rune.payload.evidence
    task.tree = rune.payload.tree ?? null
    task.completed_event_id = rune.event_id
    // A task without checks is progress by its end alone.
    const isProgress = turnGreen(plan, task.evidence) || task.evidence.length === 0
    if (isProgress) plan.progress_tokens = tokensOf(state)
  }),
  "plan.task_failed": onTask((task, rune) => {
    task.status = "failed"
    task.failure = rune.payload.error
    task.evidence = rune.payload.evidence ?? []
    tried(task, rune.payload.error, { counted: true })
  }),
  "plan.task_released": onTask((task, rune) => {
    if (task.status === "running") task.attempts = Math.max(0, task.attempts - 1)
    task.status = "pending"
    tried(task, rune.payload.error, { counted: false })
  }),
  "plan.task_returned": onTask((task, rune) => {
    task.returns += 1
    tried(task, rune.payload.error, { counted: false })
  }),
  "plan.task_reopened": onTask((task, rune) => {
    task.status = "pending"
    task.attempts = 0
    task.reopens += 1
    task.regressions = rune.payload.evidence.map(({ spec }) => spec)
    tried(task, rune.payload.error, { counted: false })
  })
}

const reviews: Omit<Handlers<"plan">, keyof typeof proposals | keyof typeof tasks | keyof typeof personal> = {
  "plan.review_started": onPlan((plan, rune) => {
    plan.iterations = rune.payload.iteration
    plan.critic_id = rune.payload.agent_id ?? null
    plan.critic_turns = 0
    plan.evidence = rune.payload.evidence ?? []
    turnGreen(plan, plan.evidence)
    const isStale = plan.evidence.length > 0 && plan.green.length === plan.green_reviewed
    plan.stale_reviews = isStale ? plan.stale_reviews + 1 : 0
    plan.green_reviewed = plan.green.length
  }),
  "plan.critique": onPlan((plan, rune, state) => {
    const { findings, verdict } = rune.payload
    const mark = canonicalHash(findings.map(({ category, title, file }) => [category, title, file ?? null]))
    plan.last_verdict = verdict
    pushBounded(plan.verdicts, { verdict, mark }, limits.verdictsKeptMax)
    if (verdict !== "replan") return
    plan.replans += 1
    askPlanner(plan, state)
  }),
  "plan.blocked": onPlan((plan, rune, state) => {
    plan.blocks += 1
    plan.blocked_task_ids = rune.payload.task_ids
    plan.reason = rune.payload.reason
    askPlanner(plan, state)
  }),
  "plan.unblocked": onPlan((plan) => {
    plan.blocked_task_ids = []
    plan.reason = null
  }),
  "plan.suspended": onPlan((plan, rune) => {
    const { cause, question } = rune.payload
    plan.waiting = { cause, question, event_id: rune.event_id }
  }),
  "plan.resumed": onPlan((plan, rune, state) => {
    plan.waiting = null
    plan.stale_reviews = 0
    plan.budget = rune.payload.budget ?? plan.budget
    plan.progress_tokens = tokensOf(state)
    plan.planner_turns = findAgent(state, orchestratorIdOf(plan.plan_id))?.turns ?? 0
    plan.critic_turns = findAgent(state, plan.critic_id ?? undefined)?.turns ?? 0
  }),
  "plan.goal_met": onPlan(() => undefined),
  "plan.stopped": onPlan((plan, rune) => {
    plan.reason = rune.payload.reason
    plan.waiting = null
  })
}

export const planHandlers: Handlers<"plan"> = { ...proposals, ...tasks, ...personal, ...reviews }
