/**
 * One step of a conversation in memory: decide, give the drafts their place, fold
 * them in. The caller makes the runes durable before it acknowledges, shows or
 * reacts to them; the state may run ahead of the disk, never the world.
 */
import type { RuneId } from "../rune/Ids.ts"
import { type Rune, type RuneDraft, stamp } from "../rune/Rune.ts"
import type { Command } from "./Command.ts"
import { decide, type Idempotency, type Verdict } from "./decide/Decide.ts"
import { evolve } from "./evolve/Evolve.ts"
import type { ConversationState } from "./State.ts"

export interface Surroundings {
  readonly at_ms: number
  readonly runeId: () => RuneId
  readonly idempotency?: Idempotency
}

/** Stamps drafts with the event ids that follow the state's head. */
export const stampAll = (
  state: ConversationState,
  drafts: ReadonlyArray<RuneDraft>,
  around: Pick<Surroundings, "at_ms" | "runeId">
): ReadonlyArray<Rune> =>
  drafts.map((draft, index) =>
    stamp(draft, {
      event_id: state.head + 1 + index,
      rune_id: around.runeId(),
      conversation_id: state.conversation_id,
      // Time in a log never runs backwards, whatever the clock does.
      ts_ms: Math.max(around.at_ms, state.last_ms)
    })
  )

export interface Advance {
  readonly verdict: Verdict
  /** The runes folded in, in order; none unless the command was accepted. */
  readonly runes: ReadonlyArray<Rune>
}

/** Takes one command. The state is changed only if the command is accepted. */
export const advance = (state: ConversationState, command: Command, around: Surroundings): Advance => {
  const verdict = decide(state, command, { at_ms: around.at_ms }, around.idempotency)
  if (verdict._tag !== "Accepted") return { verdict, runes: [] }
  const runes = stampAll(state, verdict.drafts, around)
  for (const rune of runes) evolve(state, rune)
  return { verdict, runes }
}
