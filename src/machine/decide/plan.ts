/** Deciding about plans: a goal is taken up, and every step of its loop is written with all that belongs to it. */
import { emptyGoal, isEmptyContent } from "../../rune/Content.ts"
import { demandsIssue } from "../../rune/Demands.ts"
import type { AgentId, PlanId, TaskId } from "../../rune/Ids.ts"
import type { PlanChange } from "../../rune/kinds/plan.ts"
import type { PlanRequest } from "../Command.ts"
import type { ConversationState, PlanState, TaskStatus } from "../State.ts"
import { type AutonomyCommand, autonomy } from "../table/Autonomy.ts"
import { session } from "../table/Session.ts"
import { stopSummary } from "../view/PlanSummary.ts"
import { agentOf, familyOf, isAlive } from "../view/Select.ts"
import { agentDeciders } from "./agent.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endAgent } from "./Ending.ts"
import type { StopReason } from "./LoopBreakers.ts"
import { messageDeciders } from "./message.ts"
import { changeTask } from "./planTask.ts"
import type { Running } from "./Require.ts"
import { startRetry } from "./retry.ts"
import { isActive, isDone, orchestratorIdOf } from "./TaskSchedule.ts"

type Of<Tag extends PlanRequest["_tag"]> = Extract<PlanRequest, { readonly _tag: Tag }>

const takesGoals: ReadonlySet<string> = new Set(["created", "active"])

const submitGoal = (sheet: Drafting, command: Of<"SubmitGoal">): undefined => {
  const { plan, session } = sheet.state
  if (!takesGoals.has(session.status)) {
    sheet.refuse("invalid_state", `Session is ${session.status}: it accepts no goal`, { state: session.status })
  }
  if (plan !== null && !autonomy.terminal.includes(plan.status)) {
    sheet.refuse("invalid_state", `${plan.plan_id} is still ${plan.status}`, { state: plan.status })
  }
  if (plan?.plan_id === command.payload.plan_id) {
    sheet.refuse("invalid_state", `${plan.plan_id} has ended: submit a new goal for another plan`, {
      state: plan.status
    })
  }
  if (isEmptyContent(command.payload.goal)) sheet.refuse("bad_request", emptyGoal)
  const issue = demandsIssue(command.payload)
  if (issue !== undefined) sheet.refuse("bad_request", issue)
  sheet.write(draft("plan.goal_received", command.payload))
}

/** What a task must be for a step to apply to it. */
const before: { readonly [Tag in AutonomyCommand["_tag"]]?: ReadonlyArray<TaskStatus> } = {
  AssignTask: ["pending", "failed"],
  StartTask: ["assigned"],
  CompleteTask: ["running"],
  ReleaseTask: ["assigned", "running"],
  ReturnTask: ["running"],
  ReopenTask: ["completed"],
  FailTask: ["assigned", "running"]
}

type TaskStep = Extract<AutonomyCommand, { readonly _tag: `${string}Task` }>

const requireTask = (sheet: Drafting, plan: PlanState, step: AutonomyCommand, written: Map<TaskId, TaskStatus>) => {
  const wanted = before[step._tag]
  if (wanted === undefined) return
  const { task_id: id } = (step as TaskStep).payload
  const found = plan.tasks.find((one) => one.task.task_id === id)
  if (found === undefined) return sheet.refuse("not_found", `no task ${id} in ${plan.plan_id}`)
  const status = written.get(id) ?? found.status
  if (!wanted.includes(status)) {
    return sheet.refuse("invalid_state", `${id} is ${status}: ${step._tag} does not apply`, { state: status })
  }
  if (step._tag !== "AssignTask") return
  const waitsFor = plan.tasks.filter((one) => found.task.depends_on.includes(one.task.task_id) && !isDone(one))
  if (waitsFor.length > 0) {
    const ids = waitsFor.map((one) => one.task.task_id).join(", ")
    return sheet.refuse("invalid_state", `${id} waits for ${ids}`, { state: status })
  }
  written.set(id, "assigned")
}

