/**
 * Signs that a goal, or an agent that works for one, goes round in circles. Each has
 * a name of its own, which is the reason the log gives for the stop.
 */
import { elementAt } from "../../rune/Elements.ts"
import { canonicalJson } from "../Canonical.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, CallRecord, ConversationState, PlanState } from "../State.ts"
import { agentOf } from "../view/Select.ts"
import { criticIdOf, isActive, isLost, orchestratorIdOf, readyTasks } from "./TaskSchedule.ts"

/** Every reason for which the loop stops by itself or is stopped. */
export const stopReasons = [
  "user_cancel",
  "conversation_closed",
  "forked",
  "budget_exhausted",
  "unresolvable",
  "planner_silent",
  "no_worktrees",
  "critic_silent",
  "orchestrator_ended",
  "plans_rejected",
  "iterations_exhausted",
  "replans_exhausted",
  "verdict_ping_pong",
  "no_progress",
  "plans_refused",
  "reviews_refused",
  "spend_without_progress",
  "repeated_tool_calls",
  "compaction_without_headroom"
] as const
export type StopReason = (typeof stopReasons)[number]

export interface Broken {
  /** Refused calls end a turn, and with it an attempt at a task, but no goal. */
  readonly reason: StopReason | "refused_tool_calls"
  readonly detail: string
}

/** Failures that trying again does not mend. */
const loopFailures: ReadonlySet<string> = new Set(["repeated_tool_calls", "compaction_without_headroom"])

const pingPong = ({ verdicts }: PlanState): Broken | undefined => {
  const last = verdicts.at(-1)
  if (last === undefined || last.verdict === "pass") return undefined
  const same = verdicts.filter((one) => one.mark === last.mark && one.verdict === last.verdict).length
  const [a, b, c, d] = verdicts.slice(-4).map((one) => `${one.verdict} ${one.mark}`)
  const takesTurns = d !== undefined && a === c && b === d && a !== b
  if (same < limits.sameVerdictsMax && !takesTurns) return undefined
  const detail = takesTurns ? "two verdicts alternate" : `the critic reported the same findings ${same} times`
  return { reason: "verdict_ping_pong", detail }
}

const spending = (state: ConversationState, plan: PlanState): Broken | undefined => {
  const spent = state.usage.input_tokens + state.usage.output_tokens - plan.progress_tokens
  const max = plan.options.tokens_without_progress ?? limits.tokensWithoutProgressMax
  return spent <= max
    ? undefined
    : {
        reason: "spend_without_progress",
        detail: `${spent} tokens were used since the last progress; the limit is ${max}`
      }
}

/** A task that goes round in circles ends the goal only when no other task is worked on or could be. */
const lostInLoop = (plan: PlanState): Broken | undefined => {
  if (plan.tasks.some(isActive) || readyTasks(plan).length > 0) return undefined
  for (const task of plan.tasks) {
    const { failure } = task
    if (!isLost(task) || failure === null || !loopFailures.has(failure.code)) continue
    return { reason: failure.code as StopReason, detail: `${task.task.task_id}: ${failure.message}` }
  }
  return undefined
}

const replans = (plan: PlanState): Broken | undefined => {
  const max = plan.options.max_replans ?? limits.planReplansMax
  return plan.replans <= max
    ? undefined
    : { reason: "replans_exhausted", detail: `a new plan was requested ${plan.replans} times; the limit is ${max}` }
}

/** A round that turns no check green brings the goal no nearer, whatever was done in it. */
const standstill = (plan: PlanState): Broken | undefined => {
  const isJudged = plan.last_verdict !== null && plan.last_verdict !== "pass" && plan.status !== "reviewing"
  if (!isJudged || plan.stale_reviews < limits.staleReviewsMax) return undefined
  const detail = `in ${plan.stale_reviews} rounds no check turned green that had not passed before`
  return { reason: "no_progress", detail }
}

/** Answers that were not accepted: the model called wrongly, what it handed in was faulty, or the policy forbids it. */
const refusals: ReadonlySet<string> = new Set([
  "invalid_arguments",
  "arguments_too_large",
  "unknown_tool",
  "tool_denied",
  "not_expected",
  "no_plan"
])

