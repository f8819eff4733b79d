// What DiskMemory and DiskSim share besides the tree: the rules of an open descriptor and the one-holder table of
// locks. Both answer with the error codes of the real file system.
import type { LockOutcome, OpenMode } from "../../../runelog/disk/Disk.ts"
import { checkPosition, checkRange, systemError } from "../../../runelog/disk/DiskFault.ts"
import type { FileNode } from "./DiskTree.ts"

/** An open file: checks what a descriptor checks, and reads. */
export class DiskHandle {
  readonly node: FileNode
  readonly path: string
  readonly #mode: OpenMode
  #closed = false

  constructor(node: FileNode, path: string, mode: OpenMode) {
    this.node = node
    this.path = path
    this.#mode = mode
  }

  checkOpen(syscall: string): void {
    if (this.#closed) throw systemError("EBADF", syscall, this.path)
  }

  /** The bytes of a write that is allowed. */
  sourceOf(source: Uint8Array, offset: number, length: number, position: number): Uint8Array {
    this.checkOpen("write")
    if (this.#mode === "read") throw systemError("EBADF", "write", this.path)
    checkRange(source, offset, length, position)
    return source.subarray(offset, offset + length)
  }

  checkTruncate(length: number): void {
    this.checkOpen("ftruncate")
    if (this.#mode === "read") throw systemError("EINVAL", "ftruncate", this.path)
    checkPosition(length)
  }

  read(target: Uint8Array, offset: number, length: number, position: number): number {
    this.checkOpen("read")
    checkRange(target, offset, length, position)
    const count = Math.max(0, Math.min(length, this.node.size - position))
    target.set(this.node.bytes.subarray(position, position + count), offset)
    return count
  }

  size(): number {
    this.checkOpen("fstat")
    return this.node.size
  }

  close(): void {
    this.#closed = true
  }
}

/** One holder per directory, by its id; no owner to name, for there is only this process. */
export class LockTable {
  readonly #holders = new Map<number, object>()

  take(id: number): LockOutcome {
    if (this.#holders.has(id)) return { _tag: "Held", owner: undefined }
    const holder = {}
    this.#holders.set(id, holder)
    const release = async (): Promise<void> => {
      if (this.#holders.get(id) === holder) this.#holders.delete(id)
    }
    return { _tag: "Acquired", lock: { release } }
  }
}
