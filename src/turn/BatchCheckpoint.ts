// A checkpoint before the first call of a batch that may change files. Work never fails for the lack of one: that there is
// none is put on record, once for each reason, and the call runs.
import * as Effect from "effect/Effect"
import { tryCommand } from "../contract/TryCommand.ts"
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import { agentOf, batchOf, callOf, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId, CallId } from "../rune/Ids.ts"
import type { CheckpointPort } from "../tool/checkpoint/Checkpoints.ts"
import type { Commands } from "./Commands.ts"

export type BatchCheckpoints = Pick<CheckpointPort, "take" | "prepare">

export interface BatchCheckpointOptions {
  readonly commands: Commands
  readonly checkpoints?: BatchCheckpoints
}

/** The workspace of the conversation; agents that work in copies of it are merged, or thrown away with them. */
const sharedWorkspace = (state: ConversationState, agentId: AgentId): string | undefined => {
  const workspace = workspaceOf(state, agentId)
  return workspace === state.session.config.workspace ? workspace : undefined
}

/** Whether this is the first call of its batch that may change files. */
const isFirst = (state: ConversationState, agentId: AgentId, callId: CallId): boolean => {
  const call = callOf(state, callId)
  const turn = agentOf(state, agentId)?.turn ?? null
  if (call?.mutating !== true || turn === null) return false
  const batch = batchOf(state, turn)
  const isTaken = batch.some((one) => state.checkpoints.some((made) => made.call_id === one.call_id))
  return !isTaken && !batch.some((one) => one.mutating && one.attempt > 0)
}

export const beforeCall = (
  { checkpoints, commands }: BatchCheckpointOptions,
  { agent_id: agentId, call_id: callId }: { readonly agent_id: AgentId; readonly call_id: CallId }
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const state = commands.state()
    const workspace = sharedWorkspace(state, agentId)
    if (checkpoints === undefined || workspace === undefined || !isFirst(state, agentId, callId)) return Effect.void
    const submit = (command: Command) => Effect.promise(() => tryCommand(commands, command))
    return checkpoints.take({ workspace, conversation_id: commands.conversationId }).pipe(
      Effect.matchEffect({
        onSuccess: (taken) => submit({ _tag: "RecordCheckpoint", taken, call_id: callId }),
        onFailure: ({ message, problem: code }) =>
          state.checkpoint_failure === code
            ? Effect.void
            : submit({ _tag: "RecordCheckpointFailure", agent_id: agentId, payload: { workspace, code, message } })
      }),
      Effect.asVoid
    )
  })

export const afterBatch = ({ checkpoints, commands }: BatchCheckpointOptions, agentId: AgentId): Effect.Effect<void> =>
  Effect.suspend(() => {
    const workspace = sharedWorkspace(commands.state(), agentId)
    if (checkpoints === undefined || workspace === undefined) return Effect.void
    return checkpoints.prepare({ workspace, conversation_id: commands.conversationId })
  })