const callsOf = (agent: AgentState): ReadonlyArray<CallRecord> =>
  agent.transcript.flatMap((item) => (item.type === "assistant" && item.rerun !== true ? item.calls : []))

/** How many of the newest of these calls were refused in a row, and what the newest was told. */
const refusedInRow = (calls: ReadonlyArray<CallRecord>): { readonly count: number; readonly why: string } => {
  const answered = calls.filter(({ result }) => result !== undefined)
  const isRefused = ({ result }: CallRecord): boolean => refusals.has(result?.error?.code ?? "")
  const accepted = answered.findLastIndex((call) => !isRefused(call))
  return { count: answered.length - 1 - accepted, why: answered.at(-1)?.result?.error?.message ?? "" }
}

/** Plans and reviews that were handed in again and again and never accepted, however much was read in between. */
const refusedHandIns = (state: ConversationState, plan: PlanState): Broken | undefined => {
  if (plan.status !== "planning" && plan.status !== "reviewing") return undefined
  const isReview = plan.status === "reviewing"
  const id = isReview ? (plan.critic_id ?? criticIdOf(plan.plan_id, plan.iterations)) : orchestratorIdOf(plan.plan_id)
  const agent = agentOf(state, id)
  if (agent === undefined) return undefined
  const name = isReview ? "submit_review" : "submit_plan"
  const { count, why } = refusedInRow(callsOf(agent).filter((call) => call.tool_name === name))
  if (count < limits.refusalsInRowMax) return undefined
  const what = isReview ? "reviews" : "plans"
  return { reason: `${what}_refused`, detail: `${count} ${what} in a row were refused; the last one: ${why}` }
}

/** Why the loop must not go on, if it must not. */
export const loopBroken = (state: ConversationState, plan: PlanState): Broken | undefined =>
  pingPong(plan) ??
  replans(plan) ??
  standstill(plan) ??
  refusedHandIns(state, plan) ??
  spending(state, plan) ??
  lostInLoop(plan)

const isSame = (left: CallRecord, right: CallRecord): boolean =>
  left.tool_name === right.tool_name &&
  left.result?.output === right.result?.output &&
  canonicalJson(left.arguments) === canonicalJson(right.arguments)

/** How many of the agent's newest calls are one and the same, with one and the same outcome; looks no further than needed. */
const sameCalls = (agent: AgentState): number => {
  let newest: CallRecord | undefined
  let same = 0
  for (let index = agent.transcript.length - 1; index >= 0; index--) {
    const item = elementAt(agent.transcript, index)
    if (item.type === "note" || (item.type === "assistant" && item.rerun === true)) continue
    if (item.type !== "assistant") return same
    for (const call of item.calls.toReversed()) {
      // Whoever waits for others has nothing else to say.
      if (call.tool_name === "wait_agent") return same
      newest ??= call
      if (!isSame(newest, call)) return same
      same += 1
      if (same >= limits.sameCallsMax) return same
    }
  }
  return same
}

/** The calls of the turn that runs, as far back as refusals count. */
const newestCalls = (agent: AgentState): ReadonlyArray<CallRecord> => {
  const asked = agent.transcript.findLastIndex((item) => item.type === "user")
  const recent = agent.transcript.slice(Math.max(asked + 1, agent.transcript.length - 2 * limits.refusalsInRowMax))
  return callsOf({ ...agent, transcript: recent })
}

/** Why an agent's turn must not go on, if it must not. */
export const turnBroken = (agent: AgentState): Broken | undefined => {
  if (agent.turn?.status !== "streaming") return undefined
  if (agent.turn.compactions >= limits.compactionsInRowMax) {
    const detail = `the context had to be summarized before each of ${agent.turn.compactions} model calls in a row`
    return { reason: "compaction_without_headroom", detail }
  }
  if (sameCalls(agent) >= limits.sameCallsMax) {
    const detail = `the same tool call was made ${limits.sameCallsMax} times in a row, with the same outcome`
    return { reason: "repeated_tool_calls", detail }
  }
  const { count, why } = refusedInRow(newestCalls(agent))
  return count < limits.refusalsInRowMax
    ? undefined
    : { reason: "refused_tool_calls", detail: `${count} tool calls in a row were refused; the last one: ${why}` }
}
