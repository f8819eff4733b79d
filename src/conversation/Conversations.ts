// All conversations of a process: who is in memory, who can leave it, and what goes on after a restart. A conversation
// is loaded when somebody speaks to it or when it has work, at most once at a time, and leaves when it has had
// nothing to do for a while. After a crash everything unfinished is loaded, resolved and goes on by itself.

import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type { Command } from "../machine/Command.ts"
import type { Idempotency } from "../machine/Decide.ts"
import type { Effect as Pending } from "../machine/Effects.ts"
import { pendingEffects } from "../machine/Effects.ts"
import { fold } from "../machine/Evolve.ts"
import { resolveAfterCrash } from "../machine/Recovery.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import type { IdSource } from "../rune/IdSource.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { isConversationId } from "../rune/Ids.ts"
import type { AnyRune } from "../rune/Rune.ts"
import type { RestartIntensity } from "../supervise/ChildSpec.ts"
import { Actor, type Submitted } from "./Actor.ts"
import { ConversationUnknown, type LogRefused } from "./Errors.ts"
import { limits } from "./Limits.ts"
import type { RuneSink, WallClock } from "./Ports.ts"
import { Reactor } from "./Reactor.ts"

/** Where conversations come from and go to. */
export interface ConversationLog extends RuneSink {
  /** The newest usable snapshot, if there is one; the value is given away. */
  readonly snapshot: (conversationId: ConversationId) => Promise<ConversationState | undefined>
  readonly saveSnapshot: (state: ConversationState) => Promise<void>
  /** Runes after the given event, page by page. */
  readonly pages: (conversationId: ConversationId, after: number) => AsyncIterable<ReadonlyArray<AnyRune>>
}

export interface Workers {
  readonly perform: (pending: Pending) => Effect.Effect<void>
}

export interface ConversationsOptions {
  readonly log: ConversationLog
  readonly ids: IdSource
  readonly clock: WallClock
  readonly intensity: RestartIntensity
  /** Conversations kept in memory without need; older idle ones leave first. */
  readonly residentMax?: number
  /** The work of one conversation; made when it is loaded. */
  readonly workers: (resident: Resident) => Workers
  readonly onCrash?: (conversationId: ConversationId, work: string, cause: Cause.Cause<unknown>) => void
  readonly onLogRefused?: (error: LogRefused) => void
}

/** A conversation in memory. */
export interface Resident {
  readonly actor: Actor
  readonly changed: (signal: AbortSignal) => Promise<void>
}

interface Loaded extends Resident {
  readonly reactor: Reactor
  snapshotAt: number
}

export class Conversations {
  private readonly options: ConversationsOptions
  private readonly loaded = new Map<ConversationId, Loaded>()
  private readonly loading = new Map<ConversationId, Promise<Loaded>>()
  private closing = false

  constructor(options: ConversationsOptions) {
    this.options = options
  }

  get resident(): number {
    return this.loaded.size
  }

  /** Creates the conversation that the command names. */
  create(
    command: Extract<Command, { readonly _tag: "CreateConversation" }>,
    idempotency?: Idempotency
  ): Promise<Submitted> {
    const id = command.conversation_id
    const loaded = this.loaded.get(id) ?? this.adopt(emptyConversation(id))
    return loaded.actor.submit(command, idempotency)
  }

  /** Speaks to a conversation, loading it if need be. */
  async submit(conversationId: string, command: Command, idempotency?: Idempotency): Promise<Submitted> {
    return (await this.load(conversationId)).actor.submit(command, idempotency)
  }

  /** The state of a conversation; read it, and do not keep it across an await. */
  async state(conversationId: string): Promise<ConversationState> {
    return (await this.load(conversationId)).actor.state
  }

  /** The conversation in memory. Rejects when there is no such conversation. */
  load(conversationId: string): Promise<Loaded> {
    if (!isConversationId(conversationId))
      return Promise.reject(new ConversationUnknown({ conversation_id: conversationId }))
    const known = this.loaded.get(conversationId)
    if (known !== undefined) {
      this.loaded.delete(conversationId)
      this.loaded.set(conversationId, known)
      return Promise.resolve(known)
    }
    const loading = this.loading.get(conversationId) ?? this.loadNow(conversationId)
    this.loading.set(conversationId, loading)
    return loading
  }

