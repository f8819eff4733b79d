// Makes the world follow the state: what is pending and not running is started, what runs and is no longer pending is
// stopped. Every piece of work is a supervised child; one that crashes is tried again within its intensity,
// and one that keeps crashing ends its agent's turn and suspends the conversation with a reason.
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type Effect as Pending, pendingEffects } from "../machine/Effects.ts"
import { agentOf } from "../machine/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import { type ChildSpec, childSpec, type RestartIntensity } from "../supervise/ChildSpec.ts"
import { Supervisor } from "../supervise/Supervisor.ts"
import { workId } from "../turn/Engine.ts"
import type { Actor } from "./Actor.ts"

/** The work ended, nothing changed, and it is still to be done: trying again at once would only spin. */
class WorkFutile extends Data.TaggedError("WorkFutile")<{ readonly work: string }> {}

export interface ReactorOptions {
  readonly actor: Actor
  readonly perform: (pending: Pending) => Effect.Effect<void>
  readonly intensity: RestartIntensity
  /** A child crashed; for logs and metrics. */
  readonly onCrash?: (work: string, cause: Cause.Cause<unknown>) => void
}

export class Reactor {
  private readonly options: ReactorOptions
  private readonly supervisor: Supervisor
  private readonly agents = new Map<string, AgentId>()
  private readonly givenUp = new Set<string>()
  private waiters: Array<() => void> = []
  private scheduled = false
  private stopped = false

  constructor(options: ReactorOptions) {
    this.options = options
    this.supervisor = new Supervisor({
      onRestart: (spec, cause) => options.onCrash?.(spec.id, cause),
      onGiveUp: (spec, cause) => this.escalate(spec, cause),
      onEnd: () => this.react()
    })
  }

  /** Nothing runs and nothing is about to. */
  get isIdle(): boolean {
    return this.supervisor.size === 0 && !this.scheduled
  }

  /** Compares state and work soon; cheap to call after every rune. */
  react(): void {
    if (this.scheduled || this.stopped) return
    this.scheduled = true
    queueMicrotask(this.reconcile)
  }

  private readonly reconcile = (): void => {
    this.scheduled = false
    if (this.stopped) return
    for (const wake of this.waiters.splice(0)) wake()
    const wanted = new Map<string, Pending>()
    for (const pending of pendingEffects(this.options.actor.state)) wanted.set(workId(pending), pending)
    for (const id of this.supervisor.ids) if (!wanted.has(id)) void this.supervisor.stop(id)
    for (const id of this.givenUp) if (!wanted.has(id)) this.givenUp.delete(id)
    for (const [id, pending] of wanted) if (!this.supervisor.has(id) && !this.givenUp.has(id)) this.start(id, pending)
  }

  private start(id: string, pending: Pending): void {
    if ("agent_id" in pending && pending.agent_id !== null) this.agents.set(id, pending.agent_id)
    const { actor, perform, intensity } = this.options
    const body = Effect.suspend(() => {
      const before = actor.state.head
      return Effect.flatMap(perform(pending), () => {
        const again = actor.state.head === before && this.isWanted(id)
        return again ? Effect.fail(new WorkFutile({ work: id })) : Effect.void
      })
    })
    this.supervisor.start(childSpec(id, { intensity }), body)
  }

  private isWanted(id: string): boolean {
    return !this.stopped && pendingEffects(this.options.actor.state).some((pending) => workId(pending) === id)
  }

  /** Resolves at the next change of state, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.waiters.push(resolve)
      signal.addEventListener("abort", () => resolve(), { once: true })
    })
  }

  /** The child crashed too often: its turn ends, and a person decides how to go on. */
  private escalate(spec: ChildSpec, cause: Cause.Cause<unknown>): void {
    const { actor, intensity } = this.options
    this.givenUp.add(spec.id)
    this.options.onCrash?.(spec.id, cause)
    const agentId = this.agents.get(spec.id)
    const what = `${spec.id} crashed more than ${intensity.restartsMax} times within ${intensity.withinMs} ms`
    const message = `${what}: ${firstLine(Cause.squash(cause))}`
    const turnEnds =
      agentId !== undefined && agentOf(actor.state, agentId)?.turn != null
        ? actor.submit({
            _tag: "FailTurn",
            agent_id: agentId,
            error: { error_type: "agent_crashed", message, retryable: true, source: "orchestrator" }
          })
        : Promise.resolve()
    // Neither is refused in a way that matters: a conversation that is over needs no suspension.
    void turnEnds.catch(() => undefined)
    void actor.submit({ _tag: "Suspend", reason: message }).catch(() => undefined)
  }

  /** Interrupts everything and starts nothing more. */
  async stop(): Promise<void> {
    this.stopped = true
    for (const wake of this.waiters.splice(0)) wake()
    await this.supervisor.stopAll()
  }
}

const firstLine = (error: unknown): string =>
  String(error instanceof Error ? error.message : error)
    .split("\n", 1)[0]!
    .slice(0, 300)
