// The derived views of a conversation, as folds that take one rune after the other and say which events it means.

import type { ConversationState } from "../machine/State.ts"
import { emptyAgentProjection, projectAgentEvents } from "../machine/view/AgentEvents.ts"
import { emptyStateProjection, projectStateEvents, stateProjectionOf } from "../machine/view/StateEvents.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { decodeFrame } from "../store/runes/Page.ts"
import type { Frame } from "./Reading.ts"

export type DerivedView = "state_events" | "agent_events"
export type ViewFold = (rune: AnyRune) => ReadonlyArray<object>

/** A fold from the beginning of a conversation on, or, of states, from a state on. */
export const makeView = (view: DerivedView, from?: ConversationState): ViewFold => {
  if (view === "state_events") {
    const projection = from === undefined ? emptyStateProjection() : stateProjectionOf(from)
    return (rune) => projectStateEvents(projection, rune)
  }
  const projection = emptyAgentProjection()
  return (rune) => projectAgentEvents(projection, rune)
}

/** The rune in a frame; throws when there is none. */
export const runeIn = (conversationId: string, frame: Frame): AnyRune => {
  const decoded = decodeFrame(conversationId, frame)
  if ("event_id" in decoded) return decoded
  throw decoded
}