  private async loadNow(conversationId: ConversationId): Promise<Loaded> {
    try {
      const state = await this.read(conversationId)
      const snapshotAt = state.head
      const loaded = this.adopt(state)
      loaded.snapshotAt = snapshotAt
      const { drafts } = resolveAfterCrash(state, { at_ms: this.options.clock.nowMs() })
      if (drafts.length > 0) await loaded.actor.record(drafts)
      loaded.reactor.react()
      return loaded
    } finally {
      this.loading.delete(conversationId)
    }
  }

  /** The fold of the log, from the newest snapshot on. */
  private async read(conversationId: ConversationId): Promise<ConversationState> {
    const { log } = this.options
    let state = (await log.snapshot(conversationId)) ?? emptyConversation(conversationId)
    for await (const runes of log.pages(conversationId, state.head)) state = fold(runes, state)
    if (state.head === 0) throw new ConversationUnknown({ conversation_id: conversationId })
    return state
  }

  private adopt(state: ConversationState): Loaded {
    const { options } = this
    const id = state.conversation_id
    const actor = new Actor({
      conversationId: id,
      state,
      sink: options.log,
      ids: options.ids,
      clock: options.clock,
      mailboxMax: limits.mailboxMax,
      onChange: () => reactor.react(),
      onFailure: (failed, error) => this.abandon(failed, error)
    })
    const resident: Resident = { actor, changed: (signal) => reactor.changed(signal) }
    const workers = options.workers(resident)
    const reactor: Reactor = new Reactor({
      actor,
      perform: workers.perform,
      intensity: options.intensity,
      onCrash: (work, cause) => options.onCrash?.(id, work, cause)
    })
    const loaded: Loaded = { ...resident, reactor, snapshotAt: 0 }
    this.loaded.set(id, loaded)
    void this.evict()
    return loaded
  }

  /** Memory ran ahead of a log that took no more: forget it, and read the log again at the next use. */
  private abandon(actor: Actor, error: LogRefused): void {
    const loaded = this.loaded.get(actor.conversationId)
    if (loaded?.actor === actor) this.loaded.delete(actor.conversationId)
    void loaded?.reactor.stop()
    this.options.onLogRefused?.(error)
  }

  /** Lets conversations leave memory that have nothing to do, the longest unused first. */
  private async evict(): Promise<void> {
    const residentMax = this.options.residentMax ?? limits.residentMax
    if (this.loaded.size <= residentMax) return
    for (const [id, loaded] of this.loaded) {
      if (this.loaded.size <= residentMax) return
      await this.leave(id, loaded)
    }
  }

  private async leave(id: ConversationId, loaded: Loaded): Promise<boolean> {
    const { actor, reactor } = loaded
    const isBusy = !actor.isQuiet || !reactor.isIdle || pendingEffects(actor.state).length > 0
    if (isBusy || this.loaded.get(id) !== loaded) return false
    this.loaded.delete(id)
    if (actor.state.head - loaded.snapshotAt >= limits.snapshotEveryRunes)
      await this.options.log.saveSnapshot(actor.state)
    return true
  }

  /** Makes an idle conversation leave memory now; false when it has work. */
  async unload(conversationId: ConversationId): Promise<boolean> {
    const loaded = this.loaded.get(conversationId)
    return loaded === undefined ? true : this.leave(conversationId, loaded)
  }

  /** Loads the given conversations, a few at a time, so that what they have to do goes on. */
  async recover(
    conversationIds: Iterable<ConversationId>
  ): Promise<{ readonly loaded: number; readonly pending: number; readonly failed: ReadonlyArray<unknown> }> {
    const queue = [...conversationIds]
    const failed: Array<unknown> = []
    let loaded = 0
    let pending = 0
    const lane = async (): Promise<void> => {
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        try {
          const { actor } = await this.load(id)
          loaded += 1
          pending += pendingEffects(actor.state).length
        } catch (error) {
          failed.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: limits.recoveryLanes }, lane))
    return { loaded, pending, failed }
  }

  /** Stops all work where it is; unfinished turns go on at the next start. */
  async close(): Promise<void> {
    if (this.closing) return
    this.closing = true
    const all = [...this.loaded.values()]
    await Promise.all(all.map(({ reactor }) => reactor.stop()))
    await Promise.all(all.map(({ actor }) => actor.settled().catch(() => undefined)))
  }
}
