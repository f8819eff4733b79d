// A disk in memory that can lose power. It keeps what is synced apart from what was only written: `crash(seed)` gives
// the disk as the next start finds it, the same for the same seed and history. It also fails on command (`failNext`),
// runs full (`capacityBytes`) and tells each step before it happens (`onOperation`), so that a test can stop anywhere.
// Calls take effect in the order they are made, but count as written only when they have returned: a sync that
// starts while a write is still under way does not cover that write.
import type { DirectoryEntry, Disk, DiskFile, LockOutcome, OpenMode } from "../../../runelog/disk/Disk.ts"
import { systemError } from "../../../runelog/disk/DiskFault.ts"
import { DiskHandle, LockTable } from "./DiskHandle.ts"
import { type Garble, newTicket, type Ticket } from "./DiskSimFile.ts"
import { Platter } from "./DiskSimPlatter.ts"
import { type DiskTree, resizeFile, writeFile } from "./DiskTree.ts"

/** Steps that change what a crash can leave behind. `create` is an open that creates. */
export type ChangingOperation =
  | "create"
  | "write"
  | "sync"
  | "truncate"
  | "makeDirectory"
  | "rename"
  | "remove"
  | "removeTree"
  | "syncDirectory"

/** `openDirectory` is what a sync of a directory begins with. */
export type Operation =
  | ChangingOperation
  | "open"
  | "openDirectory"
  | "read"
  | "size"
  | "close"
  | "list"
  | "exists"
  | "lock"

/** A step that is about to happen; `index` counts from 0. */
export interface Step {
  readonly index: number
  readonly operation: ChangingOperation
  readonly path: string
}

export interface Fault {
  readonly code: "EACCES" | "EAGAIN" | "EIO" | "EMFILE" | "ENFILE" | "ENOMEM" | "ENOSPC"
  /** How many of these operations go well first. */
  readonly after?: number
  /** How many fail then; 1 unless told. */
  readonly times?: number
  /** Of a failing write: how much reaches the file before the error. */
  readonly partialBytes?: number
}

export interface DiskSimOptions {
  /** Sum of the file lengths; a write that needs more stops in the middle with ENOSPC. */
  readonly capacityBytes?: number
  /** Called before each changing step. What it throws is what the step fails with, and the step does not happen. */
  readonly onOperation?: (step: Step) => void
  readonly garble?: Garble
}

interface Armed {
  after: number
  times: number
  readonly fault: Fault
}

const changing: ReadonlySet<Operation> = new Set<ChangingOperation>([
  "create",
  "write",
  "sync",
  "truncate",
  "makeDirectory",
  "rename",
  "remove",
  "removeTree",
  "syncDirectory"
])

/** The names that the real file system gives to the calls that fail. */
const syscalls: { readonly [O in Operation]: string } = {
  close: "close",
  create: "open",
  exists: "lstat",
  list: "scandir",
  lock: "lock",
  makeDirectory: "mkdir",
  open: "open",
  openDirectory: "open",
  read: "read",
  remove: "unlink",
  removeTree: "rm",
  rename: "rename",
  size: "fstat",
  sync: "fdatasync",
  syncDirectory: "fsync",
  truncate: "ftruncate",
  write: "write"
}

const isChanging = (operation: Operation): operation is ChangingOperation => changing.has(operation)

export class DiskSim implements Disk {
  capacityBytes: number
  onOperation: (step: Step) => void
  readonly #garble: Garble
  readonly #platter: Platter
  readonly #locks = new LockTable()
  readonly #faults = new Map<Operation, Array<Armed>>()
  #operationCount = 0
  #off = false

  constructor(options: DiskSimOptions = {}, platter: Platter = new Platter()) {
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY
    this.onOperation = options.onOperation ?? (() => {})
    this.#garble = options.garble ?? "written"
    this.#platter = platter
  }

  /** How many changing steps were begun. */
  get operationCount(): number {
    return this.#operationCount
  }

  /** Sum of the file lengths, as counted against `capacityBytes`. */
  get usedBytes(): number {
    return this.#platter.usedBytes()
  }

  /** The disk as found after a power cut at this moment. This one is left as it is; see `powerOff`. */
  crash(seed: number): DiskSim {
    return this.#successor(this.#platter.survivor(seed, this.#garble))
  }

  /** The process dies, the machine does not: the same disk for the next process, with nothing lost and nothing synced. */
  killProcess(): DiskSim {
    this.powerOff()
    return this.#successor(this.#platter)
  }

  /** From now on every call fails with EIO and has no effect, those under way included. */
  powerOff(): void {
    this.#off = true
  }

  /** Lets a coming operation fail. Faults of the same operation wait for each other. */
  failNext(operation: Operation, fault: Fault): void {
    const armed = this.#faults.get(operation) ?? []
    armed.push({ after: fault.after ?? 0, times: fault.times ?? 1, fault })
    this.#faults.set(operation, armed)
  }

  /** Disarms every fault that has not happened yet. */
  clearFaults(): void {
    this.#faults.clear()
  }

