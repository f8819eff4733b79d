// A conversation in memory: its actor, the reactor that makes the world follow it, and, while there is work, the
// workers that do it. One object ties them together, so that a conversation that only waits costs little.
import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import { type PendingWork as Pending, pendingWork } from "../machine/work/PendingWork.ts"
import { Actor, type ActorListener, type ActorOptions } from "./Actor.ts"
import type { LogRefused } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"
import { Reactor, type ReactorHost, type ReactorOptions } from "./Reactor.ts"

/** The work of one conversation. */
export interface Workers {
  readonly perform: (pending: Pending) => Effect.Effect<void>
  /** The command is about to be decided; what has been heard before it becomes runes first. */
  readonly beforeDecision?: (command: Command) => void
}

/** What workers may ask of the conversation they work for. */
export interface WorkContext {
  readonly actor: Actor
  /** Resolves at the next change of state, or when the signal aborts; rejects when there will be none. */
  readonly changed: (signal: AbortSignal) => Promise<void>
}

/** What all conversations of a process share. */
export interface RuntimeServices {
  readonly actor: ActorOptions
  readonly reactor: ReactorOptions
  readonly workers: (workContext: WorkContext) => Workers
  readonly onCrash: (resident: LoadedConversation, work: string, cause: Cause.Cause<unknown>) => void
  readonly onQuiet: (resident: LoadedConversation) => void
  readonly onFailure: (resident: LoadedConversation, error: LogRefused) => void
}

/** A model speaks: the newest rune may be a delta, which is dropped later, and a snapshot of it could not be used then. */
const isAnswering = ({ agents }: ConversationState): boolean => agents.some(({ turn }) => turn?.request != null)

export class LoadedConversation implements ActorListener, ReactorHost, WorkContext {
  private readonly services: RuntimeServices
  private workers: Workers | undefined
  readonly actor: Actor
  readonly reactor: Reactor
  /** When it was last spoken to, on a clock that only runs forward. */
  usedMs = 0
  /** The event of the newest snapshot, and how large that was, where this process made it. */
  snapshotAt = 0
  snapshotChars = 0
  /** Somebody looks at it and nobody has spoken to it: whatever it has to do is left alone. */
  isAsleep = false
  /** What those who speak to it wait for before it is awake. */
  waking: Promise<void> | undefined

  /** One that is read-only can be looked at; it takes no command and does no work. */
  constructor(services: RuntimeServices, state: ConversationState, readOnly?: LogRefused) {
    this.services = services
    this.actor = new Actor(services.actor, state, this, readOnly)
    this.reactor = new Reactor(services.reactor, this)
  }

  get state(): ConversationState {
    return this.actor.state
  }

  /** Something runs, is about to, or is on its way to the disk. */
  get isBusy(): boolean {
    return !this.actor.isQuiet || !this.reactor.isIdle || (this.hasWork && !this.isAsleep)
  }

  /** There is something to do that may be done now. */
  get hasWork(): boolean {
    return this.actor.ended === undefined && pendingWork(this.state).some((pending) => !("held" in pending))
  }

  /**
   * The log has grown enough since the last snapshot for another one to pay: by a share of what it was, and at the
   * latest by what a load may read behind it. A large state costs more to write, and may wait for longer.
   */
  get isSnapshotDue(): boolean {
    const grown = this.state.head - this.snapshotAt
    if (grown < limits.snapshotEveryRunes) return false
    const tail = limits.snapshotTailRunes + this.snapshotChars / limits.snapshotCharsPerRune
    const due = Math.min(this.snapshotAt * limits.snapshotGrowth, tail)
    return grown >= (isAnswering(this.state) ? due * limits.snapshotMidAnswer : due)
  }

  changed(signal: AbortSignal): Promise<void> {
    // Where no command is taken nothing changes any more.
    return this.actor.ended === undefined ? this.reactor.changed(signal) : Promise.reject(this.actor.ended)
  }

  perform(pending: Pending): Effect.Effect<void> {
    this.workers ??= this.services.workers(this)
    return this.workers.perform(pending)
  }

  insist(command: Command): Promise<unknown> {
    return this.actor.insist(command)
  }

  beforeDecision(command: Command): void {
    this.workers?.beforeDecision?.(command)
  }

  onChange(): void {
    this.reactor.react()
  }

  onQuiet(): void {
    this.services.onQuiet(this)
  }

  onFailure(error: LogRefused): void {
    this.services.onFailure(this, error)
  }

  onCrash(work: string, cause: Cause.Cause<unknown>): void {
    this.services.onCrash(this, work, cause)
  }

  onIdle(): void {
    this.workers = undefined
  }

  /** Takes no more commands; whoever waits for a change is told. */
  retire(): void {
    this.actor.retire()
    if (this.actor.ended !== undefined) this.reactor.end(this.actor.ended)
  }

  /** Stops all work where it is and takes no more commands. */
  async stop(): Promise<void> {
    await this.reactor.stop()
    this.retire()
  }
}
