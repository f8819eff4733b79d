/**
 * Deciding what follows a batch of calls: hooks if it changed something and hooks
 * wait for that, then the next model call, unless new input took over meanwhile.
 */
import { hookRunIdOf } from "../../rune/Ids.ts"
import { usageOf } from "../../rune/UsageTotals.ts"
import type { HookRequest, TurnRequest } from "../Command.ts"
import { errorInfo } from "../ErrorTable.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, HookState } from "../State.ts"
import { agent as agentMachine } from "../table/Agent.ts"
import { hook as hookMachine } from "../table/Hook.ts"
import { turn as turnMachine } from "../table/Turn.ts"
import { batchOf, hookOf, isOpen, nextHook } from "../view/Select.ts"
import { type Deciders, type Drafting, placeOf } from "./Drafting.ts"
import { failTurn, markInterrupted } from "./Ending.ts"
import { type Running, requireTurn } from "./Require.ts"
import { rerunHook } from "./rerun.ts"
import { startRetry } from "./retry.ts"

type Settle = Extract<TurnRequest, { readonly _tag: "SettleTools" }>
type Of<Tag extends HookRequest["_tag"]> = Extract<HookRequest, { readonly _tag: Tag }>

const hasSteer = (agent: AgentState): boolean => agent.queue.some((one) => one.mode === "steer")

/** The turn is about to ask the model again: new input and the limit on calls have a say first. */
const beforeNextCall = (sheet: Drafting, running: Running): undefined => {
  const status = "streaming"
  if (hasSteer(running.agent)) return markInterrupted(sheet, running, { reason: "steer", command: "Steer", status })
  if (running.turn.model_calls < limits.modelCallsPerTurnMax) return
  const message = `the turn called the model ${running.turn.model_calls} times, the limit`
  failTurn(
    sheet,
    running,
    { error_type: "turn_limit_exceeded", message, retryable: false, source: "orchestrator" },
    { status }
  )
}

export const settleTools = (sheet: Drafting, command: Settle): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  const batch = batchOf(sheet.state, turn)
  if (batch.some(isOpen)) {
    sheet.refuse("invalid_state", "calls of the batch are still open", { state: turn.status })
    return
  }
  const place = placeOf(agent, turn)
  const summaries = batch.map((call) => ({
    call_id: call.call_id,
    tool_name: call.tool_name,
    status: call.result?.status ?? "unknown",
    duration_ms: call.duration_ms
  }))
  const isMutating = batch.some((call) => call.mutating && call.attempt > 0)
  if (isMutating && command.hooks.length > 0) {
    const hooks = command.hooks.map((choice, index) => ({
      hook_run_id: hookRunIdOf(sheet.state.next_hook_run + index),
      ...choice
    }))
    sheet.step(turnMachine, turn.status, { _tag: "FinishToolsWithHooks", payload: { summaries, hooks }, place })
    return
  }
  if (command.end_turn === true && !hasSteer(agent)) {
    const completed = { final_output: "", usage: usageOf(turn.usage) }
    sheet.guard(agentMachine, agent.status, { _tag: "EndTurnCompleted", payload: completed, place })
    sheet.step(turnMachine, turn.status, {
      _tag: "FinishToolsAndComplete",
      finished: { payload: { summaries, ends_turn: true }, place },
      completed: { payload: completed, place }
    })
    return
  }
  sheet.step(turnMachine, turn.status, { _tag: "FinishTools", payload: { summaries }, place })
  beforeNextCall(sheet, running)
}

const start = (sheet: Drafting, command: Of<"StartHook">): undefined => {
  const found = hookOf(sheet.state, command.hook_run_id)
  if (found === undefined) return sheet.refuse("not_found", `no hook run ${command.hook_run_id}`)
  const { agent, turn, hook } = found
  if (nextHook(sheet.state) !== hook) {
    sheet.refuse("invalid_state", `Turn is ${turn.status}: it is not the turn of ${hook.hook_name}`, {
      state: hook.status
    })
  }
  const payload = {
    hook_run_id: hook.hook_run_id,
    hook_name: hook.hook_name,
    call_ids: turn.call_ids,
    attempt: hook.attempt + 1
  }
  sheet.step(hookMachine, hook.status, { _tag: "Start", payload, place: placeOf(agent, turn) })
}

