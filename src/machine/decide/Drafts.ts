/** Small builders of rune drafts, so that tables read as tables. */
import type { AgentId, TurnId } from "../../rune/Ids.ts"
import type { Kind, PayloadOf } from "../../rune/Kinds.ts"
import type { DraftOf, RuneDraft } from "../../rune/Rune.ts"

/** Which agent, and which of its turns, a rune belongs to. */
export interface Place {
  readonly agent_id?: AgentId | undefined
  readonly turn_id?: TurnId | undefined
}

export const draft = <K extends Kind>(kind: K, payload: PayloadOf<K>, place: Place = {}): RuneDraft => {
  const built: DraftOf<K> = {
    kind,
    payload,
    ...(place.agent_id === undefined ? undefined : { agent_id: place.agent_id }),
    ...(place.turn_id === undefined ? undefined : { turn_id: place.turn_id })
  }
  return built as RuneDraft
}

/** A command that carries the whole payload of the rune it wants written. */
export interface Writes<K extends Kind> {
  readonly payload: PayloadOf<K>
  readonly place?: Place
}

/** The cell body for such a command. */
export const write =
  <K extends Kind>(kind: K) =>
  (command: Writes<K>): ReadonlyArray<RuneDraft> => [draft(kind, command.payload, command.place)]
