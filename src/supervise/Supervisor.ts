// Runs keyed children as the leaves of a tree of fibers. Each crash is isolated, counted and, within the intensity of its
// spec, answered by a restart; beyond it the supervisor gives the child up and says so, once. A child that is stopped,
// alone or with its branch, is interrupted and never restarted; one that does not end in time is left behind and counts
// as gone. Crash counts outlive the child, so that a caller who starts the same child again does not reset them.
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { type FiberNode, Holder, type RunFork } from "./Branch.ts"
import type { ChildSpec } from "./ChildSpec.ts"
import { noteCrash } from "./Intensity.ts"

/** A child ended although nobody had asked it to: its work is not done. */
export class ChildVanished extends Data.TaggedError("ChildVanished")<{ readonly child: string }> {
  override get message() {
    return `${this.child} ended without being asked to`
  }
}

export interface SupervisorOptions {
  /** Of the root of the tree. */
  readonly name: string
  /** A child crashed and will be started again. */
  readonly onRestart?: (spec: ChildSpec, cause: Cause.Cause<unknown>, restarts: number) => void
  /** A child crashed too often. */
  readonly onGiveUp: (spec: ChildSpec, cause: Cause.Cause<unknown>) => void
  /** A child is gone for good: it finished, was stopped, was left behind or was given up. */
  readonly onEnd?: (spec: ChildSpec) => void
  /** Starts a fiber; a test gives it a clock of its own. */
  readonly runFork?: RunFork
}

interface Child {
  readonly spec: ChildSpec
  fiber: Fiber.Fiber<void> | undefined
  holder: Holder | undefined
  /** Set once the child has been asked to stop. */
  stopped: Promise<void> | undefined
}

const nanosPerMs = 1_000_000n

/** Crash records beyond this many are looked through for those that no longer matter. */
const crashRecordsMax = 64

export class Supervisor {
  private readonly options: SupervisorOptions
  private readonly runFork: RunFork
  private readonly children = new Map<string, Child>()
  private readonly crashes = new Map<string, ReadonlyArray<number>>()
  /** Exists from the first child to the first moment without any. */
  private root: Holder | undefined

  constructor(options: SupervisorOptions) {
    this.options = options
    this.runFork = options.runFork ?? Effect.runFork
  }

  has(id: string): boolean {
    return this.children.has(id)
  }

  get ids(): ReadonlyArray<string> {
    return [...this.children.keys()]
  }

  get specs(): ReadonlyArray<ChildSpec> {
    return [...this.children.values()].map(({ spec }) => spec)
  }

  get size(): number {
    return this.children.size
  }

  /** A child that is not there now crashed before, and the count of that is kept. */
  get remembersCrashes(): boolean {
    return this.crashes.size > 0
  }

  /** Starts a child under its id; does nothing when one runs under it already. */
  start(spec: ChildSpec, body: Effect.Effect<void, unknown>): void {
    if (this.children.has(spec.id)) return
    const child: Child = { spec, fiber: undefined, holder: undefined, stopped: undefined }
    this.children.set(spec.id, child)
    const fiber = this.runFork(this.supervised(child, body))
    child.fiber = fiber
    // One that ended at once was never a part of the tree.
    if (fiber.pollUnsafe() === undefined) {
      child.holder = this.holderOf(spec)
      child.holder.adopt(spec.id, fiber)
    }
    fiber.addObserver(() => this.gone(child))
  }

  private holderOf({ under }: ChildSpec): Holder {
    this.root ??= new Holder(this.options.name, this.runFork)
    return under.reduce<Holder>((holder, name) => holder.branch(name), this.root)
  }

  /** The fibers that run now, from the root down. */
  tree(describe: (childId: string) => string): FiberNode | undefined {
    return this.root?.tree(describe)
  }

  /** Ends the branches that hold nothing: what comes next under their names starts them again. */
  trim(): void {
    this.root?.trim()
    if (this.root?.isEmpty === true) this.root = undefined
  }

