// Snapshots of conversations in the store: named by the shape of the state, read only up to what the log holds.
import type { ConversationState } from "../machine/State.ts"
import type { RuneStore } from "../store/runes/RuneStore.ts"
import type { Snapshots } from "../store/Snapshots.ts"
import { packState, unpackState } from "./PackedTranscript.ts"
import type { SnapshotPort } from "./Runtime.ts"

/** Names the shape of the folded state; a snapshot of another shape is not used. */
export const snapshotShape = "conversation.16"

export const snapshotPort = (parts: { readonly snapshots: Snapshots; readonly store: RuneStore }): SnapshotPort => ({
  newest: async (conversationId) => {
    const head = await parts.store.headNow(conversationId)
    if (head === 0) return undefined
    const found = await parts.snapshots.load(conversationId, { head })
    const state = found?.value as ConversationState | undefined
    const isOurs = state?.format === 5 && state.conversation_id === conversationId && state.head === found?.eventId
    return isOurs ? unpackState(state) : undefined
  },
  save: async (state) => {
    const { conversation_id: conversationId, head } = state
    const { chars, value } = await packState(state)
    await parts.snapshots.save(conversationId, head, value)
    return chars
  }
})
