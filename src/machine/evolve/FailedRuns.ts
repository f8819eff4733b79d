/**
 * Runs of tools and hooks that did not go well, kept beside the transcript: with them a
 * person can have one done again after its turn is over. Each can be asked for once; the
 * run that follows is one of its own.
 */
import type { PlannedHook } from "../../rune/kinds/turn.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableAgent, MutableCall, MutableHook, MutableTurn } from "../State.ts"
import { pushBounded } from "./Parts.ts"

/** A hook as it is planned, whatever became of this run of it. */
export const plannedOf = (hook: MutableHook): Omit<PlannedHook, "hook_run_id"> => ({
  hook_name: hook.hook_name,
  failure_policy: hook.failure_policy,
  timeout_ms: hook.timeout_ms,
  effect_class: hook.effect_class
})

/** A call is over. One outside any turn, or one that the model did not write readably, cannot be run again. */
export const keepFailedCall = (agent: MutableAgent, call: MutableCall): void => {
  const { result, turn_id: turnId } = call
  if (turnId === null || result === null || result.status === "success" || call.unreadable === true) return
  const { arguments_hash, call_id, effect_class, mutating, provenance, timeout_ms, tool_name } = call
  const facts = { tool_name, arguments_hash, effect_class, mutating, timeout_ms, provenance }
  const outcome = { status: result.status, started: call.attempt > 0 }
  const failed = { call_id, turn_id: turnId, arguments: call.arguments, ...facts, ...outcome }
  pushBounded(agent.failed_calls, failed, limits.failedRunsMax)
}

/** A hook run is over; it may have been tried before in the same turn. */
export const keepFailedHook = (agent: MutableAgent, turn: MutableTurn, hook: MutableHook): void => {
  agent.failed_hooks = agent.failed_hooks.filter((one) => one.hook_run_id !== hook.hook_run_id)
  if (hook.status === "succeeded") return
  const { hook_run_id } = hook
  const failed = { hook_run_id, turn_id: turn.turn_id, call_ids: [...turn.call_ids], hooks: [plannedOf(hook)] }
  pushBounded(agent.failed_hooks, failed, limits.failedRunsMax)
}