  private supervised(child: Child, body: Effect.Effect<void, unknown>): Effect.Effect<void> {
    const attempt: Effect.Effect<void> = Effect.flatMap(Effect.exit(body), (exit) =>
      Effect.flatMap(this.ended(child, exit), (again) => (again ? Effect.suspend(() => attempt) : Effect.void))
    )
    return attempt
  }

  /** Decides whether a child that ended runs again. Time is monotonic: a clock that is set must not cost a child. */
  private readonly ended = (child: Child, exit: Exit.Exit<void, unknown>): Effect.Effect<boolean> =>
    Effect.map(Clock.monotonicTimeNanos, (nowNanos) => {
      const { spec } = child
      if (child.stopped !== undefined) return false
      if (Exit.isSuccess(exit) && spec.restart !== "permanent") {
        this.crashes.delete(spec.id)
        return false
      }
      if (spec.restart === "temporary") return false
      const vanished = Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
      const cause = vanished ? Cause.fail(new ChildVanished({ child: spec.id })) : exit.cause
      return this.crashed(spec, cause, Number(nowNanos / nanosPerMs))
    })

  private crashed(spec: ChildSpec, cause: Cause.Cause<unknown>, nowMs: number): boolean {
    const verdict = noteCrash(spec.intensity, this.crashes.get(spec.id) ?? [], nowMs)
    if (verdict._tag === "GiveUp") {
      this.crashes.delete(spec.id)
      this.options.onGiveUp(spec, cause)
      return false
    }
    this.forgetOldCrashes(spec.intensity.withinMs, nowMs)
    this.crashes.set(spec.id, verdict.crashes)
    this.options.onRestart?.(spec, cause, verdict.crashes.length)
    return true
  }

  private forgetOldCrashes(withinMs: number, nowMs: number): void {
    if (this.crashes.size < crashRecordsMax) return
    for (const [id, crashes] of this.crashes) {
      if (nowMs - (crashes.at(-1) ?? 0) >= withinMs) this.crashes.delete(id)
    }
  }

  private gone(child: Child): void {
    if (child.fiber !== undefined) child.holder?.release(child.spec.id, child.fiber)
    if (this.children.get(child.spec.id) !== child) return
    this.children.delete(child.spec.id)
    this.options.onEnd?.(child.spec)
  }

  /** Interrupts a child and waits for its end, at most as long as its spec allows. */
  stop(id: string): Promise<void> {
    const child = this.children.get(id)
    if (child === undefined) return Promise.resolve()
    child.stopped ??= this.interrupt(child)
    return child.stopped
  }

  private async interrupt(child: Child): Promise<void> {
    // A child that stops itself while it is being started has no fiber yet.
    await undefined
    if (child.fiber === undefined) return
    await this.over(Fiber.interrupt(child.fiber), child.spec.shutdownMs)
    this.gone(child)
  }

  /** Interrupts a branch with everything below it: one interruption for all of its children. */
  stopUnder(path: ReadonlyArray<string>): Promise<void> {
    const children = [...this.children.values()].filter(({ spec }) => path.every((name, at) => spec.under[at] === name))
    const above = path.slice(0, -1).reduce<Holder | undefined>((holder, name) => holder?.branch(name), this.root)
    const branch = above?.detach(path.at(-1) ?? "")
    if (branch === undefined) return Promise.resolve()
    const withinMs = Math.max(0, ...children.map(({ spec }) => spec.shutdownMs))
    // A child that stops its own branch while it is being started is not a part of it yet.
    const ending = Promise.resolve().then(() => {
      const { workers } = branch
      branch.fiber.interruptUnsafe()
      return this.over(Fiber.awaitAll(workers), withinMs)
    })
    for (const child of children) child.stopped ??= ending.then(() => this.gone(child))
    return ending
  }

  private async over(ending: Effect.Effect<unknown>, withinMs: number): Promise<void> {
    const wait = Effect.timeoutOption(ending, withinMs)
    await Effect.runPromise(Fiber.join(this.runFork(wait)))
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.stop(id)))
  }
}
