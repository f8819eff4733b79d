// A branch of the tree of fibers: a fiber that does no work of its own and holds those below it. Interrupting it
// interrupts all of them and ends when they have ended.
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"

export type RunFork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** One fiber and those below it, for people. */
export interface FiberNode {
  readonly name: string
  readonly fiber_id: number
  readonly children: ReadonlyArray<FiberNode>
}

/** Trees in reading order: whatever is deeper belongs to the nearest item above that is not. */
export interface FiberList {
  readonly items: ReadonlyArray<{ readonly depth: number; readonly fiber_id: number; readonly name: string }>
  readonly left_out: number
}

const flat = ({ children, fiber_id, name }: FiberNode, depth: number): FiberList["items"] => [
  { depth, fiber_id, name },
  ...children.flatMap((child) => flat(child, depth + 1))
]

export const fiberList = (trees: ReadonlyArray<FiberNode>, itemsMax: number): FiberList => {
  const all = trees.flatMap((tree) => flat(tree, 0))
  return { items: all.slice(0, itemsMax), left_out: Math.max(0, all.length - itemsMax) }
}

interface Leaf {
  readonly name: string
  readonly fiber: Fiber.Fiber<unknown>
}

export class Branch {
  readonly name: string
  readonly fiber: Fiber.Fiber<never>
  private readonly runFork: RunFork
  private readonly scope = Scope.makeUnsafe("parallel")
  private readonly branches = new Map<string, Branch>()
  private readonly leaves = new Map<string, Leaf>()

  constructor(name: string, runFork: RunFork) {
    this.name = name
    this.runFork = runFork
    this.fiber = runFork(Effect.onExit(Effect.never, (exit) => Scope.close(this.scope, exit)))
  }

  get isEmpty(): boolean {
    return this.branches.size === 0 && this.leaves.size === 0
  }

  /** The branch of that name, made where there is none. */
  branch(name: string): Branch {
    const found = this.branches.get(name)
    if (found !== undefined) return found
    const made = new Branch(name, this.runFork)
    this.hold(made.fiber)
    this.branches.set(name, made)
    made.fiber.addObserver(() => {
      if (this.branches.get(name) === made) this.branches.delete(name)
    })
    return made
  }

  /** The branch of that name, taken out of the tree: what comes under its name from now on is another one. */
  detach(name: string): Branch | undefined {
    const found = this.branches.get(name)
    this.branches.delete(name)
    return found
  }

  /** Holds a fiber until it ends. */
  adopt(name: string, fiber: Fiber.Fiber<unknown>): void {
    const leaf: Leaf = { name, fiber }
    this.leaves.set(name, leaf)
    this.hold(fiber)
    fiber.addObserver(() => {
      if (this.leaves.get(name) === leaf) this.leaves.delete(name)
    })
  }

  /** Ends the branches below that hold nothing any more. */
  trim(): void {
    for (const [name, branch] of this.branches) {
      branch.trim()
      if (!branch.isEmpty) continue
      this.branches.delete(name)
      branch.fiber.interruptUnsafe()
    }
  }

  tree(describe: (name: string) => string): FiberNode {
    const branches = [...this.branches.values()].map((branch) => branch.tree(describe))
    const leaves = [...this.leaves.values()].map(({ fiber, name }) => ({
      name: describe(name),
      fiber_id: fiber.id,
      children: []
    }))
    return { name: this.name, fiber_id: this.fiber.id, children: [...branches, ...leaves] }
  }

  private hold(fiber: Fiber.Fiber<unknown, unknown>): void {
    Fiber.runIn(fiber, this.scope)
  }
}
