/**
 * Deciding to do again what failed in a turn that is over. A new turn begins with the
 * run, the policy is asked as for any other, and the model is told the outcome. What may
 * have taken effect runs again only for somebody who says so.
 */
import { callIdOf, hookRunIdOf } from "../../rune/Ids.ts"
import type { Again, HookRequest, ToolRequest } from "../Command.ts"
import type { AgentState, FailedCall, FailedHook } from "../State.ts"
import type { Drafting } from "./Drafting.ts"
import { startTurn } from "./message.ts"

type RetryCall = Extract<ToolRequest, { readonly _tag: "RetryCall" }>
type RetryHook = Extract<HookRequest, { readonly _tag: "RetryHook" }>

const requireIdle = (sheet: Drafting, { agent_id, turn }: AgentState): undefined =>
  turn === null
    ? undefined
    : sheet.refuse("invalid_state", `${agent_id} is running a turn: retry when it has ended, or interrupt it`, {
        state: turn.status
      })

const requireSaid = (sheet: Drafting, name: string, { repeat_effect: isSaid = false }: Again): undefined =>
  isSaid
    ? undefined
    : sheet.refuse(
        "invalid_state",
        `${name} may have taken effect already: to run it again, set repeat_effect (echs retry --repeat-effect)`,
        {
          needs: "repeat_effect"
        }
      )

const principalOf = ({ principal }: Again) => (principal === undefined ? {} : { principal })

const callAgain = (sheet: Drafting, agent: AgentState, failed: FailedCall, again: Again): undefined => {
  const { call_id: callId, status: _, started, timeout_ms, turn_id, provenance, ...facts } = failed
  requireIdle(sheet, agent)
  if (facts.effect_class === "effect" && started) requireSaid(sheet, facts.tool_name, again)
  const next = callIdOf(sheet.state.next_call)
  const payload = {
    ...facts,
    call_id: next,
    ...(timeout_ms === null ? {} : { timeout_ms }),
    ...(provenance === null ? {} : { provenance })
  }
  const input = {
    input: "",
    retry_of: turn_id,
    target: { type: "tool", call_id: callId },
    ...principalOf(again)
  } as const
  startTurn(sheet, agent, input, ({ payload: begun, place }) => ({
    _tag: "StartWithCalls",
    started: { payload: begun, place },
    received: { payload: { call_ids: [next] }, place },
    calls: [{ payload, place }]
  }))
}

const hooksAgain = (sheet: Drafting, agent: AgentState, failed: FailedHook, again: Again): undefined => {
  const { hook_run_id, turn_id } = failed
  const [first] = failed.hooks
  requireIdle(sheet, agent)
  if (first?.effect_class === "effect") requireSaid(sheet, first.hook_name, again)
  const hooks = failed.hooks.map((one, index) => ({
    hook_run_id: hookRunIdOf(sheet.state.next_hook_run + index),
    ...one
  }))
  const input = { input: "", retry_of: turn_id, target: { type: "hook", hook_run_id }, ...principalOf(again) } as const
  startTurn(sheet, agent, input, ({ payload, place }) => ({
    _tag: "StartWithHooks",
    started: { payload, place },
    finished: { payload: { summaries: [], hooks }, place }
  }))
}

/** Runs a call of a turn that is over again; nothing when there is none such. */
export const rerunCall = (sheet: Drafting, command: RetryCall): "unknown" | undefined => {
  for (const agent of sheet.state.agents) {
    const failed = agent.failed_calls.find((one) => one.call_id === command.call_id)
    if (failed !== undefined) return callAgain(sheet, agent, failed, command)
  }
  return "unknown"
}

/** Runs a hook of a turn that is over again, with those it kept from running. */
export const rerunHook = (sheet: Drafting, command: RetryHook): "unknown" | undefined => {
  for (const agent of sheet.state.agents) {
    const failed = agent.failed_hooks.find((one) => one.hook_run_id === command.hook_run_id)
    if (failed !== undefined) return hooksAgain(sheet, agent, failed, command)
  }
  return "unknown"
}
