/**
 * What a crash leaves behind, resolved: the runes to write before anything goes on.
 * Questions stay open, approved calls start, pure and idempotent work runs again,
 * anything else that had started gets exactly one unknown outcome. The rest of the
 * way is `pendingEffects`.
 */
import type { RuneDraft } from "../rune/Rune.ts"
import { draft } from "./Drafts.ts"
import { lostHookError } from "./decide/batch.ts"
import { Drafting, type Moment, placeOf } from "./decide/Drafting.ts"
import { placeOfCall, resultOf } from "./decide/Ending.ts"
import { pendingEffects } from "./Effects.ts"
import { errorInfo } from "./ErrorTable.ts"
import { hook as hookMachine } from "./Hook.ts"
import type { CallState, ConversationState } from "./State.ts"
import { tool } from "./Tool.ts"

export interface Resolution {
  readonly drafts: ReadonlyArray<RuneDraft>
  /** What goes on by itself once the drafts are durable. */
  readonly pending: number
  /** What was given its end here. */
  readonly resolved: number
}

/** Work that had started, of a kind that must not run twice. */
const isLost = (call: CallState): boolean =>
  call.status === "executing" && call.attempt > 0 && call.effect_class === "effect"

const loseCalls = (sheet: Drafting): ReadonlyArray<string> =>
  sheet.state.calls.filter(isLost).map((call) => {
    const error = errorInfo(
      "tool_outcome_unknown",
      "the server stopped while the call ran; it is not known whether it took effect"
    )
    const payload = resultOf(sheet, call, { status: "unknown", error })
    sheet.step(tool, call.status, { _tag: "Lose", payload, place: placeOfCall(call) })
    return `${call.call_id}: outcome unknown`
  })

const cancelHooks = (sheet: Drafting): ReadonlyArray<string> => {
  const lost: Array<string> = []
  for (const agent of sheet.state.agents) {
    for (const hook of agent.turn?.hooks ?? []) {
      if (agent.turn === null || hook.status !== "running" || hook.effect_class !== "effect") continue
      const payload = {
        hook_run_id: hook.hook_run_id,
        status: "canceled",
        duration_ms: 0,
        error: lostHookError
      } as const
      sheet.step(hookMachine, hook.status, { _tag: "Cancel", payload, place: placeOf(agent, agent.turn) })
      lost.push(`${hook.hook_run_id}: outcome unknown`)
    }
  }
  return lost
}

/**
 * The batch to write when a conversation is loaded whose process is gone. Nothing
 * when there is nothing to go on with. Calling it on the resolved state again finds
 * nothing more to resolve.
 */
export const resolveAfterCrash = (state: ConversationState, moment: Moment): Resolution => {
  const sheet = new Drafting(state, moment)
  const detail = [...loseCalls(sheet), ...cancelHooks(sheet)]
  const pending = pendingEffects(state).length
  const resolved = detail.length
  if (resolved === 0) return { drafts: [], pending, resolved }
  return { drafts: [...sheet.drafts, draft("system.recovered", { pending, resolved, detail })], pending, resolved }
}
