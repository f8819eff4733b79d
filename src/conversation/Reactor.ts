// Makes the world follow the state: what is pending and not running is started, what runs and is no longer pending is
// stopped. The fibers of a conversation are a tree: below it its agents, below an agent its turn, below a turn its model
// call, tools and hooks. Work that crashes is tried again within its intensity; work that keeps crashing ends its
// agent's turn and suspends the conversation with a reason.

import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import { agentOf } from "../machine/view/Select.ts"
import { type PendingWork, pendingWork } from "../machine/work/PendingWork.ts"
import { textBefore } from "../rune/Elements.ts"
import type { FiberNode, RunFork } from "../supervise/Branch.ts"
import { type ChildSpec, childSpec, type RestartIntensity } from "../supervise/ChildSpec.ts"
import { Supervisor } from "../supervise/Supervisor.ts"
import { describeWork, workId, workPath } from "../turn/Work.ts"
import { ActorRetired } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"

/** The work ended and is still to be done: it got nowhere, and trying again at once may get nowhere again. */
export class WorkFutile extends Data.TaggedError("WorkFutile")<{ readonly work: string }> {
  override get message() {
    return `${this.work} ended without having done anything`
  }
}

/** What all reactors of a process share. */
export interface ReactorOptions {
  readonly intensity: RestartIntensity
  readonly runFork?: RunFork
}

/** The conversation a reactor works for. */
export interface ReactorHost {
  readonly state: ConversationState
  readonly perform: (pending: PendingWork) => Effect.Effect<void>
  readonly insist: (command: Command) => Promise<unknown>
  /** A child crashed; for logs and metrics. */
  readonly onCrash: (work: string, cause: Cause.Cause<unknown>) => void
  /** The last child is gone. */
  readonly onIdle: () => void
}

/** What runs, and what is no longer tried. Exists only while there is any of it. */
interface Crew {
  readonly supervisor: Supervisor
  readonly started: Map<string, PendingWork>
  readonly givenUp: Set<string>
}

/** Somebody who waits for a change. */
interface Waiter {
  readonly wake: () => void
  readonly fail: (error: Error) => void
}

const isHeld = (pending: PendingWork): boolean => "held" in pending && pending.held === true

export class Reactor {
  private readonly options: ReactorOptions
  private readonly host: ReactorHost
  private crew: Crew | undefined
  private waiters: Array<Waiter> | undefined
  /** Why nobody can wait for a change any more. */
  private over: Error | undefined
  private scheduled = false
  private stopped = false
  private wasSuspended = false

  constructor(options: ReactorOptions, host: ReactorHost) {
    this.options = options
    this.host = host
  }

  /** Nothing runs and nothing is about to. */
  get isIdle(): boolean {
    return (this.crew?.supervisor.size ?? 0) === 0 && !this.scheduled
  }

  /** What runs now, by the names of its work. */
  get running(): ReadonlyArray<string> {
    return this.crew?.supervisor.ids ?? []
  }

  /** The fibers that run now: the conversation, its agents, their turns and the work of each. */
  get fibers(): FiberNode | undefined {
    const { crew } = this
    return crew?.supervisor.tree((id) => {
      const pending = crew.started.get(id)
      return pending === undefined ? id : describeWork(pending)
    })
  }

  /** Compares state and work soon; cheap to call after every rune. */
  react(): void {
    if (this.scheduled || this.stopped) return
    this.scheduled = true
    queueMicrotask(() => this.reconcile())
  }

  private reconcile(): void {
    this.scheduled = false
    if (this.stopped) return
    this.wake()
    const wanted = new Map(pendingWork(this.host.state).map((pending) => [workId(pending), pending]))
    this.stopUnwanted(wanted)
    for (const [id, pending] of wanted) {
      const isNew = !this.crew?.supervisor.has(id) && !this.crew?.givenUp.has(id)
      if (isNew && !isHeld(pending)) this.start(id, pending)
    }
    this.crew?.supervisor.trim()
    if (this.isIdle) this.rest()
  }

  private stopUnwanted(wanted: ReadonlyMap<string, PendingWork>): void {
    const { crew } = this
    const isSuspended = this.host.state.session.status === "suspended"
    // A person who lets a conversation go on wants everything tried again.
    if (this.wasSuspended && !isSuspended) crew?.givenUp.clear()
    this.wasSuspended = isSuspended
    if (crew === undefined) return
    const unwanted = crew.supervisor.ids.filter((id) => !wanted.has(id))
    if (unwanted.length > 0) this.stopBranches(crew, [...wanted.values()])
    for (const id of unwanted) void crew.supervisor.stop(id)
    for (const id of crew.givenUp) if (!wanted.has(id)) crew.givenUp.delete(id)
  }