  async open(path: string, mode: OpenMode): Promise<DiskFile> {
    this.#perform(mode === "create" ? "create" : "open", path)
    const node = await this.#changeEntries(path, (tree) => {
      const opened = tree.open(path, mode)
      if (mode === "create") this.#platter.addFile(opened)
      return opened
    })
    return this.#file(new DiskHandle(node, path, mode))
  }

  async makeDirectory(path: string): Promise<string | undefined> {
    this.#perform("makeDirectory", path)
    return this.#changeEntries(path, (tree) => tree.makeDirectory(path))
  }

  async list(path: string): Promise<ReadonlyArray<DirectoryEntry>> {
    this.#perform("list", path)
    return this.#platter.tree.list(path)
  }

  async rename(from: string, to: string): Promise<void> {
    this.#perform("rename", from)
    return this.#changeEntries(from, (tree) => tree.rename(from, to))
  }

  async remove(path: string): Promise<void> {
    this.#perform("remove", path)
    return this.#changeEntries(path, (tree) => tree.remove(path))
  }

  async removeTree(path: string): Promise<void> {
    this.#perform("removeTree", path)
    return this.#changeEntries(path, (tree) => tree.removeTree(path))
  }

  async exists(path: string): Promise<boolean> {
    this.#perform("exists", path)
    return this.#platter.tree.exists(path)
  }

  async syncDirectory(path: string): Promise<void> {
    this.#perform("openDirectory", path)
    const fault = this.#begin("syncDirectory", path)
    const { directories, tree } = this.#platter
    const directory = tree.directory(path, "fsync")
    const covered = directories.covered(directory)
    if (fault !== undefined) {
      directories.abandon(covered)
      throw systemError(fault.code, "fsync", path)
    }
    await this.#elapse(path, { finish: () => directories.flush(directory, covered) })
  }

  async lock(directory: string): Promise<LockOutcome> {
    this.#perform("lock", directory)
    return this.#locks.take(this.#platter.tree.directory(directory, "lock").id)
  }

  #file(handle: DiskHandle): DiskFile {
    const { path } = handle
    return {
      read: async (target, offset, length, position) => {
        this.#perform("read", path)
        return handle.read(target, offset, length, position)
      },
      write: async (source, offset, length, position) => {
        const ticket = newTicket()
        this.#write(handle, handle.sourceOf(source, offset, length, position), { position, ticket })
        await this.#elapse(path, { ticket })
      },
      writeNow: (source, offset, length, position) => {
        const ticket = { ...newTicket(), settled: true }
        this.#write(handle, handle.sourceOf(source, offset, length, position), { position, ticket })
      },
      sync: async () => {
        const finish = this.#sync(handle)
        await this.#elapse(path, { finish })
      },
      syncNow: () => this.#sync(handle)(),
      truncate: async (length) => {
        const ticket = newTicket()
        this.#truncate(handle, length, ticket)
        await this.#elapse(path, { ticket })
      },
      size: async () => {
        this.#perform("size", path)
        return handle.size()
      },
      close: async () => {
        this.#perform("close", path)
        handle.close()
      }
    }
  }

  #write(handle: DiskHandle, source: Uint8Array, to: { readonly position: number; readonly ticket: Ticket }): void {
    const fault = this.#begin("write", handle.path)
    const room = Math.max(0, this.#sizeMax(handle) - to.position)
    const written = source.subarray(
      0,
      Math.min(source.length, room, fault === undefined ? room : (fault.partialBytes ?? 0))
    )
    this.#platter.file(handle.node).noteWrite(handle.node, written, to.position, to.ticket)
    writeFile(handle.node, written, to.position)
    if (fault !== undefined || written.length < source.length) {
      to.ticket.settled = true
      throw systemError(fault?.code ?? "ENOSPC", "write", handle.path)
    }
  }

  #truncate(handle: DiskHandle, length: number, ticket: Ticket): void {
    handle.checkTruncate(length)
    this.#perform("truncate", handle.path)
    if (length > this.#sizeMax(handle)) throw systemError("ENOSPC", "ftruncate", handle.path)
    this.#platter.file(handle.node).noteTruncate(handle.node, length, ticket)
    resizeFile(handle.node, length)
  }

  /** Starts a sync; the result finishes it. A failed one leaves its data in memory, never to be written. */
  #sync(handle: DiskHandle): () => void {
    handle.checkOpen("fdatasync")
    const fault = this.#begin("sync", handle.path)
    const file = this.#platter.file(handle.node)
    const covered = file.covered()
    if (fault === undefined) return () => file.flush(covered)
    file.abandon(covered)
    throw systemError(fault.code, "fdatasync", handle.path)
  }

  #sizeMax({ node }: DiskHandle): number {
    const free =
      this.capacityBytes === Number.POSITIVE_INFINITY ? this.capacityBytes : this.capacityBytes - this.usedBytes
    return node.size + Math.max(0, free)
  }

  async #changeEntries<A>(path: string, work: (tree: DiskTree) => A): Promise<A> {
    const { result, ticket } = this.#platter.change(work)
    await this.#elapse(path, { ticket })
    return result
  }

  /** The time a call takes: others run meanwhile, and the power may go. With what finishes it there is no time between. */
  async #elapse(path: string, call: { readonly ticket?: Ticket; readonly finish?: () => void }): Promise<void> {
    await undefined
    if (call.ticket !== undefined) call.ticket.settled = true
    if (this.#off) throw systemError("EIO", "disk", path)
    call.finish?.()
  }

  #perform(operation: Operation, path: string): void {
    const fault = this.#begin(operation, path)
    if (fault !== undefined) throw systemError(fault.code, syscalls[operation], path)
  }

  /** Announces the step and draws the fault it has to fail with, if any. */
  #begin(operation: Operation, path: string): Fault | undefined {
    if (this.#off) throw systemError("EIO", syscalls[operation], path)
    if (isChanging(operation)) this.onOperation({ index: this.#operationCount++, operation, path })
    const armed = this.#faults.get(operation)
    const next = armed?.[0]
    if (armed === undefined || next === undefined) return undefined
    if (next.after > 0) {
      next.after--
      return undefined
    }
    next.times--
    if (next.times <= 0) armed.shift()
    return next.fault
  }

  #successor(platter: Platter): DiskSim {
    return new DiskSim({ capacityBytes: this.capacityBytes, garble: this.#garble }, platter)
  }
}
