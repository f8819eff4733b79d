// The tools of the orchestrator: submit a plan, change one that has come to a standstill, or give the goal up. And the one
// with which a worker leaves a note on its task.
import { tryCommand } from "../../contract/TryCommand.ts"
import { orchestratorIdOf } from "../../machine/decide/TaskSchedule.ts"
import type { PlanState } from "../../machine/State.ts"
import type { TaskId } from "../../rune/Ids.ts"
import type { PlanChange, PlanDifference, PlanTask } from "../../rune/kinds/plan.ts"
import type { Input, Tool } from "../../tool/Tool.ts"
import type { SignalContext, ToolOutcome } from "../../tool/ToolPort.ts"
import { evidenceSchema } from "../evidence/Reader.ts"
import type { Tools } from "../GoalContext.ts"
import { limits } from "../GoalLimits.ts"
import { checkCount, checkGraph, parseTasks, readTasks, taskOf } from "../PlanCheck.ts"
import { Problems } from "../Problems.ts"
import { approvalReason, deniedCommands, refusedChanges } from "./CommandRulings.ts"
import { done, faulty, ownTool, wrong } from "./RoleTool.ts"
import { list, object, text } from "./Schema.ts"

const task = object(
  {
    id: text("short and unique, such as t1"),
    title: text("one line"),
    instructions: text("all a worker has to know; it sees nothing else"),
    depends_on: list({ type: "string" }, "ids of tasks that must be done before"),
    priority: { enum: ["critical", "high", "medium", "low"] },
    role: text("worker unless told"),
    model: text("the model for this task; left out, the one for all workers"),
    success_criteria: list({ type: "string" }, "what must be true at the end"),
    evidence: evidenceSchema
  },
  ["id", "title", "instructions", "evidence"]
)

const noPlan = wrong("there is no goal that this conversation pursues", "no_plan")

const sameTasks = (plan: PlanState, tasks: ReadonlyArray<PlanTask>): boolean =>
  JSON.stringify(plan.tasks.map((one) => one.task)) === JSON.stringify(tasks)

/** What becomes of the tasks of the plan before. */
const differenceOf = (plan: PlanState, tasks: ReadonlyArray<PlanTask>): PlanDifference => {
  const before = new Map(plan.tasks.map((one) => [one.task.task_id, one]))
  const ids = new Set(tasks.map((one) => one.task_id))
  const isChanged = (one: PlanTask): boolean =>
    before.has(one.task_id) && JSON.stringify(before.get(one.task_id)?.task) !== JSON.stringify(one)
  return {
    added: tasks.filter((one) => !before.has(one.task_id)).map((one) => one.task_id),
    changed: tasks.filter(isChanged).map((one) => one.task_id),
    dropped: plan.tasks
      .filter((one) => !ids.has(one.task.task_id))
      .map((one) => ({ task_id: one.task.task_id, status: one.status }))
  }
}

const submitPlan = async (tools: Tools, input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { conversation } = context
  const state = conversation.state()
  const { plan } = state
  if (plan === null) return noPlan
  const parsed = parseTasks(input["tasks"])
  if (parsed._tag === "Faulty") return faulty("plan", parsed.problems)
  const denied = deniedCommands(tools, state, parsed.value)
  if (denied.length > 0) return faulty("plan", denied.slice(0, limits.problemsMax))
  // The call was cut off after it had taken effect.
  if (context.attempt > 1 && plan.revision > 0 && sameTasks(plan, parsed.value)) return done("The plan is on record.")
  const needsApproval = approvalReason(tools, state, parsed.value)
  const summary = input["summary"]
  const refusal = await tryCommand(conversation, {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: {
      _tag: "CreatePlan",
      payload: {
        plan_id: plan.plan_id,
        tasks: parsed.value,
        revision: plan.revision + 1,
        ...(typeof summary === "string" ? { summary } : {}),
        ...(needsApproval === undefined ? {} : { needs_approval: needsApproval }),
        ...(plan.revision === 0 ? {} : { difference: differenceOf(plan, parsed.value) })
      }
    }
  })
  if (refusal !== undefined) return wrong(`a plan is not expected now: ${refusal.message}`, "not_expected")
  return done(`The plan is on record: ${parsed.value.length} tasks. Nothing more is to be done now.`)
}

const noteOf = async (plan: PlanState, input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const problems = new Problems()
  const note = problems.text("note", input["note"], limits.findingCharsMax)
  const own = plan.tasks.find((one) => one.agent_id === context.agent_id)
  if (own === undefined) problems.add("note", "you work on no task of this plan")
  if (problems.list.length > 0 || own === undefined) return faulty("note", problems.list)
  const change: PlanChange = { type: "task_noted", task_id: own.task.task_id as TaskId, note }
  const payload = { plan_id: plan.plan_id, changes: [change] }
  const refusal = await tryCommand(context.conversation, {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: { _tag: "UpdatePlan", payload }
  })
  return refusal === undefined ? done("Noted; whoever reviews will read it.") : wrong(refusal.message, "not_expected")
}

type Changes = { readonly changes: ReadonlyArray<PlanChange>; readonly problems: Problems }

