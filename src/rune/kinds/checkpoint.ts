/** Runes of checkpoints: the files of a workspace as they were, kept so that they can be brought back. */
import * as Schema from "effect/Schema"
import { CallId, CheckpointId, ConversationId, EventId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { Count, Name } from "./shared.ts"

/** Before a batch of calls that may change files, or before other files are brought back over them. */
export const CheckpointReason = Schema.Literals(["batch", "restore"])
export type CheckpointReason = typeof CheckpointReason.Type

export const RestoreTarget = Schema.Literals(["files", "conversation", "both"])
export type RestoreTarget = typeof RestoreTarget.Type

/** The name of a git object. */
const ObjectName = Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/u))

export const checkpointKinds = [
  defineKind("checkpoint.made", {
    meaning: "The files of a workspace were recorded before something may change them.",
    references: [["turn_event_id"]],
    payload: Schema.Struct({
      checkpoint_id: CheckpointId,
      reason: CheckpointReason,
      workspace: Schema.String,
      commit: ObjectName,
      tree: ObjectName,
      /** Files that are too large, or could not be read: they are not part of it and are never changed by a restore. */
      left_out: Count,
      duration_ms: Count,
      /** The first call of the batch that may change files. */
      call_id: Schema.optionalKey(CallId),
      /** The start of the turn it was made in. */
      turn_event_id: Schema.optionalKey(EventId)
    })
  }),
  defineKind("checkpoint.failed", {
    meaning: "The files of a workspace could not be recorded; what follows cannot be undone.",
    payload: Schema.Struct({ workspace: Schema.String, code: Name, message: Schema.String })
  }),
  defineKind("checkpoint.restored", {
    meaning: "Files, or the conversation, went back to a checkpoint.",
    payload: Schema.Struct({
      checkpoint_id: CheckpointId,
      what: RestoreTarget,
      /** What the files were before, where files were brought back. */
      saved_as: Schema.optionalKey(CheckpointId),
      files: Count,
      /** The copy that continues from there, where the conversation went back. */
      forked_to: Schema.optionalKey(ConversationId),
      principal: Schema.optionalKey(Schema.String)
    })
  })
] as const
