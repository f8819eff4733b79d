// What a command finds in the file system: the system and the runtimes, which it can read; its roots, which it can
// write; a temporary directory and a home of its own; and nothing else. A plan is a list of places; the deeper place
// always wins, so their order cannot be got wrong.
import { readFileSync, realpathSync } from "node:fs"
import { dirname, isAbsolute, join, resolve, sep } from "node:path"
import { type Handle, type Handles, withHandles } from "./Handle.ts"
import { outerRepositoryOf } from "./OuterRepository.ts"
import { isInside, type Mount, visibleFacts, visibleKind } from "./Places.ts"
import { repositoryOf } from "./Repository.ts"
import { SandboxRefused } from "./SandboxErrors.ts"
import { sandboxLimits } from "./SandboxLimits.ts"
import { systemPlan } from "./System.ts"
import { rootIssue } from "./WorkspaceCheck.ts"

export interface MountFacts {
  /** Of the user who runs the server; undefined when there is none. */
  readonly home: string | undefined
  /** Not to be seen: ECHS's own data, and what else was named. */
  readonly hidden: ReadonlyArray<string>
  /** Where programs of commands lie besides the system: readable wherever that is. */
  readonly runtimes: ReadonlyArray<string>
  /** In the system, but not for everybody: what this user could read there all the same. */
  readonly privates: ReadonlyArray<Mount>
}

