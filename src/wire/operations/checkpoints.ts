// Operations with which a person goes back: to the files of a checkpoint, to the conversation before a turn, or to both.
import * as Schema from "effect/Schema"
import { AgentId, CallId, CheckpointId, ConversationId, TurnId } from "../../rune/Ids.ts"
import { CheckpointReason, RestoreTarget } from "../../rune/kinds/checkpoint.ts"
import { Count } from "../../rune/kinds/shared.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { changed, conversation, optional } from "./fields.ts"

const { Array: List, Literals, String: Text, Struct } = Schema

/** A checkpoint, or the first one of a turn; the last turn after which files differ, if neither is named. */
const which = { ...conversation, checkpoint_id: optional(CheckpointId), turn_id: optional(TurnId) }

export const CheckpointItem = Struct({
  checkpoint_id: CheckpointId,
  event_id: Count,
  made_ms: Count,
  reason: CheckpointReason,
  workspace: Text,
  tree: Text,
  left_out: Count,
  agent_id: optional(AgentId),
  turn_id: optional(TurnId),
  call_id: optional(CallId)
})

export const checkpointOperations = [
  defineOperation({
    name: "checkpoint.list",
    role: "viewer",
    mutates: false,
    input: conversation,
    answer: Struct({ items: List(CheckpointItem) }),
    about: "The newest 256 checkpoints, oldest first."
  }),
  defineOperation({
    name: "checkpoint.preview",
    role: "operator",
    mutates: false,
    input: which,
    answer: Struct({
      checkpoint: CheckpointItem,
      /** The files as they are now; given to `checkpoint.restore`, nothing else is overwritten. */
      tree: Text,
      files_total: Count,
      files: List(Struct({ path: Text, change: Literals(["create", "delete", "modify", "mode", "type"]) })),
      patch: Text
    }),
    about:
      "What `checkpoint.restore` would do to files: at most 500 of them, and the first 64 KiB of the difference. Changes nothing."
  }),
  defineOperation({
    name: "checkpoint.restore",
    role: "operator",
    mutates: true,
    input: {
      ...which,
      what: RestoreTarget,
      /** Of the preview that the person saw. */
      tree: optional(Text)
    },
    answer: Struct({
      ...changed,
      checkpoint_id: CheckpointId,
      files: Count,
      /** What was overwritten. */
      saved_as: optional(CheckpointId),
      /** The copy that ends before the turn. */
      conversation_id: optional(ConversationId)
    }),
    about:
      "Brings files back, forks the conversation before the turn of the checkpoint, or does both. What is overwritten becomes a checkpoint first. Refused while a turn runs, and where files are not those of `tree`."
  })
] as const
