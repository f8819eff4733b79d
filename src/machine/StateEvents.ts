/**
 * The view `state_events`: the union state_changed, tool_lifecycle, hook_lifecycle,
 * session_error, as a pure fold over runes. One machine per agent with the names of
 * the session design: Idle, Starting, Ready, CallingLlm, ProcessingResponse,
 * ExecutingTools, PostToolsHook, Error, Stopping, Stopped.
 */

import { type AnyRune, isKnown, type Rune } from "../rune/Rune.ts"
import type { StateEvent, StateEventBody, StateProjection } from "./projection/StateEvent.ts"
import { stateEventsOf } from "./projection/StateSteps.ts"

export const emptyStateProjection = (): StateProjection => ({ agents: [] })

const wrap = (rune: Rune, body: StateEventBody, index: number): StateEvent => ({
  eventId: `${rune.event_id}.${index}`,
  timestampMs: rune.ts_ms,
  sessionId: rune.conversation_id,
  ...(rune.agent_id === undefined ? {} : { agentId: rune.agent_id }),
  ...body
})

/** Folds one rune in and returns the events it means, in the order in which they must be seen. */
export const projectStateEvents = (projection: StateProjection, rune: AnyRune): ReadonlyArray<StateEvent> =>
  isKnown(rune) ? stateEventsOf(projection, rune).map((body, index) => wrap(rune, body, index)) : []

export const stateEvents = (runes: Iterable<AnyRune>): ReadonlyArray<StateEvent> => {
  const projection = emptyStateProjection()
  const events: Array<StateEvent> = []
  for (const rune of runes) events.push(...projectStateEvents(projection, rune))
  return events
}
