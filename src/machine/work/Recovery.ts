/**
 * What a crash leaves behind, resolved: the runes to write before anything goes on.
 * Questions about calls stay open, those that were asked in the course of one end,
 * approved calls start, pure and idempotent work runs again, what a client runs is
 * waited for, anything else that had started gets exactly one unknown outcome. The
 * rest of the way is `pendingWork`.
 */
import type { RuneDraft } from "../../rune/Rune.ts"
import { finishHooks, lostHookError } from "../decide/batch.ts"
import { Drafting, type Moment, placeOf } from "../decide/Drafting.ts"
import { draft } from "../decide/Drafts.ts"
import { endCall, placeOfCall, resultOf } from "../decide/Ending.ts"
import type { Running } from "../decide/Require.ts"
import { settlementOf } from "../decide/Settlement.ts"
import { errorInfo } from "../ErrorTable.ts"
import type { CallState, ConversationState, HookState } from "../State.ts"
import { hook as hookMachine } from "../table/Hook.ts"
import { tool } from "../table/Tool.ts"
import { openQuestions } from "../view/Questions.ts"
import { runsInClient } from "../view/Select.ts"
import { pendingWork } from "./PendingWork.ts"

export interface Resolution {
  readonly drafts: ReadonlyArray<RuneDraft>
  /** What goes on by itself once the drafts are durable. */
  readonly pending: number
  /** What was given its end here. */
  readonly resolved: number
}

export interface Loss {
  readonly why: string
  /** Whether the clients that run calls of their own may still come back with the results. */
  readonly clients: "return" | "gone"
}

const serverStopped: Loss = { why: "the server stopped while the call ran", clients: "return" }

/**
 * Work that had started, of a kind that must not run twice. What a client runs goes on there while the server is away:
 * its result is waited for.
 */
const isLost = (call: CallState, { clients }: Loss): boolean =>
  call.status === "executing" &&
  call.attempt > 0 &&
  call.effect_class === "effect" &&
  (clients === "gone" || !runsInClient(call))

const loseCalls = (sheet: Drafting, loss: Loss): ReadonlyArray<string> =>
  sheet.state.calls
    .filter((call) => isLost(call, loss))
    .map((call) => {
      const error = errorInfo("tool_outcome_unknown", `${loss.why}; it is not known whether it took effect`)
      const payload = resultOf(sheet, call, { status: "unknown", error })
      sheet.step(tool, call.status, { _tag: "Lose", payload, place: placeOfCall(call) })
      return `${call.call_id}: outcome unknown`
    })

/** Whoever asked is gone with the process. */
const endAsked = (sheet: Drafting): ReadonlyArray<string> =>
  openQuestions(sheet.state).map((call) => {
    endCall(sheet, call, "the agent that asked has ended", "cancel")
    return `${call.call_id}: nobody waits for the answer`
  })

const loseHook = (sheet: Drafting, running: Running, hook: HookState): string => {
  const payload = { hook_run_id: hook.hook_run_id, status: "canceled", duration_ms: 0, error: lostHookError } as const
  const place = placeOf(running.agent, running.turn)
  sheet.step(hookMachine, hook.status, { _tag: "Cancel", payload, place })
  if (running.turn.hooks.at(-1) === hook) finishHooks(sheet, running, hook, "canceled")
  return `${hook.hook_run_id}: outcome unknown`
}

const loseHooks = (sheet: Drafting): ReadonlyArray<string> =>
  sheet.state.agents.flatMap((agent) => {
    const { turn } = agent
    if (turn === null) return []
    const lost = turn.hooks.filter((hook) => hook.status === "running" && hook.effect_class === "effect")
    return lost.map((hook) => loseHook(sheet, { agent, turn }, hook))
  })

/** Answers that were under way are not joined again: what they used is paid for. */
const cutOffs = (state: ConversationState) =>
  state.agents.flatMap(({ agent_id, turn }) => {
    const usage = settlementOf(turn?.request)
    return turn?.request == null || usage === undefined
      ? []
      : [{ agent_id, turn_id: turn.turn_id, request_id: turn.request.request_id, usage }]
  })

/**
 * The batch to write when a conversation is loaded whose process is gone. Nothing
 * when there is nothing to go on with. Calling it on the resolved state again finds
 * nothing more to resolve.
 */
export const resolveAfterCrash = (state: ConversationState, moment: Moment, loss: Loss = serverStopped): Resolution => {
  const sheet = new Drafting(state, moment)
  const detail = [...loseCalls(sheet, loss), ...endAsked(sheet), ...loseHooks(sheet)]
  const cut = cutOffs(state)
  const pending = pendingWork(state).length
  const resolved = detail.length
  if (resolved + cut.length === 0) return { drafts: [], pending, resolved }
  const payload = { pending, resolved, detail, ...(cut.length === 0 ? {} : { cut_off: cut }) }
  return { drafts: [...sheet.drafts, draft("system.recovered", payload)], pending, resolved }
}
