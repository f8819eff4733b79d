// What of a simulated disk outlives a process: the tree as programs see it, and the part of it that is on the platter.
import { posix } from "node:path"
import { DiskSimDirectory, type Entries } from "./DiskSimDirectory.ts"
import { DiskSimFile, type Garble, newTicket, type Ticket } from "./DiskSimFile.ts"
import { makeRandom } from "./DiskSimRandom.ts"
import { type Contents, type DirectoryNode, DiskTree, type FileNode } from "./DiskTree.ts"

interface Survivors {
  readonly entries: Entries
  readonly contents: (node: FileNode) => Contents
}

export class Platter {
  readonly directories = new DiskSimDirectory()
  readonly tree: DiskTree
  readonly #files = new WeakMap<FileNode, DiskSimFile>()
  #ticket: Ticket = newTicket()

  constructor() {
    this.tree = new DiskTree((change) => this.directories.note(change, this.#ticket))
  }

  /** Runs a change of entries under a ticket of its own. */
  change<A>(work: (tree: DiskTree) => A): { readonly result: A; readonly ticket: Ticket } {
    this.#ticket = newTicket()
    return { result: work(this.tree), ticket: this.#ticket }
  }

  addFile(node: FileNode): void {
    this.#files.set(node, new DiskSimFile(node))
  }

  file(node: FileNode): DiskSimFile {
    return this.#files.get(node)!
  }

  /** Sum of the lengths of the files below a directory. */
  usedBytes(directory: DirectoryNode = this.tree.root): number {
    let total = 0
    for (const node of directory.entries.values()) total += node.kind === "file" ? node.size : this.usedBytes(node)
    return total
  }

  /** The disk as the next start finds it: everything on it is durable. */
  survivor(seed: number, garble: Garble): Platter {
    const found = new Platter()
    const entries = this.directories.survivors(makeRandom(seed))
    const contents = (node: FileNode) => this.file(node).survivor(makeRandom(seed, node.id), garble)
    found.#plant("/", this.tree.root, { entries, contents })
    found.directories.settle()
    return found
  }

  #plant(path: string, directory: DirectoryNode, from: Survivors): void {
    const names = [...(from.entries.get(directory) ?? [])].sort(([left], [right]) => (left < right ? -1 : 1))
    for (const [name, node] of names) {
      const at = posix.join(path, name)
      if (node.kind === "directory") {
        this.tree.makeDirectory(at)
        this.#plant(at, node, from)
      } else {
        this.addFile(Object.assign(this.tree.open(at, "create"), from.contents(node)))
      }
    }
  }
}
