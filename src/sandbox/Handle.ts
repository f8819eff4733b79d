// Directories held open, and what lies in them by name: each step of a path is taken from a descriptor and follows no
// link, so that what was looked at is what is used, whatever happens to the names meanwhile. Node has no openat; a path
// below /proc/self/fd begins at the descriptor and is the same.
import { randomUUID } from "node:crypto"
import {
  type BigIntStats,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  writeSync
} from "node:fs"
import { dirname, join } from "node:path"
import { SandboxRefused } from "./SandboxErrors.ts"

/** Opens a name without reading what it names; the same number on every machine we know. */
const O_PATH = 0x20_0000
const directoryFlags = O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY

/** As many as the kernel follows. */
const linksMax = 40

export type FileKind = "file" | "directory" | "link" | "other"

/** What a name led to when it was looked at. */
export interface FileFacts {
  readonly kind: FileKind
  readonly dev: bigint
  readonly ino: bigint
  /** The number of a file is given to the next one soon; its birth tells them apart. */
  readonly birth: bigint
  readonly uid: number
  readonly gid: number
  readonly mode: number
  readonly size: number
}

const kindOf = (facts: BigIntStats): FileKind => {
  if (facts.isSymbolicLink()) return "link"
  return facts.isDirectory() ? "directory" : facts.isFile() ? "file" : "other"
}

export const factsOf = (facts: BigIntStats): FileFacts => ({
  kind: kindOf(facts),
  dev: facts.dev,
  ino: facts.ino,
  birth: facts.birthtimeNs,
  uid: Number(facts.uid),
  gid: Number(facts.gid),
  mode: Number(facts.mode),
  size: Number(facts.size)
})

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unknown"

const refusal = (path: string, error: unknown): SandboxRefused => {
  const code = codeOf(error)
  if (code === "ENOENT") return new SandboxRefused("not_there", path, "is not there")
  if (code === "ELOOP" || code === "ENOTDIR")
    return new SandboxRefused("link", path, "is a link or no directory, and cannot be protected")
  return new SandboxRefused("unreadable", path, `cannot be looked at (${code})`)
}

/** A directory that is held open until its `Handles` are closed. */
export class Handle {
  readonly path: string
  private known: FileFacts | undefined
  private readonly descriptor: number
  private readonly all: Handles

  constructor(all: Handles, descriptor: number, path: string) {
    this.all = all
    this.descriptor = descriptor
    this.path = path
  }

  get facts(): FileFacts {
    this.known ??= factsOf(fstatSync(this.descriptor, { bigint: true }))
    return this.known
  }

  /** What a name in it leads to, without following a link; undefined when there is nothing. */
  look(name: string): FileFacts | undefined {
    try {
      const facts = lstatSync(this.at(name), { throwIfNoEntry: false, bigint: true })
      return facts === undefined ? undefined : factsOf(facts)
    } catch (error) {
      throw refusal(join(this.path, name), error)
    }
  }

  /** A directory in it; throws SandboxRefused when it is none, a link included. */
  enter(name: string): Handle {
    return this.all.open(this.at(name), join(this.path, name))
  }

  /** Where a link in it leads. */
  target(name: string): string {
    try {
      return readlinkSync(this.at(name))
    } catch (error) {
      throw refusal(join(this.path, name), error)
    }
  }

  names(): ReadonlyArray<string> {
    try {
      return readdirSync(this.at("."))
    } catch (error) {
      throw refusal(this.path, error)
    }
  }

