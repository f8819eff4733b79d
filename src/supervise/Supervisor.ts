// Runs keyed children as fibers: each crash is isolated, counted and, within the intensity of its spec, answered
// by a restart; beyond it the supervisor gives the child up and says so, once. A child that is stopped is
// interrupted and never restarted. Crash counts outlive the child, so that a caller who starts the same
// child again does not reset them.
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ChildSpec } from "./ChildSpec.ts"
import { noteCrash } from "./Intensity.ts"

export interface SupervisorOptions {
  /** A child crashed and will be started again. */
  readonly onRestart?: (spec: ChildSpec, cause: Cause.Cause<unknown>, restarts: number) => void
  /** A child crashed too often. */
  readonly onGiveUp: (spec: ChildSpec, cause: Cause.Cause<unknown>) => void
  /** A child ended for good: it finished, was stopped or was given up. */
  readonly onEnd?: (spec: ChildSpec) => void
}

interface Child {
  readonly spec: ChildSpec
  readonly fiber: Fiber.Fiber<void>
}

export class Supervisor {
  private readonly options: SupervisorOptions
  private readonly children = new Map<string, Child>()
  private readonly crashes = new Map<string, ReadonlyArray<number>>()

  constructor(options: SupervisorOptions) {
    this.options = options
  }

  has(id: string): boolean {
    return this.children.has(id)
  }

  get ids(): ReadonlyArray<string> {
    return [...this.children.keys()]
  }

  get size(): number {
    return this.children.size
  }

  /** Starts a child under its id; does nothing when one runs under it already. */
  start(spec: ChildSpec, body: Effect.Effect<void, unknown>): void {
    if (this.children.has(spec.id)) return
    // The fiber starts in the next turn, after the child is on record.
    const fiber = Effect.runFork(Effect.andThen(Effect.yieldNow, this.supervised(spec, body)))
    this.children.set(spec.id, { spec, fiber })
  }

  private supervised(spec: ChildSpec, body: Effect.Effect<void, unknown>): Effect.Effect<void> {
    const attempt: Effect.Effect<void> = Effect.flatMap(Effect.exit(body), (exit) =>
      this.ended(spec, exit).pipe(Effect.flatMap((again) => (again ? Effect.suspend(() => attempt) : Effect.void)))
    )
    return Effect.ensuring(
      attempt,
      Effect.sync(() => {
        this.children.delete(spec.id)
        this.options.onEnd?.(spec)
      })
    )
  }

  /** Decides whether a child that ended runs again. */
  private readonly ended = (spec: ChildSpec, exit: Exit.Exit<void, unknown>): Effect.Effect<boolean> =>
    Effect.map(Clock.currentTimeMillis, (nowMs) => {
      if (Exit.isSuccess(exit)) {
        this.crashes.delete(spec.id)
        return spec.restart === "permanent"
      }
      if (Cause.hasInterruptsOnly(exit.cause) || spec.restart === "temporary") return false
      const verdict = noteCrash(spec.intensity, this.crashes.get(spec.id) ?? [], nowMs)
      this.crashes.set(spec.id, verdict.crashes)
      if (verdict._tag === "GiveUp") {
        this.crashes.delete(spec.id)
        this.options.onGiveUp(spec, exit.cause)
        return false
      }
      this.options.onRestart?.(spec, exit.cause, verdict.crashes.length)
      return true
    })

  /** Interrupts a child and waits for its end, at most as long as its spec allows. */
  stop(id: string): Promise<void> {
    const child = this.children.get(id)
    if (child === undefined) return Promise.resolve()
    const wait = Effect.timeoutOption(Fiber.interrupt(child.fiber), child.spec.shutdownMs)
    return Effect.runPromise(Effect.asVoid(wait))
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.stop(id)))
  }
}