const statusCommand = { succeeded: "Succeed", failed: "Fail", canceled: "Cancel" } as const

/** The model has had its say about the batch: only hooks that a person has run again come after that. */
const isAnswered = (agent: AgentState): boolean => {
  const newest = agent.transcript.findLast((item) => item.type === "assistant" || item.type === "user")
  return newest?.type === "assistant" && newest.calls.length === 0
}

/** The last hook is done: on to the next model call, unless it has been made. */
export const finishHooks = (sheet: Drafting, running: Running, done: HookState, status: string): undefined => {
  const { agent, turn } = running
  const summaries = turn.hooks.map((one) => ({
    hook_run_id: one.hook_run_id,
    hook_name: one.hook_name,
    status: one === done ? status : one.status
  }))
  const place = placeOf(agent, turn)
  if (isAnswered(agent) && !hasSteer(agent)) {
    const completed = { final_output: "", usage: usageOf(turn.usage) }
    sheet.guard(agentMachine, agent.status, { _tag: "EndTurnCompleted", payload: completed, place })
    sheet.step(turnMachine, turn.status, {
      _tag: "FinishHooksAndComplete",
      finished: { payload: { summaries, ends_turn: true }, place },
      completed: { payload: completed, place }
    })
    return
  }
  sheet.step(turnMachine, turn.status, { _tag: "FinishHooks", payload: { summaries }, place })
  beforeNextCall(sheet, running)
}

/** What a hook's own policy says about its failure: go on, try again, or end the turn. */
const afterFailure = (sheet: Drafting, running: Running, hook: HookState, message: string): "continue" | "ended" => {
  const { agent, turn } = running
  const policy = hook.failure_policy
  if (policy.type === "warn_continue") return "continue"
  const error = { error_type: "hook_execution_failed", message, source: "hook" } as const
  const runs = policy.type === "retry" ? policy.max_attempts : 1 + limits.maxHookRetries
  if (policy.type === "fail_session" || hook.attempt >= runs) {
    failTurn(sheet, running, { ...error, retryable: false })
    return "ended"
  }
  const target = { type: "hook", hook_run_id: hook.hook_run_id } as const
  const payload = { attempt: hook.attempt + 1, delay_ms: policy.delay_ms, target, ...error }
  sheet.step(turnMachine, turn.status, { _tag: "ScheduleRetry", payload, place: placeOf(agent, turn) })
  return "ended"
}

const finish = (sheet: Drafting, command: Of<"FinishHook">): undefined => {
  const found = hookOf(sheet.state, command.hook_run_id)
  if (found === undefined) return sheet.refuse("not_found", `no hook run ${command.hook_run_id}`)
  const { agent, turn, hook } = found
  const { _tag: _, ...payload } = command
  sheet.step(hookMachine, hook.status, { _tag: statusCommand[command.status], payload, place: placeOf(agent, turn) })
  if (command.status === "failed") {
    const message = command.error?.message ?? `hook ${hook.hook_name} exited with ${command.exit_code ?? "no code"}`
    if (afterFailure(sheet, { agent, turn }, hook, message) === "ended") return
  }
  const isLast = turn.hooks.at(-1) === hook
  if (isLast) finishHooks(sheet, { agent, turn }, hook, command.status)
}

const retry = (sheet: Drafting, command: Of<"RetryHook">): undefined => {
  const { hook_run_id: id } = command
  const found = hookOf(sheet.state, id)
  const target = found?.turn.retry?.target
  if (found !== undefined && target?.type === "hook" && target.hook_run_id === id) return startRetry(sheet, found)
  if (rerunHook(sheet, command) === undefined) return undefined
  if (found !== undefined)
    return sheet.refuse("invalid_state", `${id} is not waiting for a retry`, { state: found.hook.status })
  return sheet.refuse("not_found", `no failed hook run ${id}: it succeeded, was retried already, or is too old`)
}

/** What the log says of a hook that a crash cut off. */
export const lostHookError = errorInfo(
  "hook_outcome_unknown",
  "the server stopped while the hook ran; it is not known whether it took effect"
)

export const hookDeciders: Deciders<HookRequest> = {
  StartHook: start,
  FinishHook: finish,
  RetryHook: retry
}