/** Where people keep compilers and interpreters: readable in the private home. */
const toolchains: ReadonlyArray<string> = [
  ...[".cargo/bin", ".rustup", ".nvm", ".fnm", ".volta", ".asdf", ".pyenv", ".rbenv", ".sdkman", ".bun/bin"],
  ...[".deno/bin", ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/fnm", "go/bin"]
]

/**
 * Where a path leads. Links are followed only where no command can have laid them: in directories that are never given
 * to commands. Throws SandboxRefused for any other.
 */
export const realPathOf = (path: string, home: string | undefined): string =>
  withHandles((handles) => handles.resolve(resolve(path), (directory) => rootIssue(directory, { home }) !== undefined))

export const realDirectoryOf = (path: string, home: string | undefined): string => {
  const real = realPathOf(path, home)
  if (visibleKind(real) !== "directory") throw new SandboxRefused("not_there", path, "is no directory")
  return real
}

/** The real path of a root that may be written to; throws SandboxRefused when it is none. */
export const rootOf = (path: string, home: string | undefined): string => {
  if (!isAbsolute(path) || path.includes("\0")) throw new SandboxRefused("not_absolute", path, "is no absolute path")
  const real = realDirectoryOf(path, home)
  const issue = rootIssue(real, { home })
  if (issue !== undefined) throw new SandboxRefused("too_wide", path, issue)
  return real
}

/** Where a path leads; nothing when it leads nowhere. */
const realOr = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** Hides what is there; a link is hidden by hiding what it leads to. */
const hide = (path: string): ReadonlyArray<Mount> => {
  const at = visibleKind(path) === "link" ? realOr(path) : path
  const file = at === undefined ? undefined : visibleFacts(at)
  return at === undefined || file === undefined
    ? []
    : [{ at, kind: file.kind === "directory" ? "empty" : "blank", file }]
}

/** A place that is as it is outside, and not to be changed; nothing when a link leads there. */
const keep = (handles: Handles, path: string): ReadonlyArray<Mount> => {
  try {
    const file = handles.walk(dirname(path)).look(path.slice(path.lastIndexOf(sep) + 1))
    return file?.kind === "file" || file?.kind === "directory" ? [{ at: path, kind: "readonly", file }] : []
  } catch (error) {
    if (error instanceof SandboxRefused) return []
    throw error
  }
}

const homePlan = (handles: Handles, home: string): ReadonlyArray<Mount> => [
  { at: home, kind: "private" },
  ...toolchains.flatMap((name) => (visibleKind(join(home, name)) === undefined ? [] : keep(handles, join(home, name))))
]

/** Names are resolved by a file that may lie outside of what is there. */
const resolverPlan = (): ReadonlyArray<Mount> => {
  const real = realOr("/etc/resolv.conf")
  return real !== undefined && isInside("/run", real) ? [{ at: real, kind: "system" }] : []
}

/** Sockets of services, wherever they lie: a path is enough to talk to one, and a read-only one is still a path. */
const socketsAt = (isReachable: (path: string) => boolean): ReadonlyArray<Mount> => {
  const paths = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .flatMap((line) => /^(?:\S+ +){6}\S+ (\/.*)$/.exec(line)?.[1] ?? [])
    .filter((path) => isReachable(path) && visibleKind(path) === "other")
  return [...new Set(paths)].slice(0, sandboxLimits.socketsMax).flatMap((at): ReadonlyArray<Mount> => {
    const file = visibleFacts(at)
    return file === undefined ? [] : [{ at, kind: "blank", file }]
  })
}

/** Places in the order in which they have to be made: the deeper ones later, one for each path. */
const inOrder = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> => {
  const byPath = new Map(mounts.map((mount) => [mount.at, mount]))
  const depth = ({ at }: Mount): number => at.split(sep).length
  return [...byPath.values()].sort((a, b) => depth(a) - depth(b))
}

const writable = (root: Handle): ReadonlyArray<Mount> => [
  { at: root.path, kind: "writable", file: root.facts },
  ...repositoryOf(root)
]

/** Readable places of a request have to be there; runtimes of the machine may be gone. */
const readablePlan = (handles: Handles, at: string): Mount => {
  const [found] = keep(handles, at)
  if (found === undefined) throw new SandboxRefused("link", at, "is a link, and cannot be given to commands")
  return found
}

interface Wish {
  readonly roots: ReadonlyArray<string>
  /** Also there, wherever it lies, but not to be changed. */
  readonly readable: ReadonlyArray<string>
  readonly network: boolean
  /** Where the command starts. */
  readonly directory: string
  /** Only git runs, and starts nothing of the repository. */
  readonly gitAlone: boolean
  /** Roots that lie where ECHS keeps its own: for git alone. */
  readonly gits?: ReadonlyArray<string>
}

/** What lies outside of the repositories of the roots, and of the directory where that is none of them. */
const outerRepositories = (handles: Handles, wish: Wish, { hidden, home }: MountFacts): ReadonlyArray<Mount> => {
  const { directory, gitAlone, readable, roots } = wish
  const isHidden = (path: string): boolean => hidden.some((one) => isInside(one, path))
  const of = (path: string, access: "writable" | "readonly"): ReadonlyArray<Mount> =>
    outerRepositoryOf(handles, handles.walk(path), { access, gitAlone, home, isHidden })
  const found = [
    ...roots.flatMap((root) => of(root, "writable")),
    ...(readable.includes(directory) ? of(directory, "readonly") : [])
  ]
  return found.filter(({ at }) => ![...roots, ...readable].some((place) => isInside(place, at)))
}

const planned = (handles: Handles, wish: Wish, facts: MountFacts): ReadonlyArray<Mount> => {
  const { network, readable, roots } = wish
  const { hidden, home, privates, runtimes } = facts
  const isOwn = (path: string): boolean => roots.some((root) => isInside(root, path))
  const shown = [
    ...systemPlan(),
    ...runtimes.filter((path) => !isOwn(path)).flatMap((path) => keep(handles, path)),
    ...(home === undefined ? [] : homePlan(handles, home)),
    ...readable.map((path) => readablePlan(handles, path))
  ]
  const outer = outerRepositories(handles, wish, facts)
  const sources = [...shown, ...outer].filter(({ kind }) => kind === "system" || kind === "readonly")
  const isShown = (path: string): boolean => !isOwn(path) && sources.some(({ at }) => isInside(at, path))
  return inOrder([
    ...privates,
    ...socketsAt(isShown),
    ...["/tmp", "/var/tmp", "/dev/shm"].map((at) => ({ at, kind: "private" }) as const),
    ...(network ? resolverPlan() : []),
    ...shown,
    ...outer,
    ...roots.flatMap((root) => writable(handles.walk(root))),
    ...hidden.filter((path) => isShown(path) || isOwn(path)).flatMap(hide)
  ])
}

/** The plan for a request whose roots are real paths. */
export const planMounts = (wish: Wish, facts: MountFacts): ReadonlyArray<Mount> => {
  for (const place of [...wish.roots, ...wish.readable])
    if (facts.hidden.some((path) => isInside(path, place)) && wish.gits?.includes(place) !== true)
      throw new SandboxRefused("too_wide", place, "is hidden from commands")
  return withHandles((handles) => planned(handles, wish, facts))
}
