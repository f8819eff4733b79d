// Reads a conversation from where it is stored: the newest usable snapshot, and the runes after it folded into it.
import { fold } from "../machine/evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { type AnyRune, isKnown } from "../rune/Rune.ts"
import { ConversationUnknown, ConversationUnreadable, RuneNewer } from "./ConversationErrors.ts"
import type { RuneSink } from "./Ports.ts"
import type { Thinner } from "./Thinning.ts"

/** Where conversations come from and go to. */
export interface ConversationLog extends RuneSink {
  /** The newest usable snapshot, if there is one; the value is given away. */
  readonly snapshot: (conversationId: ConversationId) => Promise<ConversationState | undefined>
  /** Reads the state before it returns; later changes are not its business. Tells how many characters it was. */
  readonly saveSnapshot: (state: ConversationState) => Promise<number>
  /** Why nothing more can be appended before a restart or a repair; nothing when it can. */
  readonly refusal?: (conversationId: ConversationId) => Promise<unknown>
  /** The conversation has left memory; what others keep of it may go too. */
  readonly rest?: (conversationId: ConversationId) => void
  /** How the log drops superseded deltas of a conversation at rest. */
  readonly thinner?: Thinner
  /** Runes after the given event, page by page. */
  readonly pages: (conversationId: ConversationId, after: number) => AsyncIterable<ReadonlyArray<AnyRune>>
}

interface ReadConversation {
  readonly state: ConversationState
  readonly snapshotAt: number
  /** Something that only a newer build understands: the state is not the whole truth. */
  readonly newer: RuneNewer | undefined
}

/** The first rune that this build cannot fold and that may matter. Those of the system are notes, and change nothing. */
const newerRune = (conversation_id: ConversationId, runes: ReadonlyArray<AnyRune>): RuneNewer | undefined => {
  const found = runes.find((rune) => !isKnown(rune) && !String(rune.kind).startsWith("system."))
  if (found === undefined) return undefined
  const { event_id, kind, schema_version } = found
  return new RuneNewer({ conversation_id, event_id, kind, schema_version })
}

/** The fold of the log, from the newest snapshot on. */
export const readConversation = async (log: ConversationLog, id: ConversationId): Promise<ReadConversation> => {
  const snapshot = await log.snapshot(id)
  // What a fold has skipped is looked at again: a newer build may understand it, and this one must say what it was.
  let state = snapshot === undefined || snapshot.unknown_runes > 0 ? emptyConversation(id) : snapshot
  const snapshotAt = state.head
  let newer: RuneNewer | undefined
  try {
    for await (const runes of log.pages(id, state.head)) {
      state = fold(runes, state)
      if (state.unknown_runes > 0) newer ??= newerRune(id, runes)
    }
  } catch (cause) {
    throw new ConversationUnreadable({ conversation_id: id, after: state.head, cause })
  }
  if (state.head === 0) throw new ConversationUnknown({ conversation_id: id })
  return { state, snapshotAt, newer }
}
