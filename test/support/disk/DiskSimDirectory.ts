// What of the simulated directories is on the platter. A change of entries is durable once each directory it touches
// was synced; until then a crash keeps or drops it. Changes of the same name keep their order, so a rename is never
// found without the creation before it; changes of different names may be found in any combination. A rename is
// one change: both names are as before or both as after.
import type { Ticket } from "./DiskSimFile.ts"
import type { Random } from "./DiskSimRandom.ts"
import type { DirectoryChange, DirectoryNode, TreeNode } from "./DiskTree.ts"

interface Pending {
  readonly change: DirectoryChange
  readonly names: ReadonlyArray<string>
  readonly awaiting: Set<DirectoryNode>
  readonly ticket: Ticket
}

/** Entries per directory. */
export type Entries = ReadonlyMap<DirectoryNode, ReadonlyMap<string, TreeNode>>

const applyTo = (entries: Map<DirectoryNode, Map<string, TreeNode>>, change: DirectoryChange): void => {
  for (const { directory, name, node } of change) {
    const names = entries.get(directory) ?? new Map<string, TreeNode>()
    if (node === undefined) names.delete(name)
    else names.set(name, node)
    entries.set(directory, names)
  }
}

export class DiskSimDirectory {
  readonly #durable = new Map<DirectoryNode, Map<string, TreeNode>>()
  #pending: Array<Pending> = []

  note(change: DirectoryChange, ticket: Ticket): void {
    const names = change.map(({ directory, name }) => `${directory.id}/${name}`)
    this.#pending.push({ change, names, awaiting: new Set(change.map(({ directory }) => directory)), ticket })
  }

  /** The changes that a sync of `directory` starting now has to bring to the platter. */
  covered(directory: DirectoryNode): ReadonlySet<object> {
    return new Set(
      this.#pending.filter(({ awaiting, ticket }) => awaiting.has(directory) && ticket.settled && !ticket.abandoned)
    )
  }

  flush(directory: DirectoryNode, covered: ReadonlySet<object>): void {
    for (const pending of this.#pending) if (covered.has(pending)) pending.awaiting.delete(directory)
    const flushed = this.#withEarlier((pending) => pending.awaiting.size === 0)
    for (const pending of this.#pending) if (flushed.has(pending)) applyTo(this.#durable, pending.change)
    this.#pending = this.#pending.filter((pending) => !flushed.has(pending))
  }

  abandon(covered: ReadonlySet<object>): void {
    for (const pending of this.#pending) if (covered.has(pending)) pending.ticket.abandoned = true
  }

  /** Everything so far is durable: the state of a disk that was just switched on. */
  settle(): void {
    for (const { change } of this.#pending.splice(0)) applyTo(this.#durable, change)
  }

  /** The entries found after the power comes back. */
  survivors(random: Random): Entries {
    const entries = new Map([...this.#durable].map(([directory, names]) => [directory, new Map(names)]))
    const chance = random.below(8) === 0 ? 0 : random.next()
    const lost = new Set<string>()
    for (const { change, names } of this.#pending) {
      if (random.next() >= chance || names.some((name) => lost.has(name))) for (const name of names) lost.add(name)
      else applyTo(entries, change)
    }
    return entries
  }

  // A name cannot be on the platter in a later state while the change before it is still on its way.
  #withEarlier(isFlushed: (pending: Pending) => boolean): ReadonlySet<Pending> {
    const flushed = new Set<Pending>()
    const needed = new Set<string>()
    for (const pending of this.#pending.toReversed()) {
      if (!isFlushed(pending) && !pending.names.some((name) => needed.has(name))) continue
      flushed.add(pending)
      for (const name of pending.names) needed.add(name)
    }
    return flushed
  }
}
