// One writer per directory, decided by the kernel: whatever ends the holder, kill -9 included, frees the directory
// at once, and no timeout is involved. Two kernel claims are taken where they exist: an abstract socket named after the
// directory (Linux; one per network namespace) and a record lock on the file `lock.guard` (seen by containers that
// share a volume but neither network nor process ids). The file `lock` says who holds the directory, with start time
// and boot, so that a reused process id is not mistaken for the holder.
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import { join } from "node:path"
import { GuardUnusable } from "../RunelogErrors.ts"
import type { LockOutcome, LockOwner } from "./Disk.ts"
import { codeOf, systemError } from "./DiskFault.ts"

export type NodeLock = (directory: string) => Promise<LockOutcome>

/** What can be known about processes: who we are, and whether the one in a lock file still runs. */
export interface ProcessTable {
  readonly self: () => LockOwner
  readonly isAlive: (owner: LockOwner) => boolean
}

export interface NodeLockOptions {
  readonly platform?: NodeJS.Platform
  readonly processes?: ProcessTable
  /** Gives node:sqlite, or undefined where Node was built without it. */
  readonly loadSqlite?: () => typeof import("node:sqlite") | undefined
  readonly createServer?: typeof net.createServer
}

/** Says who holds the directory. */
export const lockFileName = "lock"
/**
 * Carries the record lock. It is never removed, because the lock belongs to the file and not to its name, and nothing
 * else in the holder's process may open it: closing any descriptor of it would drop the lock.
 */
export const guardFileName = "lock.guard"

const deadStates = new Set(["Z", "X", "x"])

/** Start time of a process in clock ticks since boot; undefined if it does not run. A zombie holds nothing any more. */
export const parseStartTicks = (stat: string): string | undefined => {
  // The command name may hold spaces and parentheses: fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return deadStates.has(fields[0]!) ? undefined : fields[19]
}

