// Operations with which a person goes back to a checkpoint.
import type { CheckpointState } from "../../conversation/Undo.ts"
import type { AnswerOf } from "../../wire/Operations.ts"
import { type HandlersOf, tell, using } from "./CurrentOperation.ts"
import { idFor } from "./NewIds.ts"

type Item = AnswerOf<"checkpoint.list">["items"][number]

const itemOf = (checkpoint: CheckpointState): Item => {
  const { agent_id: agentId, call_id: callId, commit: _, turn_event_id: __, turn_id: turnId, ...item } = checkpoint
  return {
    ...item,
    ...(agentId === null ? {} : { agent_id: agentId }),
    ...(turnId === null ? {} : { turn_id: turnId }),
    ...(callId === null ? {} : { call_id: callId })
  }
}

export const checkpointHandlers: HandlersOf<"checkpoint"> = {
  "checkpoint.list": ({ conversation_id: id }) => tell(id, ({ checkpoints }) => ({ items: checkpoints.map(itemOf) })),
  "checkpoint.preview": ({ conversation_id: id, ...which }) =>
    using(async ({ undo }) => {
      const { checkpoint, ...preview } = await undo.preview(id, which)
      return { ...preview, checkpoint: itemOf(checkpoint) }
    }),
  "checkpoint.restore": ({ conversation_id: id, ...request }) =>
    using((context) => {
      const { idempotency, principal, undo } = context
      const given = idempotency === undefined ? {} : { idempotency }
      const forkId = `conv_${idFor(context, `undo of ${id}`)}`
      return undo.restore(id, { ...request, forkId, principal: principal.name, ...given })
    })
}