/** What is being worked on is not changed under whoever works on it. */
const requireChangeable = (sheet: Drafting, plan: PlanState, change: PlanChange): undefined => {
  if (change.type === "task_noted") return
  if (plan.status === "planning") {
    sheet.refuse("invalid_state", "a plan that is not approved cannot be changed: submit a new one", {
      state: plan.status
    })
  }
  const id = change.type === "task_cancelled" ? change.task_id : change.task.task_id
  const found = plan.tasks.find((one) => one.task.task_id === id)
  if (change.type === "task_added") {
    return found === undefined ? undefined : sheet.refuse("invalid_state", `task ${id} already exists`)
  }
  if (found !== undefined && isActive(found)) {
    sheet.refuse("invalid_state", `${id} is ${found.status}: it cannot be changed now`, { state: found.status })
  }
}

/** What the server itself checked and found wanting proves nothing; and a goal of which nothing was checked is not met. */
const requireEvidence = (sheet: Drafting, step: AutonomyCommand): undefined => {
  const isProven =
    step._tag === "PassCritique"
      ? step.met.payload.evidence.length > 0 && step.met.payload.evidence.every((one) => one.passed)
      : step._tag !== "CompleteTask" || step.payload.evidence.every((one) => one.passed)
  if (!isProven) sheet.refuse("invalid_state", `${step._tag} needs evidence that has passed`)
}

const planIdsOf = (step: AutonomyCommand): ReadonlyArray<PlanId> =>
  step._tag === "PassCritique" ? [step.critique.payload.plan_id, step.met.payload.plan_id] : [step.payload.plan_id]

/** Decided in `planTask.ts`, where what they need is checked. */
const personal: ReadonlySet<AutonomyCommand["_tag"]> = new Set([
  "AddTask",
  "EditTask",
  "DropTask",
  "RetryTask",
  "ReassignTask",
  "ReorderTask",
  "SteerTask"
])

const requireStep = (
  sheet: Drafting,
  plan: PlanState,
  step: AutonomyCommand,
  written: Map<TaskId, TaskStatus>
): undefined => {
  if (planIdsOf(step).some((id) => id !== plan.plan_id)) {
    return sheet.refuse("bad_request", `${step._tag} names another plan than ${plan.plan_id}`)
  }
  if (personal.has(step._tag))
    return sheet.refuse("bad_request", `${step._tag} is a person's: ask for it with ChangeTask`)
  if (step._tag === "UpdatePlan") for (const change of step.payload.changes) requireChangeable(sheet, plan, change)
  if (
    (step._tag === "ApprovePlan" || step._tag === "RejectPlan") &&
    plan.status === "planning" &&
    plan.proposed === null
  ) {
    return sheet.refuse("invalid_state", "no plan has been submitted yet", { state: plan.status })
  }
  if (step._tag === "CreatePlan" && plan.proposed !== null) {
    const message = "a plan was already submitted; it can only be replaced after it is rejected"
    return sheet.refuse("invalid_state", message, { state: plan.status })
  }
  if (step._tag === "Resume" && plan.waiting === null) {
    return sheet.refuse("invalid_state", "the goal is not waiting for a person", { state: plan.status })
  }
  requireEvidence(sheet, step)
  requireTask(sheet, plan, step, written)
}

const stopSteps = ["ExhaustBudget", "GiveUp", "Cancel", "BreakLoop"] as const
type StopStep = Extract<AutonomyCommand, { readonly _tag: (typeof stopSteps)[number] }>

const isStop = (step: AutonomyCommand): step is StopStep => (stopSteps as ReadonlyArray<string>).includes(step._tag)

/** Whoever stops a goal, the log says how far it had come. */
const summedUp = (state: ConversationState, plan: PlanState, step: AutonomyCommand): AutonomyCommand => {
  if (!isStop(step)) return step
  return { ...step, payload: { ...step.payload, summary: stopSummary(state, plan, step.payload) } }
}

/** The conversation ends, and with it the goal that is pursued in it. */
export const stopPlan = (sheet: Drafting, reason: StopReason): undefined => {
  const { plan } = sheet.state
  if (plan === null || autonomy.terminal.includes(plan.status)) return
  const step: AutonomyCommand = { _tag: "Cancel", payload: { plan_id: plan.plan_id, reason } }
  sheet.step(autonomy, plan.status, summedUp(sheet.state, plan, step))
}

const dismiss = (sheet: Drafting, agentIds: ReadonlyArray<AgentId>): undefined => {
  for (const id of agentIds) {
    const agent = agentOf(sheet.state, id)
    if (agent !== undefined && isAlive(agent)) endAgent(sheet, agent, { reason: "work_is_over", force: true })
  }
}