  /** A turn that is over and an agent that is gone end with all that still runs for them: they are interrupted whole. */
  private stopBranches({ supervisor }: Crew, wanted: ReadonlyArray<PendingWork>): void {
    const kept = new Set(wanted.flatMap((pending) => workPath(this.host.state, pending)))
    for (const { under } of supervisor.specs) {
      const at = under.findIndex((name) => !kept.has(name))
      if (at >= 0) void supervisor.stopUnder(under.slice(0, at + 1))
    }
  }

  private rest(): void {
    if (this.crew?.givenUp.size === 0 && !this.crew.supervisor.remembersCrashes) this.crew = undefined
    this.host.onIdle()
  }

  private start(id: string, pending: PendingWork): void {
    this.crew ??= this.makeCrew()
    this.crew.started.set(id, pending)
    const body = Effect.flatMap(
      Effect.suspend(() => this.host.perform(pending)),
      () => (this.isWanted(id) ? Effect.fail(new WorkFutile({ work: describeWork(pending) })) : Effect.void)
    )
    const under = workPath(this.host.state, pending)
    this.crew.supervisor.start(childSpec(id, { under, intensity: this.options.intensity }), body)
  }

  private makeCrew(): Crew {
    const started = new Map<string, PendingWork>()
    const supervisor = new Supervisor({
      name: `conversation ${this.host.state.conversation_id}`,
      onRestart: (spec, cause) => this.host.onCrash(spec.id, cause),
      onGiveUp: (spec, cause) => this.escalate(spec, cause),
      onEnd: (spec) => {
        started.delete(spec.id)
        this.react()
      },
      ...(this.options.runFork === undefined ? {} : { runFork: this.options.runFork })
    })
    return { supervisor, started, givenUp: new Set() }
  }

  private isWanted(id: string): boolean {
    if (this.stopped) return false
    return pendingWork(this.host.state).some((pending) => workId(pending) === id && !isHeld(pending))
  }

  /**
   * Resolves at the next change of state, or when the signal aborts. Rejects when there will be no change any more: a wait
   * that ended at once instead would be repeated at once, for ever.
   */
  changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    if (this.over !== undefined) return Promise.reject(this.over)
    return new Promise((resolve, reject) => {
      const settled =
        <A>(settle: (value: A) => void) =>
        (value: A): void => {
          signal.removeEventListener("abort", wake)
          settle(value)
        }
      const wake = settled<unknown>(() => resolve())
      this.waiters ??= []
      this.waiters.push({ wake: () => wake(undefined), fail: settled(reject) })
      signal.addEventListener("abort", wake)
    })
  }

  private wake(): void {
    for (const { wake } of this.takeWaiters()) wake()
  }

  private takeWaiters(): ReadonlyArray<Waiter> {
    const { waiters = [] } = this
    this.waiters = undefined
    return waiters
  }

  /** The child crashed too often: its turn ends, and a person decides how to go on. */
  private escalate(spec: ChildSpec, cause: Cause.Cause<unknown>): void {
    const pending = this.crew?.started.get(spec.id)
    this.crew?.givenUp.add(spec.id)
    this.host.onCrash(spec.id, cause)
    const { restartsMax, withinMs } = spec.intensity
    const what = pending === undefined ? spec.id : describeWork(pending)
    const times = `failed ${restartsMax + 1} times within ${withinMs / 1000} s`
    const message = `${what} ${times}: ${firstLine(Cause.squash(cause))}`.slice(0, limits.reasonCharsMax).toWellFormed()
    // Neither is refused in a way that matters: a turn that is over needs no end, a closed conversation no suspension.
    for (const command of endOf(this.host.state, pending, message)) {
      void this.host.insist(command).catch(() => undefined)
    }
  }

  /**
   * Interrupts everything and starts nothing more. Work that waits for a change ends by its interruption, so that it does
   * not take the end for a failure of its own; whoever waits from outside is told afterwards.
   */
  async stop(): Promise<void> {
    this.stopped = true
    await this.crew?.supervisor.stopAll()
    this.end(new ActorRetired({ conversation_id: this.host.state.conversation_id }))
  }

  /** There will be no change any more; whoever waits for one, now or later, is told why. */
  end(error: Error): void {
    this.over ??= error
    for (const { fail } of this.takeWaiters()) fail(this.over)
  }
}

const endOf = (state: ConversationState, pending: PendingWork | undefined, message: string): ReadonlyArray<Command> => {
  const agentId = pending !== undefined && "agent_id" in pending ? pending.agent_id : null
  const suspend: Command = { _tag: "Suspend", reason: message }
  if (agentId === null || agentOf(state, agentId)?.turn == null) return [suspend]
  const error = { error_type: "agent_crashed", message, retryable: true, source: "orchestrator" } as const
  return [{ _tag: "FailTurn", agent_id: agentId, error }, suspend]
}

const firstLine = (error: unknown): string => textBefore(String(error instanceof Error ? error.message : error), "\n")