const readProcess = (path: string): string | undefined => {
  try {
    return fs.readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Without a /proc nobody in a lock file counts as running: then the kernel's claims alone decide. */
export const linuxProcesses = (procDirectory = "/proc"): ProcessTable => {
  const bootId = (): string => readProcess(join(procDirectory, "sys/kernel/random/boot_id"))?.trim() ?? ""
  const startTicks = (pid: number): string | undefined => {
    const stat = readProcess(join(procDirectory, String(pid), "stat"))
    return stat === undefined ? undefined : parseStartTicks(stat)
  }
  return {
    self: () => ({ pid: process.pid, startTicks: startTicks(process.pid) ?? "", bootId: bootId() }),
    isAlive: (owner) => owner.bootId === bootId() && startTicks(owner.pid) === owner.startTicks
  }
}

type Signal = (pid: number, signal: 0) => unknown

/** Where the start time of another process cannot be read, a running process with that id counts as the holder. */
export const portableProcesses = (signal: Signal = process.kill): ProcessTable => ({
  self: () => ({ pid: process.pid, startTicks: String(Math.round(performance.timeOrigin)), bootId: "" }),
  isAlive: (owner) => {
    try {
      signal(owner.pid, 0)
      return true
    } catch (error) {
      return codeOf(error) === "EPERM"
    }
  }
})

type Release = () => Promise<void>

/** Resolves with undefined when somebody else, or this very process, has the claim. */
type Claim = (directory: string, id: string) => Promise<Release | undefined>

const claimSocket =
  (createServer: typeof net.createServer): Claim =>
  (_directory, id) =>
    new Promise((resolve, reject) => {
      const name = createHash("sha256").update(`runelog ${id}`).digest("hex")
      const server = createServer((socket) => socket.destroy())
      server.once("error", (error) => (codeOf(error) === "EADDRINUSE" ? resolve(undefined) : reject(error)))
      // Exclusive, for a worker of node:cluster would otherwise share the socket of its siblings.
      server.listen({ path: `\0runelog-${name}`, exclusive: true, backlog: 1 }, () => {
        server.unref()
        resolve(() => new Promise((closed) => server.close(() => closed())))
      })
    })

/** SQLite opens no longer path; a longer one is refused by name instead of with its "unable to open database file". */
export const guardPathBytesMax = 500

const sqliteBusy = 5

// Keeps databases from being collected, which would close them and free a directory whose lock was merely forgotten.
const openGuards = new Set<object>()

const createOnce = (path: string): void => {
  try {
    fs.closeSync(fs.openSync(path, "wx", 0o600))
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
}

// Node offers no file locks of its own; SQLite's write intent is one, the same on every platform. The database stays
// empty: the transaction is only ever held and dropped, with its journal in memory so that no second file appears.
const claimGuard =
  (sqlite: typeof import("node:sqlite")): Claim =>
  async (directory) => {
    const path = join(fs.realpathSync(directory), guardFileName)
    if (Buffer.byteLength(path) > guardPathBytesMax) throw systemError("ENAMETOOLONG", "lock", directory)
    createOnce(path)
    let database: InstanceType<typeof sqlite.DatabaseSync> | undefined
    try {
      database = new sqlite.DatabaseSync(path)
      database.exec("PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE")
    } catch (error) {
      database?.close()
      if ((error as { readonly errcode?: unknown }).errcode === sqliteBusy) return undefined
      throw new GuardUnusable({ path, reason: (error as Error).message })
    }
    const held = database
    openGuards.add(held)
    return async () => {
      openGuards.delete(held)
      held.close()
    }
  }

const isOwner = (value: unknown): value is LockOwner =>
  typeof value === "object" &&
  value !== null &&
  "pid" in value &&
  Number.isSafeInteger(value.pid) &&
  "startTicks" in value &&
  typeof value.startTicks === "string" &&
  "bootId" in value &&
  typeof value.bootId === "string"

/** What the lock file says; undefined when it is missing or was torn by a crash. */
export const readOwner = (path: string): LockOwner | undefined => {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(path, "utf8"))
    return isOwner(value) ? { pid: value.pid, startTicks: value.startTicks, bootId: value.bootId } : undefined
  } catch (error) {
    // Of a directory in its place the write that follows tells by name.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "EISDIR" || error instanceof SyntaxError) return undefined
    throw error
  }
}

const sameOwner = (left: LockOwner | undefined, right: LockOwner): boolean =>
  left?.pid === right.pid && left.startTicks === right.startTicks && left.bootId === right.bootId

/** Creates the lock file; false when there is one. */
const createOwner = (path: string, self: LockOwner): boolean => {
  try {
    fs.writeFileSync(path, JSON.stringify(self), { flag: "wx", mode: 0o600 })
    return true
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false
    throw error
  }
}

// The path is part of it because the inode of a removed directory is soon given to another one.
const identityOf = (directory: string): string => {
  const stats = fs.statSync(directory, { bigint: true })
  if (!stats.isDirectory()) throw systemError("ENOTDIR", "lock", directory)
  return `${stats.dev}:${stats.ino}:${fs.realpathSync(directory)}`
}

class DirectoryClaim {
  readonly #path: string
  readonly #processes: ProcessTable
  readonly #releases: Array<Release> = []

  constructor(directory: string, processes: ProcessTable) {
    this.#path = join(directory, lockFileName)
    this.#processes = processes
  }

  async add(release: Promise<Release | undefined>): Promise<boolean> {
    const granted = await release
    if (granted !== undefined) this.#releases.push(granted)
    return granted !== undefined
  }

  /** Takes the lock file, unless a process that runs stands in it. */
  takeFile(): boolean {
    const self = this.#processes.self()
    if (createOwner(this.#path, self)) return true
    const owner = readOwner(this.#path)
    // Our own name is a leftover if the kernel let us in; without the kernel's word it means that we hold it already.
    const leftover = sameOwner(owner, self) && this.#releases.length > 0
    if (owner !== undefined && !leftover && this.#processes.isAlive(owner)) return false
    fs.writeFileSync(this.#path, JSON.stringify(self))
    return true
  }

  async drop(): Promise<void> {
    for (const release of this.#releases.splice(0).reverse()) await release()
  }

  async held(): Promise<LockOutcome> {
    await this.drop()
    const owner = readOwner(this.#path)
    return { _tag: "Held", owner: owner !== undefined && this.#processes.isAlive(owner) ? owner : undefined }
  }

  acquired(): LockOutcome {
    let released: Promise<void> | undefined
    const release = async (): Promise<void> => {
      if (sameOwner(readOwner(this.#path), this.#processes.self())) fs.rmSync(this.#path, { force: true })
      await this.drop()
    }
    return { _tag: "Acquired", lock: { release: () => (released ??= release()) } }
  }
}

const claimsOf = (platform: NodeJS.Platform, options: NodeLockOptions): ReadonlyArray<Claim> => {
  const sqlite = (options.loadSqlite ?? (() => process.getBuiltinModule("node:sqlite")))()
  return [
    ...(platform === "linux" ? [claimSocket(options.createServer ?? net.createServer)] : []),
    ...(sqlite === undefined ? [] : [claimGuard(sqlite)])
  ]
}

/**
 * The lock of a directory. Where neither claim exists (Node without SQLite, not on Linux) only the lock file and the
 * liveness of its owner are left, and two processes that find the same stale file at once could both take it.
 */
export const makeNodeLock = (options: NodeLockOptions = {}): NodeLock => {
  const platform = options.platform ?? process.platform
  const processes = options.processes ?? (platform === "linux" ? linuxProcesses() : portableProcesses())
  return async (directory) => {
    const id = identityOf(directory)
    const claim = new DirectoryClaim(directory, processes)
    try {
      for (const next of claimsOf(platform, options)) {
        if (!(await claim.add(next(directory, id)))) return await claim.held()
      }
      return claim.takeFile() ? claim.acquired() : await claim.held()
    } catch (error) {
      await claim.drop()
      throw error
    }
  }
}
