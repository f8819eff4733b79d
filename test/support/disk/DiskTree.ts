// The namespace and contents of a disk held in memory: what DiskMemory is and what DiskSim sees while the power
// is on. Every change of directory entries is reported as one atomic change, so that DiskSim can tell what would
// survive a crash. Paths use "/" and are taken from the root.
import { posix } from "node:path"
import type { DirectoryEntry, OpenMode } from "../../../runelog/disk/Disk.ts"
import { systemError } from "../../../runelog/disk/DiskFault.ts"

/** The contents of a file: `bytes` may be longer than `size`; everything behind `size` is zero. */
export interface Contents {
  bytes: Uint8Array
  size: number
}

export interface FileNode extends Contents {
  readonly kind: "file"
  readonly id: number
}

export interface DirectoryNode {
  readonly kind: "directory"
  readonly id: number
  readonly entries: Map<string, TreeNode>
}

export type TreeNode = FileNode | DirectoryNode

/** One entry takes a new value; `node` undefined means that it goes away. */
export interface EntryEdit {
  readonly directory: DirectoryNode
  readonly name: string
  readonly node: TreeNode | undefined
}

/** Edits that happen together or not at all. */
export type DirectoryChange = ReadonlyArray<EntryEdit>

interface Place {
  readonly directory: DirectoryNode
  readonly name: string
  readonly node: TreeNode | undefined
}

const initialCapacity = 4096

/** Sets the length of a file; what is added reads as zeros. */
export const resizeFile = (file: Contents, size: number): void => {
  if (size > file.bytes.length) {
    const grown = new Uint8Array(Math.max(size, file.bytes.length * 2, initialCapacity))
    grown.set(file.bytes.subarray(0, file.size))
    file.bytes = grown
  }
  if (size < file.size) file.bytes.fill(0, size, file.size)
  file.size = size
}

export const writeFile = (file: Contents, source: Uint8Array, position: number): void => {
  if (source.length === 0) return
  if (position + source.length > file.size) resizeFile(file, position + source.length)
  file.bytes.set(source, position)
}

const contains = (ancestor: TreeNode, node: TreeNode): boolean =>
  ancestor === node ||
  (ancestor.kind === "directory" && [...ancestor.entries.values()].some((child) => contains(child, node)))

const byName = (left: DirectoryEntry, right: DirectoryEntry): number => (left.name < right.name ? -1 : 1)

export class DiskTree {
  readonly root: DirectoryNode
  readonly #changed: (change: DirectoryChange) => void
  #nextId = 0

  /** `changed` hears of every change after it is visible. */
  constructor(changed: (change: DirectoryChange) => void = () => {}) {
    this.#changed = changed
    this.root = this.#newDirectory()
  }

  open(path: string, mode: OpenMode): FileNode {
    const place = this.#place(path, "open")
    if (mode === "create") return this.#create(place, path)
    if (place.node === undefined) throw systemError("ENOENT", "open", path)
    if (place.node.kind === "directory") throw systemError("EISDIR", "open", path)
    return place.node
  }

  makeDirectory(path: string): string | undefined {
    let directory = this.root
    let walked = ""
    let topmost: string | undefined
    for (const name of segmentsOf(path)) {
      walked += `/${name}`
      let next = directory.entries.get(name)
      if (next === undefined) {
        next = this.#newDirectory()
        this.#apply([{ directory, name, node: next }])
        topmost ??= walked
      }
      if (next.kind === "file")
        throw systemError(walked === posix.resolve("/", path) ? "EEXIST" : "ENOTDIR", "mkdir", path)
      directory = next
    }
    return topmost
  }

  list(path: string): ReadonlyArray<DirectoryEntry> {
    return [...this.directory(path, "scandir").entries]
      .map(([name, node]): DirectoryEntry => ({ name, kind: node.kind }))
      .sort(byName)
  }

  rename(from: string, to: string): void {
    const source = this.#place(from, "rename")
    const target = this.#place(to, "rename")
    if (source.node === undefined) throw systemError("ENOENT", "rename", from)
    if (source.node === target.node) return
    if (contains(source.node, target.directory)) throw systemError("EINVAL", "rename", from)
    if (target.node !== undefined) this.#checkReplace(source.node, target.node, to)
    this.#apply([
      { directory: source.directory, name: source.name, node: undefined },
      { directory: target.directory, name: target.name, node: source.node }
    ])
  }

  remove(path: string): void {
    const place = this.#place(path, "unlink")
    if (place.node === undefined) throw systemError("ENOENT", "unlink", path)
    if (place.node.kind === "directory") throw systemError("EISDIR", "unlink", path)
    this.#apply([{ directory: place.directory, name: place.name, node: undefined }])
  }

  removeTree(path: string): void {
    if (!this.exists(path)) return
    const place = this.#place(path, "rm")
    this.#removeBelow(place.node!)
    this.#apply([{ directory: place.directory, name: place.name, node: undefined }])
  }

  exists(path: string): boolean {
    let node: TreeNode | undefined = this.root
    for (const name of segmentsOf(path)) node = node?.kind === "directory" ? node.entries.get(name) : undefined
    return node !== undefined
  }

  directory(path: string, syscall: string): DirectoryNode {
    const node = this.#walk(segmentsOf(path), { path, syscall })
    if (node.kind === "file") throw systemError("ENOTDIR", syscall, path)
    return node
  }

  #newDirectory(): DirectoryNode {
    return { kind: "directory", id: this.#nextId++, entries: new Map() }
  }

  #create(place: Place, path: string): FileNode {
    if (place.node !== undefined) throw systemError("EEXIST", "open", path)
    const node: FileNode = { kind: "file", id: this.#nextId++, bytes: new Uint8Array(0), size: 0 }
    this.#apply([{ directory: place.directory, name: place.name, node }])
    return node
  }

  #removeBelow(node: TreeNode): void {
    if (node.kind === "file") return
    for (const [name, child] of [...node.entries]) {
      this.#removeBelow(child)
      this.#apply([{ directory: node, name, node: undefined }])
    }
  }

  #checkReplace(source: TreeNode, target: TreeNode, to: string): void {
    if (target.kind === "file") {
      if (source.kind === "directory") throw systemError("ENOTDIR", "rename", to)
      return
    }
    if (source.kind === "file") throw systemError("EISDIR", "rename", to)
    if (target.entries.size > 0) throw systemError("ENOTEMPTY", "rename", to)
  }

  #apply(change: DirectoryChange): void {
    for (const { directory, name, node } of change) {
      if (node === undefined) directory.entries.delete(name)
      else directory.entries.set(name, node)
    }
    this.#changed(change)
  }

  #place(path: string, syscall: string): Place {
    const segments = segmentsOf(path)
    const name = segments.pop()
    if (name === undefined) throw systemError("EBUSY", syscall, path)
    const directory = this.#walk(segments, { path, syscall })
    if (directory.kind === "file") throw systemError("ENOTDIR", syscall, path)
    return { directory, name, node: directory.entries.get(name) }
  }

  #walk(segments: ReadonlyArray<string>, at: { readonly path: string; readonly syscall: string }): TreeNode {
    let node: TreeNode = this.root
    for (const name of segments) {
      if (node.kind === "file") throw systemError("ENOTDIR", at.syscall, at.path)
      const next: TreeNode | undefined = node.entries.get(name)
      if (next === undefined) throw systemError("ENOENT", at.syscall, at.path)
      node = next
    }
    return node
  }
}

const segmentsOf = (path: string): Array<string> =>
  posix
    .resolve("/", path)
    .split("/")
    .filter((name) => name !== "")