const cancellation = (problems: Problems, value: unknown): Extract<PlanChange, { type: "task_cancelled" }> => {
  const given = (value ?? {}) as Readonly<Record<string, unknown>>
  const id = problems.text("cancel.id", given["id"], 64) as TaskId
  return { type: "task_cancelled", task_id: id, reason: problems.text("cancel.reason", given["reason"] ?? "dropped") }
}

const listed = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The tasks as they are to be are looked at together with those that stay: they may depend on each other. */
const changesOf = (plan: PlanState, input: Input): Changes => {
  const problems = new Problems()
  const known = new Map(plan.tasks.map(({ task: one }) => [one.task_id as string, one]))
  const given = { change: listed(input["change"]), add: listed(input["add"]) }
  if (!checkCount(problems, known.size + given.add.length)) return { changes: [], problems }
  const changed = readTasks(problems, "change", given.change)
  const added = readTasks(problems, "add", given.add)
  const cancelled = listed(input["cancel"]).map((one) => cancellation(problems, one))
  const missing = [
    ...changed.map((one) => ["change", one.task_id] as const),
    ...cancelled.map((one) => ["cancel", one.task_id] as const)
  ].filter(([, id]) => !known.has(id))
  if (problems.list.length === 0) for (const [where, id] of missing) problems.add(where, `there is no task ${id}`)
  for (const { task_id: id } of changed) known.delete(id)
  if (problems.list.length === 0) checkGraph(problems, [...changed, ...added], [...known.values()])
  const changes: ReadonlyArray<PlanChange> = [
    ...changed.map((one): PlanChange => ({ type: "task_changed", task: one })),
    ...added.map((one): PlanChange => ({ type: "task_added", task: one })),
    ...cancelled
  ]
  if (changes.length === 0 && problems.list.length === 0) problems.add("changes", "nothing is changed")
  return { changes, problems }
}

/** Whether the plan is as the call wants it: nothing in the log names the call that changed it. */
const isChanged = (plan: PlanState, input: Input): boolean => {
  const wanted = [...listed(input["change"]), ...listed(input["add"])].map((one) => taskOf(new Problems(), "", one))
  const dropped = listed(input["cancel"]).map((one) => cancellation(new Problems(), one).task_id)
  const isThere = (wish: PlanTask | undefined): boolean =>
    plan.tasks.some(({ task: one }) => JSON.stringify(one) === JSON.stringify(wish))
  const isDropped = (id: TaskId): boolean =>
    plan.tasks.some((one) => one.task.task_id === id && one.status === "cancelled")
  return wanted.every(isThere) && dropped.every(isDropped)
}

const updatePlan = async (tools: Tools, input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { conversation } = context
  const state = conversation.state()
  const { plan } = state
  if (plan === null) return noPlan
  if (context.agent_id !== orchestratorIdOf(plan.plan_id)) return noteOf(plan, input, context)
  // The call was cut off after it had taken effect.
  if (context.attempt > 1 && isChanged(plan, input)) return done("The plan is changed.")
  const { changes, problems } = changesOf(plan, input)
  problems.list.push(...refusedChanges(tools, state, changes))
  const checked = problems.checked(changes)
  if (checked._tag === "Faulty") return faulty("change", checked.problems)
  const refusal = await tryCommand(conversation, {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: { _tag: "UpdatePlan", payload: { plan_id: plan.plan_id, changes: checked.value } }
  })
  return refusal === undefined ? done("The plan is changed.") : wrong(refusal.message, "not_expected")
}

const giveUp = async (input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { conversation } = context
  const { plan } = conversation.state()
  if (plan === null) return noPlan
  const problems = new Problems()
  const summary = problems.text("reason", input["reason"], limits.findingCharsMax)
  if (problems.list.length > 0) return faulty("reason", problems.list)
  const payload = { plan_id: plan.plan_id, reason: "unresolvable", summary }
  const refusal = await tryCommand(conversation, {
    _tag: "AdvancePlan",
    plan_id: plan.plan_id,
    step: { _tag: "GiveUp", payload }
  })
  return refusal === undefined ? done("The goal is given up.") : wrong(refusal.message, "not_expected")
}

export const makeSubmitPlan = (tools: Tools): Tool =>
  ownTool({
    name: "submit_plan",
    description: "Hands in the plan for the goal: all its tasks, in place of any plan before.",
    parameters: object({ summary: text("the plan in two sentences"), tasks: list(task, "the tasks") }, ["tasks"]),
    effect_class: "idempotent",
    run: (input, context) => submitPlan(tools, input, context)
  })

export const makeUpdatePlan = (tools: Tools): Tool =>
  ownTool({
    name: "update_plan",
    description:
      "Changes the plan: add, change or cancel tasks (for the orchestrator), or leaves a note on your own task (for workers).",
    parameters: object(
      {
        add: list(task, "new tasks"),
        change: list(task, "tasks as they are to be from now on; they start anew"),
        cancel: list(object({ id: text("of the task"), reason: text("why") }, ["id"]), "tasks to drop"),
        note: text("workers: progress, or a change that the plan needs")
      },
      []
    ),
    effect_class: "idempotent",
    run: (input, context) => updatePlan(tools, input, context)
  })

export const giveUpTool: Tool = ownTool({
  name: "give_up",
  description: "Says that the goal cannot be met, and why. Only when the work has come to a standstill.",
  parameters: object({ reason: text("for the person whose goal it is") }, ["reason"]),
  effect_class: "effect",
  run: giveUp
})
