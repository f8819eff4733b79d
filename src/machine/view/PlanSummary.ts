/** How far a goal has come, in words: for the log when it stops, and for whoever has to decide about it. */

import { specText } from "../../rune/EvidenceText.ts"
import { addTotals, costUsd, noUsage, type Totals } from "../../rune/UsageTotals.ts"
import type { StopReason } from "../decide/LoopBreakers.ts"
import { isActive, isLost, orchestratorIdOf } from "../decide/TaskSchedule.ts"
import type { ConversationState, PlanState, TaskState } from "../State.ts"
import { pathOf } from "./Select.ts"

export interface TeamUse {
  readonly usage: Totals
  readonly tool_calls: number
  readonly agents: number
}

/** What all agents of the goal have used, those that are gone included. */
export const teamUse = (state: ConversationState, plan: PlanState): TeamUse => {
  const lead = orchestratorIdOf(plan.plan_id)
  const team = state.agents.filter((agent) => pathOf(state, agent.agent_id).includes(lead))
  const all = [...team, ...team.flatMap((agent) => (agent.forgotten === null ? [] : [agent.forgotten]))]
  const sum = noUsage()
  for (const { usage } of all) addTotals(sum, usage)
  return {
    usage: sum,
    tool_calls: all.reduce((sum, one) => sum + one.tool_calls, 0),
    agents: team.length
  }
}

export const costText = ({ tool_calls: calls, usage }: TeamUse): string => {
  const tokens = usage.input_tokens + usage.output_tokens
  const cost = costUsd(usage)
  const usd = cost === null ? ", at an unknown cost" : cost === 0 ? "" : `, $${cost.toFixed(4)}`
  return `${tokens} tokens and ${calls} tool calls${usd}`
}

export const durationText = (ms: number): string => {
  const seconds = Math.round(ms / 1000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

const line = ({ failure, note, status, task }: TaskState): string => {
  const why = failure === null ? "" : `: ${failure.message}`
  return `- ${task.task_id} (${status}) ${task.title}${why}${note === null ? "" : ` – ${note}`}`
}

const linesMax = 40

/** Every task with its state, the newest word about it, and why it failed if it did. */
export const taskLines = (tasks: ReadonlyArray<TaskState>): ReadonlyArray<string> => {
  const rest = tasks.length - linesMax
  return [...tasks.slice(0, linesMax).map(line), ...(rest > 0 ? [`- and ${rest} more`] : [])]
}

const checksMax = 10

/** The checks that failed when they were last made, those of the newest review first; what is hidden stays so. */
const failedChecks = (plan: PlanState): ReadonlyArray<string> => {
  const all = [
    ...plan.evidence,
    ...plan.tasks.filter((one) => one.status !== "completed").flatMap((one) => one.evidence)
  ]
  const failed = [...new Set(all.filter((one) => !one.passed).map(checkText))]
  const rest = failed.length - checksMax
  if (failed.length === 0) return []
  return ["Checks that failed:", ...failed.slice(0, checksMax), ...(rest > 0 ? [`- and ${rest} more`] : [])]
}

const checkText = ({ detail, origin, spec }: PlanState["evidence"][number]): string => {
  if (origin === "hidden") return "- a check that only you know"
  const text = (detail ?? "").trim()
  const last = text
    .slice(text.lastIndexOf("\n") + 1)
    .slice(0, 200)
    .toWellFormed()
  return `- ${specText(spec)}${last === "" ? "" : `: ${last}`}`
}

const again = "submit the goal again"

/** What a person can do about it. */
const nextSteps: { readonly [Reason in StopReason]: string } = {
  user_cancel: `${again} when it is wanted`,
  conversation_closed: `${again} in another conversation`,
  forked: "look at the conversation that this one is a fork of",
  budget_exhausted: `${again} with a larger budget, or without stop_on_budget, so that it waits for more`,
  unresolvable: `see to what holds the tasks up, or put the goal differently, then ${again}`,
  planner_silent: `${again} with another model for the planner`,
  no_worktrees: "begin again without worktrees, or at the top of a repository",
  critic_silent: `${again} with another model for the critic`,
  orchestrator_ended: `${again}: the agent that leads a goal must stay`,
  plans_rejected: `put into the goal what the rejected plans missed, then ${again}`,
  iterations_exhausted: "look at the checks and findings, then submit what is left as a goal, with more max_iterations",
  replans_exhausted: `split the goal, or say more about how to reach it, then ${again}`,
  verdict_ping_pong: `decide what the critic cannot: give the goal a check of your own, then ${again}`,
  no_progress: "look at the checks that failed: mend them by hand, or split the goal into smaller ones",
  plans_refused: `${again} with another model for the planner, or see to what was refused`,
  reviews_refused: `${again} with another model for the critic, or see to what was refused`,
  spend_without_progress: `split the goal, or allow more with tokens_without_progress, then ${again}`,
  repeated_tool_calls: `${again} with another model for workers, or split the task`,
  compaction_without_headroom: `split the task, or ${again} with a model that takes more`
}

const nextStep = (reason: string): ReadonlyArray<string> =>
  Object.hasOwn(nextSteps, reason) ? [`What to do next: ${nextSteps[reason as StopReason]}.`] : []

/** Why it stopped, what was done by then, what failed, what it cost, and what a person can do. */
export const stopSummary = (
  state: ConversationState,
  plan: PlanState,
  stop: { readonly reason: string; readonly summary?: string }
): string => {
  const count = (is: (task: TaskState) => boolean): number => plan.tasks.filter(is).length
  const completed = count((task) => task.status === "completed")
  return [
    `The goal was not met (${stop.reason})${stop.summary === undefined ? "" : `: ${stop.summary}`}`,
    `${completed} of ${plan.tasks.length} tasks were completed, ${count(isLost)} failed, ${count(isActive)} were in progress.`,
    ...taskLines(plan.tasks),
    ...failedChecks(plan),
    ...nextStep(stop.reason),
    `Cost: ${costText(teamUse(state, plan))}. Time: ${durationText(Math.max(0, state.last_ms - plan.started_ms))}.`
  ].join("\n")
}
