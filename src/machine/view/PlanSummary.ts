/** How far a goal has come, in words: for the log when it stops, and for whoever has to decide about it. */

import { addTotals, costUsd, noUsage, type Totals } from "../../rune/UsageTotals.ts"
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
  const usd = cost === null ? ", at a cost that is not known" : cost === 0 ? "" : `, $${cost.toFixed(4)}`
  return `${tokens} tokens in ${calls} tool calls and the talk around them${usd}`
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

/** Why it stopped, what was done by then, and what it cost. */
export const stopSummary = (
  state: ConversationState,
  plan: PlanState,
  stop: { readonly reason: string; readonly summary?: string }
): string => {
  const count = (is: (task: TaskState) => boolean): number => plan.tasks.filter(is).length
  const completed = count((task) => task.status === "completed")
  return [
    `The goal was not met (${stop.reason})${stop.summary === undefined ? "" : `: ${stop.summary}`}`,
    `${completed} of ${plan.tasks.length} tasks were completed, ${count(isLost)} failed, ${count(isActive)} were under way.`,
    ...taskLines(plan.tasks),
    `Cost: ${costText(teamUse(state, plan))}. Time: ${durationText(Math.max(0, state.last_ms - plan.started_ms))}.`
  ].join("\n")
}
