/** Deciding about checkpoints: what was recorded, and what went back to one. */
import { checkpointIdOf } from "../../rune/Ids.ts"
import type { CheckpointRequest } from "../Command.ts"
import { agentOf, callOf } from "../view/Select.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"

type Of<Tag extends CheckpointRequest["_tag"]> = Extract<CheckpointRequest, { readonly _tag: Tag }>

const over: ReadonlySet<string> = new Set(["closed", "archived"])

const requireOpen = (sheet: Drafting): void => {
  const { status } = sheet.state.session
  if (over.has(status)) sheet.refuse("invalid_state", `the conversation is ${status}`, { state: status })
}

const record = (sheet: Drafting, { call_id: callId, taken }: Of<"RecordCheckpoint">): undefined => {
  requireOpen(sheet)
  const call = callId === undefined ? undefined : callOf(sheet.state, callId)
  if (callId !== undefined && call === undefined) {
    sheet.refuse("not_found", `no call ${callId}`)
    return
  }
  const turn = call?.agent_id == null ? null : (agentOf(sheet.state, call.agent_id)?.turn ?? null)
  sheet.write(
    draft(
      "checkpoint.made",
      {
        checkpoint_id: checkpointIdOf(sheet.state.next_checkpoint),
        reason: call === undefined ? "restore" : "batch",
        ...taken,
        ...(call === undefined ? {} : { call_id: call.call_id }),
        ...(turn === null ? {} : { turn_event_id: turn.started_event_id })
      },
      { agent_id: call?.agent_id ?? undefined, turn_id: call?.turn_id ?? undefined }
    )
  )
}

const restored = (sheet: Drafting, { payload }: Of<"RecordRestore">): undefined => {
  requireOpen(sheet)
  const known = [payload.checkpoint_id, payload.saved_as].every(
    (id) => id === undefined || sheet.state.checkpoints.some((one) => one.checkpoint_id === id)
  )
  if (!known) sheet.refuse("not_found", `no checkpoint ${payload.checkpoint_id}`)
  sheet.write(draft("checkpoint.restored", payload))
}

export const checkpointDeciders: Deciders<CheckpointRequest> = {
  RecordCheckpoint: record,
  RecordCheckpointFailure: (sheet, { agent_id: agentId, payload }) => {
    requireOpen(sheet)
    sheet.write(draft("checkpoint.failed", payload, { agent_id: agentId }))
  },
  RecordRestore: restored
}