  /** The beginning of a file in it; throws SandboxRefused for a link. */
  read(name: string, bytesMax: number): string {
    let descriptor: number | undefined
    try {
      descriptor = openSync(this.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      const bytes = Buffer.alloc(bytesMax)
      return bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, bytesMax, 0))
    } catch (error) {
      throw refusal(join(this.path, name), error)
    } finally {
      if (descriptor !== undefined) closeSync(descriptor)
    }
  }

  /** Makes a file that is there whole or not at all, and belongs to whoever owns the directory. */
  makeFile(name: string, text: string): boolean {
    const draft = this.at(`${name}.${randomUUID()}`)
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
    return this.attempt(draft, () => {
      const descriptor = openSync(draft, flags, 0o644)
      try {
        if (text !== "") writeSync(descriptor, text)
        this.giveAway(descriptor)
      } finally {
        closeSync(descriptor)
      }
      this.settle(draft, name)
    })
  }

  makeDirectory(name: string): boolean {
    return this.attempt(undefined, () => {
      mkdirSync(this.at(name), 0o755)
      const descriptor = openSync(this.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY)
      try {
        this.giveAway(descriptor)
      } finally {
        closeSync(descriptor)
      }
    })
  }

  /** Gives the draft its name, unless somebody else has made one meanwhile. */
  private settle(draft: string, name: string): void {
    try {
      linkSync(draft, this.at(name))
    } catch (error) {
      // Some file systems have no second names.
      if (codeOf(error) !== "EEXIST") renameSync(draft, this.at(name))
    }
    rmSync(draft, { force: true })
  }

  private attempt(draft: string | undefined, work: () => void): boolean {
    try {
      work()
      return true
    } catch {
      // Where we cannot write, neither can a command: whoever asked goes without it.
      if (draft !== undefined) rmSync(draft, { force: true })
      return false
    }
  }

  /** By descriptor: a name could lead to somebody else's file by now. */
  private giveAway(descriptor: number): void {
    if (process.getuid?.() === 0) fchownSync(descriptor, this.facts.uid, this.facts.gid)
  }

  private at(name: string): string {
    return `/proc/self/fd/${this.descriptor}/${name}`
  }
}

/** All directories that one plan holds open. */
export class Handles {
  private readonly descriptors: Array<number> = []

  /** A directory by its real path, component by component. */
  walk(path: string): Handle {
    let handle = this.open("/", "/")
    for (const name of path.split("/")) if (name !== "" && name !== ".") handle = handle.enter(name)
    return handle
  }

  /**
   * Where a path leads, following only links in directories that are trusted; throws SandboxRefused for any other, and
   * when there is nothing.
   */
  resolve(path: string, isTrusted: (directory: string) => boolean): string {
    const names = path.split("/")
    let handle = this.open("/", "/")
    let links = 0
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      if (name === "" || name === ".") continue
      const way = join(handle.path, name)
      const facts = name === ".." ? undefined : handle.look(name)
      if (name !== ".." && facts === undefined) throw new SandboxRefused("not_there", path, "is not there")
      if (facts?.kind === "link") {
        if (!isTrusted(handle.path))
          throw new SandboxRefused("link", path, `leads through the link ${way}; name the directory itself`)
        links += 1
        if (links > linksMax) throw new SandboxRefused("link", path, "leads through too many links")
        const target = handle.target(name)
        names.unshift(...target.split("/"))
        if (target.startsWith("/")) handle = this.open("/", "/")
      } else if (name === "..") handle = this.walk(dirname(handle.path))
      else if (facts?.kind === "directory") handle = handle.enter(name)
      else if (names.every((rest) => rest === "" || rest === ".")) return way
      else throw new SandboxRefused("not_there", path, "is no directory")
    }
    return handle.path
  }

  open(way: string, path: string): Handle {
    try {
      const descriptor = openSync(way, directoryFlags)
      this.descriptors.push(descriptor)
      return new Handle(this, descriptor, path)
    } catch (error) {
      throw refusal(path, error)
    }
  }

  close(): void {
    for (const descriptor of this.descriptors.splice(0)) closeSync(descriptor)
  }
}

/** Works with directories held open, and lets go of them. */
export const withHandles = <A>(work: (handles: Handles) => A): A => {
  const handles = new Handles()
  try {
    return work(handles)
  } finally {
    handles.close()
  }
}
