// What a command finds in the file system: everything can be read and nothing written, except that its roots are
// writable, that homes, sockets and secrets are not there, and that it has a temporary directory and a home of its own.
// A plan is a list of places; the deeper place always wins, so their order cannot be got wrong.
import { readFileSync, realpathSync, statSync } from "node:fs"
import { dirname, isAbsolute, join, relative, sep } from "node:path"
import { rootIssue } from "../WorkspaceCheck.ts"
import { SandboxRefused } from "./Errors.ts"
import { sandboxLimits } from "./Limits.ts"
import { kindOf, type Mount, visibleKind } from "./Places.ts"
import { repositoryOf } from "./Repository.ts"

export interface MountFacts {
  /** Of the user who runs the server; undefined when there is none. */
  readonly home: string | undefined
  /** Not to be seen: ECHS's own data, and what else was named. */
  readonly hidden: ReadonlyArray<string>
  /** Whether the user of the command may pass this directory. */
  readonly mayPass: (directory: string) => boolean
}

/** Where people keep compilers and interpreters: readable in the private home. */
const toolchains: ReadonlyArray<string> = [
  ...[".cargo/bin", ".rustup", ".nvm", ".fnm", ".volta", ".asdf", ".pyenv", ".rbenv", ".sdkman", ".bun/bin"],
  ...[".deno/bin", ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/fnm", "go/bin"]
]

export const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** The real path of a root that may be written to; throws SandboxRefused when it is none. */
export const rootOf = (path: string, home: string | undefined): string => {
  if (!isAbsolute(path) || path.includes("\0")) throw new SandboxRefused("not_absolute", path, "is no absolute path")
  const facts = statSync(path, { throwIfNoEntry: false })
  if (facts?.isDirectory() !== true) throw new SandboxRefused("not_there", path, "is no directory")
  const real = realpathSync(path)
  const issue = rootIssue(real, { home })
  if (issue !== undefined) throw new SandboxRefused("too_wide", path, issue)
  return real
}

/** Hides what is there; a link is hidden by hiding what it leads to. */
const hide = (path: string): ReadonlyArray<Mount> => {
  const kind = visibleKind(path)
  if (kind === undefined) return []
  if (kind === "link") {
    const target = statSync(path, { throwIfNoEntry: false })
    return target === undefined ? [] : [{ at: realpathSync(path), kind: target.isDirectory() ? "empty" : "blank" }]
  }
  return [{ at: path, kind: kind === "directory" ? "empty" : "blank" }]
}

const keep = (path: string): ReadonlyArray<Mount> => {
  const kind = visibleKind(path)
  return kind === "file" || kind === "directory" ? [{ at: path, kind: "readonly" }] : []
}

/** The directories that lead to a path, from the top. */
const waysTo = (path: string): ReadonlyArray<string> => {
  const ways: Array<string> = []
  for (let way = dirname(path); way !== dirname(way); way = dirname(way)) ways.unshift(way)
  return ways
}

/** Directories on the way to a root that its user may not pass are replaced by empty ones. */
const passages = (root: string, mayPass: MountFacts["mayPass"]): ReadonlyArray<Mount> => {
  const blocked = waysTo(root).find((way) => !mayPass(way))
  return blocked === undefined ? [] : [{ at: blocked, kind: "empty" }]
}

const homePlan = (home: string): ReadonlyArray<Mount> => [
  { at: home, kind: "private" },
  ...toolchains.flatMap((name) => keep(join(home, name)))
]

/** Names are resolved by a file that may lie among the sockets, which are hidden. */
const resolverPlan = (): ReadonlyArray<Mount> => {
  const facts = statSync("/etc/resolv.conf", { throwIfNoEntry: false })
  if (facts === undefined) return []
  const real = realpathSync("/etc/resolv.conf")
  return isInside("/run", real) ? [{ at: real, kind: "readonly" }] : []
}

/** Sockets of services, wherever they lie: a path is enough to talk to one, and a read-only one is still a path. */
const socketsOutside = (isReachable: (path: string) => boolean): ReadonlyArray<Mount> => {
  const paths = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .flatMap((line) => /^(?:\S+ +){6}\S+ (\/.*)$/.exec(line)?.[1] ?? [])
    .filter((path) => visibleKind(path) === "other" && isReachable(path))
  return [...new Set(paths)].slice(0, sandboxLimits.socketsMax).map((at) => ({ at, kind: "blank" }))
}

/** Places in the order in which they have to be made: the deeper ones later, one for each path. */
const inOrder = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> => {
  const byPath = new Map(mounts.map((mount) => [mount.at, mount]))
  const depth = ({ at }: Mount): number => at.split(sep).length
  return [...byPath.values()].sort((a, b) => depth(a) - depth(b))
}

/** The plan for a request whose roots are real paths. */
export const planMounts = (
  request: {
    readonly roots: ReadonlyArray<string>
    /** Also there, wherever it lies, but not to be changed. */
    readonly readable: ReadonlyArray<string>
    readonly network: boolean
  },
  { hidden, home, mayPass }: MountFacts
): ReadonlyArray<Mount> => {
  const { network, readable, roots } = request
  for (const place of [...roots, ...readable])
    if (hidden.some((path) => isInside(path, place)))
      throw new SandboxRefused("too_wide", place, "is hidden from commands")
  const places = ["/home", "/root", "/run", "/tmp", "/var/tmp", "/dev", "/proc", ...roots, ...hidden]
  const isReachable = (path: string): boolean =>
    !places.some((place) => isInside(place, path)) && waysTo(path).every(mayPass)
  return inOrder([
    ...socketsOutside(isReachable),
    ...["/home", "/root", "/run"].flatMap(hide),
    { at: "/tmp", kind: "private" },
    ...(kindOf("/var/tmp") === "directory" ? [{ at: "/var/tmp", kind: "private" } as const] : []),
    { at: "/dev/shm", kind: "private" },
    ...(network ? resolverPlan() : []),
    ...[...roots, ...readable].flatMap((root) => passages(root, mayPass)),
    ...(home === undefined ? [] : homePlan(home)),
    ...readable.map((at) => ({ at, kind: "readonly" }) as const),
    ...roots.map((at) => ({ at, kind: "writable" }) as const),
    ...roots.flatMap(repositoryOf),
    ...hidden.flatMap(hide)
  ])
}