const say = (sheet: Drafting, { say: said, spawn }: Of<"AdvancePlan">): undefined => {
  if (said === undefined) return
  const { agent_id, content } = said
  if (spawn?.agent_id === agent_id) {
    return sheet.write(draft("turn.queued", { input: content, mode: "queue" }, { agent_id }))
  }
  messageDeciders.PostMessage(sheet, { _tag: "PostMessage", agent_id, content, mode: "queue" })
}

const advance = (sheet: Drafting, command: Of<"AdvancePlan">): undefined => {
  const { plan } = sheet.state
  if (plan === null || plan.plan_id !== command.plan_id) return sheet.refuse("not_found", `no plan ${command.plan_id}`)
  if (command.revision !== undefined && command.revision !== plan.revision) {
    const message = `the plan is at revision ${plan.revision} now, not ${command.revision}`
    return sheet.refuse("invalid_state", message, { state: plan.status })
  }
  const written = new Map<TaskId, TaskStatus>()
  let { status } = plan
  for (const step of [command.step, ...(command.also ?? [])]) {
    // Several of a team may come to the same question.
    if (step._tag === "Suspend" && plan.waiting !== null) continue
    requireStep(sheet, plan, step, written)
    status = sheet.step(autonomy, status, summedUp(sheet.state, plan, step))
  }
  if (command.spawn !== undefined) agentDeciders.SpawnAgent(sheet, { _tag: "SpawnAgent", spec: command.spawn })
  say(sheet, command)
  dismiss(sheet, command.dismiss ?? [])
}

const prompt = (sheet: Drafting, command: Of<"PromptTeam">): undefined => {
  const { plan } = sheet.state
  if (plan === null || plan.plan_id !== command.plan_id) return sheet.refuse("not_found", `no plan ${command.plan_id}`)
  const { agent_id, content } = command
  if (agentOf(sheet.state, agent_id)?.turns !== command.turns) {
    return sheet.refuse("invalid_state", `${agent_id} was asked again in the meantime`, { state: plan.status })
  }
  messageDeciders.PostMessage(sheet, { _tag: "PostMessage", agent_id, content, mode: "queue" })
}

/** Calls of the team that only a person could make go on. */
const heldTurns = (state: ConversationState, plan: PlanState): ReadonlyArray<Running> =>
  familyOf(state, orchestratorIdOf(plan.plan_id)).flatMap((agent) =>
    agent.turn?.retry?.waits_for_person === true ? [{ agent, turn: agent.turn }] : []
  )

const wakeSession = (sheet: Drafting, reason: string): undefined => {
  const { status } = sheet.state.session
  if (status === "suspended") sheet.step(session, status, { _tag: "Unsuspend", reason })
  if (status === "paused") sheet.step(session, status, { _tag: "Resume", reason })
}

const resumeGoal = (sheet: Drafting, command: Of<"ResumeGoal">): undefined => {
  const { budget, plan_id: planId, principal, reason } = command
  const { plan, session: now } = sheet.state
  if (plan === null || plan.plan_id !== planId) return sheet.refuse("not_found", `no plan ${planId}`)
  if (autonomy.terminal.includes(plan.status)) {
    return sheet.refuse("invalid_state", `${planId} is over: submit the goal again`, { state: plan.status })
  }
  const held = heldTurns(sheet.state, plan)
  const isStill = now.status === "suspended" || now.status === "paused" || plan.waiting !== null || held.length > 0
  if (!isStill && budget === undefined) {
    return sheet.refuse("invalid_state", "the goal is not waiting for a person", { state: plan.status })
  }
  const lead = orchestratorIdOf(planId)
  const who = principal === undefined ? {} : { principal }
  if (budget !== undefined && agentOf(sheet.state, lead) !== undefined) {
    const payload = { changes: {}, agent_id: lead, budget, ...who }
    sheet.step(session, now.status, { _tag: "Configure", payload })
  }
  wakeSession(sheet, reason)
  if (plan.waiting !== null) {
    const payload = { plan_id: planId, reason, ...(budget === undefined ? {} : { budget }), ...who }
    sheet.step(autonomy, plan.status, { _tag: "Resume", payload })
  }
  for (const running of held) startRetry(sheet, running)
}

export const planDeciders: Deciders<PlanRequest> = {
  SubmitGoal: submitGoal,
  AdvancePlan: advance,
  ResumeGoal: resumeGoal,
  ChangeTask: changeTask,
  PromptTeam: prompt
}
