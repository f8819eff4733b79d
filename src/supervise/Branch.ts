// A branch of the tree of fibers: a fiber that does no work of its own and holds those below it. Interrupting it
// interrupts all of them; `workers` are those to wait for. Every turn makes two branches, so they must cost little.
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

export type RunFork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** One fiber and those below it, for people. */
export interface FiberNode {
  readonly name: string
  /** Left out where it is no fiber but holds some: the conversation. */
  readonly fiber_id?: number
  readonly children: ReadonlyArray<FiberNode>
}

/** Trees in reading order: whatever is deeper belongs to the nearest item above that is not. */
export interface FiberList {
  readonly items: ReadonlyArray<{ readonly depth: number; readonly fiber_id?: number; readonly name: string }>
  readonly left_out: number
}

const flat = ({ children, ...node }: FiberNode, depth: number): FiberList["items"] => [
  { depth, ...node },
  ...children.flatMap((child) => flat(child, depth + 1))
]

export const fiberList = (trees: ReadonlyArray<FiberNode>, itemsMax: number): FiberList => {
  const all = trees.flatMap((tree) => flat(tree, 0))
  return { items: all.slice(0, itemsMax), left_out: Math.max(0, all.length - itemsMax) }
}

/** Unlike `Effect.never` it sets no timer that keeps the process alive: the work below it does that. */
const untilInterrupted = Effect.callback<never>(() => undefined)

/** What holds others and can be printed: the root, which is no fiber, and the branches below it, which are. */
export class Holder {
  readonly name: string
  protected readonly runFork: RunFork
  private readonly held = new Map<string, Branch | Fiber.Fiber<unknown>>()

  constructor(name: string, runFork: RunFork) {
    this.name = name
    this.runFork = runFork
  }

  get isEmpty(): boolean {
    return this.held.size === 0
  }

  /** The branch of that name, made where there is none. */
  branch(name: string): Branch {
    const found = this.held.get(name)
    if (found instanceof Branch) return found
    const made = new Branch(name, this.runFork)
    this.held.set(name, made)
    return made
  }

  /** The branch of that name, taken out of the tree: what comes under its name from now on is another one. */
  detach(name: string): Branch | undefined {
    const found = this.held.get(name)
    if (!(found instanceof Branch)) return undefined
    this.held.delete(name)
    return found
  }

  /** Holds a fiber that does work until it is released. */
  adopt(name: string, fiber: Fiber.Fiber<unknown>): void {
    this.held.set(name, fiber)
  }

  release(name: string, fiber: Fiber.Fiber<unknown>): void {
    if (this.held.get(name) === fiber) this.held.delete(name)
  }

  /** Ends the branches below that hold nothing any more. */
  trim(): void {
    for (const [name, one] of this.held) {
      if (!(one instanceof Branch)) continue
      one.trim()
      if (!one.isEmpty) continue
      this.held.delete(name)
      one.fiber.interruptUnsafe()
    }
  }

  /** The fibers that do work, here and below. */
  get workers(): ReadonlyArray<Fiber.Fiber<unknown>> {
    return [...this.held.values()].flatMap((one) => (one instanceof Branch ? one.workers : [one]))
  }

  tree(describe: (name: string) => string): FiberNode {
    return { name: this.name, children: this.nodes(describe) }
  }

  /** Branches first, then work, each in the order in which it came. */
  protected nodes(describe: (name: string) => string): ReadonlyArray<FiberNode> {
    const all = [...this.held].map(([name, one]) => ({ name, one }))
    const branches = all.flatMap(({ one }) => (one instanceof Branch ? [one.tree(describe)] : []))
    const work = all.flatMap(({ name, one }) =>
      one instanceof Branch ? [] : [{ name: describe(name), fiber_id: one.id, children: [] }]
    )
    return [...branches, ...work]
  }

  protected interruptHeld(): void {
    for (const one of this.held.values()) (one instanceof Branch ? one.fiber : one).interruptUnsafe()
  }
}

export class Branch extends Holder {
  readonly fiber: Fiber.Fiber<never>

  constructor(name: string, runFork: RunFork) {
    super(name, runFork)
    this.fiber = runFork(untilInterrupted)
    this.fiber.addObserver(() => this.interruptHeld())
  }

  override tree(describe: (name: string) => string): FiberNode {
    return { name: this.name, fiber_id: this.fiber.id, children: this.nodes(describe) }
  }
}
