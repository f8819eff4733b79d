// Going back: the files of a checkpoint, the conversation before its turn, or both. What would be overwritten is a
// checkpoint on record before anything is; files that are no longer what the person saw are left as they are.
import * as Effect from "effect/Effect"
import { CommandRefused } from "../contract/CommandErrors.ts"
import type { Idempotency, RefusalCode } from "../machine/decide/Decide.ts"
import type { CheckpointState, ConversationState } from "../machine/State.ts"
import type { CheckpointId, ConversationId, TurnId } from "../rune/Ids.ts"
import type { RestoreTarget } from "../rune/kinds/checkpoint.ts"
import { CheckpointRefused } from "../tool/checkpoint/CheckpointErrors.ts"
import type { CheckpointPort, Preview } from "../tool/checkpoint/Checkpoints.ts"
import type { ConversationStore } from "./ConversationStore.ts"
import type { Conversations } from "./Conversations.ts"

export type { CheckpointState } from "../machine/State.ts"

export interface UndoParts {
  readonly conversations: Pick<Conversations, "state" | "submit">
  readonly store: Pick<ConversationStore, "fork">
  /** There is none where nothing is recorded. */
  readonly checkpoints: CheckpointPort | undefined
}

/** Which checkpoint is meant: by its name, by its turn, or the last one that makes a difference. */
export interface Which {
  readonly checkpoint_id?: CheckpointId
  readonly turn_id?: TurnId
}

export interface RestoreRequest extends Which {
  readonly what: RestoreTarget
  /** The files that the person saw. */
  readonly tree?: string
  readonly principal: string
  /** Of the copy, where the conversation goes back. */
  readonly forkId: string
  readonly idempotency?: Idempotency
}

export interface Restored {
  readonly event_id: number
  readonly checkpoint_id: CheckpointId
  readonly files: number
  readonly saved_as?: CheckpointId
  readonly conversation_id?: ConversationId
}

const refuse = (code: RefusalCode, message: string): never => {
  throw new CommandRefused({ refusal: { code, message }, command: "Restore" })
}

/** The first checkpoint of each turn, newest first. */
const beforeTurns = ({ checkpoints }: ConversationState): ReadonlyArray<CheckpointState> =>
  checkpoints
    .filter((one, at) => one.turn_id !== null && checkpoints.findIndex((other) => other.turn_id === one.turn_id) === at)
    .toReversed()

const named = (state: ConversationState, which: Which): CheckpointState | undefined => {
  if (which.checkpoint_id !== undefined)
    return (
      state.checkpoints.find((one) => one.checkpoint_id === which.checkpoint_id) ??
      refuse("not_found", `no checkpoint ${which.checkpoint_id}`)
    )
  if (which.turn_id === undefined) return undefined
  return (
    beforeTurns(state).find((one) => one.turn_id === which.turn_id) ??
    refuse("not_found", `${which.turn_id} changed no files, or too long ago`)
  )
}

/** A turn that runs would change files meanwhile. */
const requireIdle = (state: ConversationState): void => {
  const busy = state.agents.find(({ turn }) => turn !== null)
  if (busy !== undefined) refuse("invalid_state", "a turn is running; interrupt it first")
}

const promised = <A>(work: Effect.Effect<A, CheckpointRefused>): Promise<A> =>
  Effect.runPromise(Effect.result(work)).then((result) => {
    if (result._tag === "Failure") throw result.failure
    return result.success
  })

export class Undo {
  private readonly parts: UndoParts

  constructor(parts: UndoParts) {
    this.parts = parts
  }

  async preview(conversationId: string, which: Which): Promise<Preview & { readonly checkpoint: CheckpointState }> {
    const state = await this.parts.conversations.state(conversationId)
    const checkpoint = named(state, which)
    if (checkpoint !== undefined) return { ...(await this.look(checkpoint)), checkpoint }
    const turns = beforeTurns(state)
    for (const one of turns) {
      const found = await this.look(one)
      if (found.files_total > 0 || one === turns.at(-1)) return { ...found, checkpoint: one }
    }
    return refuse("not_found", "there is nothing to undo: no files were changed by a turn")
  }

  async restore(conversationId: string, request: RestoreRequest): Promise<Restored> {
    const { conversations } = this.parts
    const state = await conversations.state(conversationId)
    const repeated = state.outcomes.find(({ key }) => key === request.idempotency?.key)
    const checkpoint = named(state, request) ?? (await this.preview(conversationId, request)).checkpoint
    if (repeated !== undefined)
      return { event_id: repeated.last_event_id, checkpoint_id: checkpoint.checkpoint_id, files: 0 }
    requireIdle(state)
    const files = request.what === "conversation" ? undefined : await this.files(conversationId, checkpoint, request)
    const forked = request.what === "files" ? undefined : await this.fork(conversationId, checkpoint, request)
    const copy = forked === undefined ? {} : { forked_to: forked }
    const { event_id } = await conversations.submit(
      conversationId,
      {
        _tag: "RecordRestore",
        payload: {
          ...{ checkpoint_id: checkpoint.checkpoint_id, what: request.what, principal: request.principal },
          ...{ files: files?.count ?? 0, ...copy },
          ...(files === undefined ? {} : { saved_as: files.saved })
        }
      },
      request.idempotency
    )
    return {
      ...{ event_id, checkpoint_id: checkpoint.checkpoint_id, files: files?.count ?? 0 },
      ...(files === undefined ? {} : { saved_as: files.saved }),
      ...(forked === undefined ? {} : { conversation_id: forked })
    }
  }

  private look({ tree, workspace }: CheckpointState): Promise<Preview> {
    return promised(this.port.preview(workspace, tree))
  }

  private async files(
    conversationId: string,
    { tree, workspace }: CheckpointState,
    { tree: seen }: RestoreRequest
  ): Promise<{ readonly count: number; readonly saved: CheckpointId }> {
    const { conversations } = this.parts
    const taken = await promised(this.port.take({ workspace, conversation_id: conversationId }))
    if (seen !== undefined && seen !== taken.tree)
      throw new CheckpointRefused({
        problem: "files_changed",
        message: "files changed since they were looked at; look again"
      })
    await conversations.submit(conversationId, { _tag: "RecordCheckpoint", taken })
    const saved = (await conversations.state(conversationId)).checkpoints.findLast(
      ({ commit, reason }) => commit === taken.commit && reason === "restore"
    )
    if (saved === undefined) return refuse("invalid_state", "what would be overwritten could not be recorded")
    const count = await promised(this.port.restore(workspace, { seen: taken.tree, back_to: tree }))
    return { count, saved: saved.checkpoint_id }
  }

  /** The conversation as it was before the turn of the checkpoint. */
  private async fork(
    from: string,
    checkpoint: CheckpointState,
    { forkId: conversationId, idempotency }: RestoreRequest
  ): Promise<ConversationId> {
    const atEventId = (checkpoint.turn_event_id ?? checkpoint.event_id) - 1
    const given = idempotency === undefined ? {} : { idempotency }
    const { conversation_id: made } = await this.parts.store.fork({ from, atEventId, conversationId, ...given })
    return made as ConversationId
  }

  private get port(): CheckpointPort {
    return this.parts.checkpoints ?? refuse("invalid_state", "this server makes no checkpoints")
  }
}
