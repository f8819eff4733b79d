/** Folding checkpoints in: the newest are kept, for whoever wants to go back to one. */
import { ordinalOf } from "../../rune/Ids.ts"
import { limits } from "../MachineLimits.ts"
import type { Handlers } from "./Parts.ts"

const nothing = (): void => undefined

export const checkpointHandlers: Handlers<"checkpoint"> = {
  "checkpoint.made": (state, rune) => {
    const { call_id: callId, duration_ms: _, turn_event_id: turnEventId, ...payload } = rune.payload
    state.next_checkpoint = Math.max(state.next_checkpoint, ordinalOf(payload.checkpoint_id) + 1)
    state.checkpoint_failure = null
    state.checkpoints.push({
      ...payload,
      event_id: rune.event_id,
      made_ms: rune.ts_ms,
      agent_id: rune.agent_id ?? null,
      turn_id: rune.turn_id ?? null,
      call_id: callId ?? null,
      turn_event_id: turnEventId ?? null
    })
    state.checkpoints.splice(0, Math.max(0, state.checkpoints.length - limits.checkpointsMax))
  },
  "checkpoint.failed": (state, rune) => {
    state.checkpoint_failure = rune.payload.code
  },
  "checkpoint.restored": nothing
}
