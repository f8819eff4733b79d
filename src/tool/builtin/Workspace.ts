// The workspace of a conversation, and the only way to its files. A path is walked part by part from the root, each part
// opened relative to the directory before it and never through a link; links are read and walked the same way, so none
// can lead out, however often they are swapped meanwhile. Where the system has no such handles, paths are checked before
// and after instead.

import { constants, existsSync, type Stats } from "node:fs"
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises"
import { isAbsolute, join, relative, sep } from "node:path"
import { elementAt } from "../../rune/Elements.ts"
import type { WorkspaceCheck, WorkspaceChoice } from "../../sandbox/WorkspaceCheck.ts"
import { ToolFailure } from "./BuiltinErrors.ts"
import { builtinLimits } from "./BuiltinLimits.ts"

export const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** How directories are kept from being swapped: by open handles, or by looking before and after. */
export type Means = "handles" | "looking"

const bestMeans: Means = process.platform === "linux" && existsSync("/proc/self/fd") ? "handles" : "looking"
const { O_DIRECTORY = 0, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = constants

/** A directory, held open where the system allows it. */
export interface HeldDirectory {
  /** A path to it that nobody can redirect. */
  readonly at: string
  readonly release: () => Promise<void>
}

const holdByHandle = async (at: string): Promise<HeldDirectory & { readonly handle: FileHandle }> => {
  const handle = await open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  return { at: `/proc/self/fd/${handle.fd}`, release: () => handle.close(), handle }
}

const holdByLooking = async (at: string): Promise<HeldDirectory> => {
  const facts = await lstat(at)
  if (!facts.isDirectory()) throw Object.assign(new Error(`${at} is no directory`), { code: "ENOTDIR" })
  return { at, release: async () => undefined }
}

interface Step extends HeldDirectory {
  readonly name: string
}

export type Kind = "file" | "directory" | "other" | "missing"

/** What a path leads to. */
export interface Located {
  /** As it is told to people: relative to the root, without links, with forward slashes. */
  readonly shown: string
  /** The directory itself, or the one that holds the file. */
  readonly directory: string
  /** Name inside that directory; nothing when the path leads to the directory itself. */
  readonly name: string | undefined
  /** Path to open; for a file its last part must not be followed. */
  readonly at: string
  readonly kind: Kind
  readonly facts: Stats | undefined
  /** Throws when the directory is no longer where it was found. */
  readonly confirm: () => Promise<void>
}

/** What a path leads to, and what lets go of it. */
interface Held {
  readonly located: Located
  readonly release: () => Promise<void>
}

export interface LocateOptions {
  readonly for: "reading" | "writing"
  /** Makes the directories that are missing on the way. */
  readonly makeDirectories?: boolean
}

const outside = (path: string): ToolFailure =>
  new ToolFailure("outside_workspace", `${path} is not inside the workspace`)

const missing = (error: unknown): undefined => {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
  throw error
}

const kindOf = (facts: Stats | undefined): Kind => {
  if (facts === undefined) return "missing"
  if (facts.isFile()) return "file"
  return facts.isDirectory() ? "directory" : "other"
}

const partsOf = (path: string): ReadonlyArray<string> => path.split(sep === "\\" ? /[\\/]/ : "/")

/** Git writes there, and what is written there runs; nobody else does. */
const isGitsOwn = (shown: string): boolean => shown.split("/").some((part) => part.toLowerCase() === ".git")

class Walk {
  private readonly workspace: Workspace
  private readonly path: string
  private readonly options: LocateOptions
  private readonly steps: Array<Step>
  private readonly rest: Array<string>
  private turns = 0

  constructor(workspace: Workspace, path: string, parts: ReadonlyArray<string>, options: LocateOptions) {
    this.workspace = workspace
    this.path = path
    this.options = options
    this.steps = []
    this.rest = [...parts]
  }

  async run(): Promise<Located> {
    await this.enter(this.workspace.root, "")
    // The directory that was checked, and not one that was put in its place.
    if ((await this.workspace.realPath(this.current.at)) !== this.workspace.root)
      throw new ToolFailure("no_workspace", "the workspace was moved while it was being worked on")
    for (;;) {
      const part = this.rest.shift()
      if (part === undefined) return this.located(undefined, await stat(this.current.at))
      if (this.steps.length > builtinLimits.pathPartsMax || this.rest.length > 4 * builtinLimits.pathPartsMax)
        throw new ToolFailure("file_error", `${this.path}: the path has too many parts`)
      if (part === "" || part === ".") continue
      if (part === "..") await this.leave()
      else {
        const found = await this.follow(part)
        if (found !== undefined) return found
      }
    }
  }

  async close(): Promise<void> {
    for (const step of this.steps.splice(0)) await step.release()
  }

  private get current(): Step {
    return elementAt(this.steps, this.steps.length - 1)
  }

  private get isLast(): boolean {
    return this.rest.every((part) => part === "" || part === ".")
  }

  private async enter(at: string, name: string): Promise<void> {
    const { at: held, release } = await this.workspace.hold(at)
    this.steps.push({ name, at: held, release })
    this.workspace.forbidOwnData(this.placeOf(undefined), this.path)
  }

  private async leave(): Promise<void> {
    if (this.steps.length === 1) throw outside(this.path)
    await this.steps.pop()?.release()
  }

  /** Takes one part; the answer when it was the last. */
  private async follow(part: string): Promise<Located | undefined> {
    const at = join(this.current.at, part)
    const facts = await lstat(at).catch(missing)
    if (facts === undefined) return this.notThere(part, at)
    if (facts.isSymbolicLink()) return this.redirect(part, await readlink(at).catch(missing))
    if (facts.isDirectory()) return this.descend(part, at)
    if (!this.isLast) throw new ToolFailure("file_error", `${this.path}: ${part} is no directory`)
    return this.located(part, facts)
  }

  private async notThere(part: string, at: string): Promise<Located | undefined> {
    if (this.isLast) return this.located(part, undefined)
    this.protect(this.placeOf(part))
    if (this.options.makeDirectories !== true) return this.located(this.missingPlace(part), undefined)
    await mkdir(at).then(
      () => this.workspace.giveAway(at, this.current.at),
      (error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error
      }
    )
    this.again(part)
    return undefined
  }

  /** Where nothing is, there is nothing to go up from. */
  private missingPlace(part: string): string {
    if (this.rest.includes(".."))
      throw new ToolFailure("file_error", `${this.path}: there is no such file or directory`)
    return [part, ...this.rest.filter((one) => one !== "" && one !== ".")].join("/")
  }

  private async descend(part: string, at: string): Promise<undefined> {
    try {
      await this.enter(at, part)
    } catch (error) {
      // It was replaced since it was looked at: look again.
      const { code = "" } = error as NodeJS.ErrnoException
      if (!["ELOOP", "ENOTDIR", "ENOENT"].includes(code)) throw error
      this.again(part)
    }
  }

  private async redirect(part: string, target: string | undefined): Promise<undefined> {
    if (target === undefined) return this.again(part)
    this.spend()
    if (isAbsolute(target)) {
      const { root } = this.workspace
      if (!isInside(root, target)) throw outside(this.path)
      for (const step of this.steps.splice(1)) await step.release()
      this.rest.unshift(...partsOf(relative(root, target)))
    } else this.rest.unshift(...partsOf(target))
  }

  private again(part: string): undefined {
    this.spend()
    this.rest.unshift(part)
  }

  /** Links and replacements both send the walk back; neither may do so for ever. */
  private spend(): void {
    this.turns += 1
    if (this.turns > builtinLimits.linksMax)
      throw new ToolFailure("file_error", `${this.path}: there are too many links on the way`)
  }

  /** Relative to the root, with forward slashes. */
  private placeOf(name: string | undefined): string {
    const names = this.steps.slice(1).map((step) => step.name)
    return [...names, ...(name === undefined ? [] : [name])].join("/")
  }

  private protect(shown: string): void {
    if (this.options.for === "writing") this.workspace.forbidWriting(shown, this.path)
    this.workspace.forbidOwnData(shown, this.path)
  }

  private located(name: string | undefined, facts: Stats | undefined): Located {
    const shown = this.placeOf(name)
    this.protect(shown)
    const { at } = this.current
    const real = join(this.workspace.root, ...this.steps.slice(1).map((step) => step.name))
    return {
      shown: shown === "" ? "." : shown,
      directory: at,
      name,
      at: name === undefined ? at : join(at, name),
      kind: kindOf(facts),
      facts,
      confirm: async () => {
        const now = await this.workspace.realPath(at)
        if (now !== real) throw new ToolFailure("file_changed", `${this.path} was moved while it was being worked on`)
      }
    }
  }
}

export interface WorkspaceOptions {
  /** Directories that no tool reads or writes: what ECHS itself keeps. */
  readonly ownDirectories?: ReadonlyArray<string>
  /** The best there is, unless told. */
  readonly means?: Means
  /** Which directories can be workspaces; all of them, unless told. */
  readonly check?: WorkspaceCheck
}

export class Workspace {
  /** Without links. */
  readonly root: string
  private readonly given: string
  readonly ownDirectories: ReadonlyArray<string>
  private readonly means: Means

  private constructor(root: string, given: string, options: Required<Omit<WorkspaceOptions, "check">>) {
    this.root = root
    this.given = given
    this.ownDirectories = options.ownDirectories
    this.means = options.means
  }

  static async open(choice: WorkspaceChoice, options: WorkspaceOptions = {}): Promise<Workspace> {
    const { workspace: path } = choice
    if (path === undefined) throw new ToolFailure("no_workspace", "this conversation has no workspace")
    const root = await realpath(path).catch(() => undefined)
    const isThere = root !== undefined && (await stat(root).catch(() => undefined))?.isDirectory() === true
    if (!isThere) throw new ToolFailure("no_workspace", `the workspace ${path} is not there`)
    // By the path that is used from here on: the one that was given may lead elsewhere the next time.
    const issue = options.check?.({ ...choice, workspace: root })
    if (issue !== undefined) throw new ToolFailure("workspace_refused", issue)
    const own = await Promise.all(
      (options.ownDirectories ?? []).map((directory) => realpath(directory).catch(() => directory))
    )
    return new Workspace(root, path, { ownDirectories: own, means: options.means ?? bestMeans })
  }

  /** A directory that stays the same one while it is held; refuses what is none, or a link to one. */
  hold(at: string): Promise<HeldDirectory> {
    return this.means === "handles" ? holdByHandle(at) : holdByLooking(at)
  }

  /** Where a held directory is now; nothing when it is gone. */
  realPath(at: string): Promise<string | undefined> {
    return (this.means === "handles" ? readlink(at) : realpath(at)).catch(missing)
  }

  /**
   * A directory made by root belongs to whoever owns the one it is in: commands run as that user. By its handle, so
   * that nothing else can be given away in its place.
   */
  async giveAway(at: string, parent: string): Promise<void> {
    if (this.means !== "handles" || process.getuid?.() !== 0) return
    const { gid, uid } = await stat(parent)
    if (uid === 0) return
    const made = await holdByHandle(at).catch(() => undefined)
    await made?.handle.chown(uid, gid).catch(() => undefined)
    await made?.release()
  }

  /** Finds what a path of the model leads to; it can be relied on until it is released. */
  async find(path: string, options: LocateOptions): Promise<Held> {
    const walk = new Walk(this, path, this.partsOf(path), options)
    const release = (): Promise<void> => walk.close()
    try {
      return { located: await walk.run(), release }
    } catch (error) {
      await release()
      throw error
    }
  }

  /** Finds what a path of the model leads to; it can be relied on until the work is done. */
  async locate<A>(path: string, options: LocateOptions, work: (located: Located) => Promise<A>): Promise<A> {
    const { located, release } = await this.find(path, options)
    try {
      return await work(located)
    } finally {
      await release()
    }
  }

  private partsOf(path: string): ReadonlyArray<string> {
    if (path === "" || path.includes("\0")) throw new ToolFailure("invalid_arguments", "a path is text without NUL")
    if (!isAbsolute(path)) return partsOf(path)
    const from = [this.root, this.given].find((root) => isInside(root, path))
    if (from === undefined) throw outside(path)
    return partsOf(relative(from, path))
  }

  forbidWriting(shown: string, path: string): void {
    if (isGitsOwn(shown))
      throw new ToolFailure("protected_path", `${path} belongs to git, and is not written by other tools`)
  }

  /** Nothing ECHS keeps is reached by a tool: its token is there. */
  forbidOwnData(shown: string, path: string): void {
    if (this.isOwnData(shown)) throw new ToolFailure("protected_path", `${path} belongs to ECHS itself`)
  }

  /** Directories of ECHS itself that lie in the workspace. */
  ownBelow(): ReadonlyArray<string> {
    return this.ownDirectories.filter((own) => isInside(this.root, own))
  }

  /** The path is relative to the root. */
  isOwnData(shown: string): boolean {
    const real = join(this.root, shown)
    return this.ownDirectories.some((own) => isInside(own, real))
  }
}

/** How a file is opened for reading: never through a link, and never held up by a pipe. */
export const readFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
