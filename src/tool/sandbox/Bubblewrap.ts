// Commands in bubblewrap: every namespace of their own, the planned file system, a filter on system calls, no
// privileges and none to gain, limits that each of them takes on before it starts. The arguments travel through a
// descriptor, where no list of processes shows them.
import { existsSync, realpathSync, statSync } from "node:fs"
import { isTooWide } from "../WorkspaceCheck.ts"
import { SandboxRefused } from "./Errors.ts"
import { type Identity, launch, launchClosing, type Staged, stagedAt } from "./Launcher.ts"
import { outOfMemoryScore, sandboxLimits } from "./Limits.ts"
import { isInside, planMounts, rootOf } from "./Mounts.ts"
import type { Mount } from "./Places.ts"
import type { LimitInForce, SandboxedCommand, SandboxRequest } from "./Port.ts"
import type { Machine } from "./SystemCalls.ts"

export interface BubblewrapParts {
  readonly bwrap: string
  readonly machine: Machine
  /** The filter on system calls; without one, namespaces inside the sandbox are switched off instead. */
  readonly filter: Uint8Array | undefined
  /** How to become somebody else first; undefined when the server has no privileges to lose, or none can be dropped. */
  readonly drop: { readonly perl: string; readonly identity: Identity } | undefined
  /** Closes descriptors that this process was left with by whoever started it; undefined when there are none. */
  readonly closer: { readonly perl: string } | undefined
  readonly home: string | undefined
  readonly hidden: ReadonlyArray<string>
}

/** Whom the user namespace shows to a command that runs for a root server. */
const nobody = 65_534

const KIB = 1_024

/** Takes the limits on, then becomes the command. Options differ between shells for the number of processes alone. */
export const limitScript = [
  `echo ${outOfMemoryScore} >/proc/self/oom_score_adj`,
  "ulimit -c 0",
  `ulimit -n ${sandboxLimits.openFilesMax}`,
  `ulimit -f ${sandboxLimits.fileBytesMax / 512}`,
  `ulimit -t ${sandboxLimits.processorSecondsMax}`,
  `ulimit -d ${sandboxLimits.memoryBytesMax / KIB}`
]
  .map((line) => `${line} 2>/dev/null`)
  .join("; ")

const processLimit = `{ ulimit -u ${sandboxLimits.processesMax} || ulimit -p ${sandboxLimits.processesMax}; } 2>/dev/null`

export const limitsInForce: ReadonlyArray<LimitInForce> = [
  { name: "processes", value: sandboxLimits.processesMax, per: "sandbox" },
  { name: "temporary bytes", value: sandboxLimits.temporaryBytesMax, per: "sandbox" },
  { name: "memory bytes", value: sandboxLimits.memoryBytesMax, per: "process" },
  { name: "processor seconds", value: sandboxLimits.processorSecondsMax, per: "process" },
  { name: "open files", value: sandboxLimits.openFilesMax, per: "process" },
  { name: "file bytes", value: sandboxLimits.fileBytesMax, per: "file" }
]

/** Who the command runs as for a root server: the owner of its first root, unless that is root as well. */
const identityFor = (roots: ReadonlyArray<string>, fallback: Identity): Identity => {
  const [first] = roots
  if (first === undefined) return fallback
  const { gid, uid } = statSync(first)
  return uid === 0 || gid === 0 ? fallback : { uid, gid }
}

const mayPassAs =
  ({ gid, uid }: Identity) =>
  (directory: string): boolean => {
    const facts = statSync(directory)
    const bit = facts.uid === uid ? 0o100 : facts.gid === gid ? 0o010 : 0o001
    return (facts.mode & bit) !== 0
  }

/** Paths that only root can reach are reached by root, before it steps down. */
const stage = (
  mounts: ReadonlyArray<Mount>,
  roots: ReadonlyArray<string>,
  identity: Identity
): ReadonlyArray<Staged> => {
  const stagedRoots = roots.map((path): Staged => {
    const { gid, uid } = statSync(path)
    return uid === identity.uid && gid === identity.gid ? { path } : { path, owner: { uid, gid } }
  })
  const others = mounts.filter(({ at, kind }) => kind === "readonly" && !roots.some((root) => isInside(root, at)))
  return [...stagedRoots, ...others.map(({ at }) => ({ path: at }))]
}

/** Where the outside of a mount is found: as it is, or below the place where its root was staged. */
const sourceOf = (path: string, staged: ReadonlyArray<Staged>): string => {
  const index = staged.findIndex((candidate) => isInside(candidate.path, path))
  const found = staged[index]
  return found === undefined ? path : `${stagedAt(index)}${path.slice(found.path.length)}`
}

const mountArguments = (mount: Mount, staged: ReadonlyArray<Staged>): ReadonlyArray<string> => {
  const { at, kind } = mount
  if (kind === "writable") return ["--bind", sourceOf(at, staged), at]
  if (kind === "readonly") return ["--ro-bind", sourceOf(at, staged), at]
  if (kind === "blank") return ["--ro-bind", "/dev/null", at]
  const bytes = kind === "private" ? sandboxLimits.temporaryBytesMax : sandboxLimits.hiddenBytesMax
  return ["--size", String(bytes), "--tmpfs", at]
}

const checkText = (request: SandboxRequest): void => {
  const texts = [...request.argv, ...Object.entries(request.environment).flat()]
  if (request.argv.length === 0 || texts.some((text) => text.includes("\0")))
    throw new SandboxRefused("bad_text", request.argv[0] ?? "", "is no command: it is empty or holds a NUL character")
}

const directoryOf = (path: string): string => {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SandboxRefused("not_there", path, "is no directory")
  return realpathSync(path)
}

interface Planned {
  readonly mounts: ReadonlyArray<Mount>
  readonly directory: string
  readonly staged: ReadonlyArray<Staged>
  readonly identity: Identity | undefined
}

const plan = (parts: BubblewrapParts, request: SandboxRequest): Planned => {
  checkText(request)
  if (request.writable.length > sandboxLimits.rootsMax)
    throw new SandboxRefused("too_many", request.directory, `more than ${sandboxLimits.rootsMax} roots`)
  const roots = [...new Set(request.writable.map((path) => rootOf(path, parts.home)))]
  const directory = directoryOf(request.directory)
  const isOwn = (path: string): boolean => roots.some((root) => isInside(root, path)) || isTooWide(path)
  const others = (request.readable ?? []).filter((path) => existsSync(path)).map((path) => realpathSync(path))
  const readable = [...new Set([directory, ...others])].filter((path) => !isOwn(path))
  const places = [...roots, ...readable.filter((path) => path === directory)]
  const identity = parts.drop === undefined ? undefined : identityFor(places, parts.drop.identity)
  const mayPass = identity === undefined ? () => true : mayPassAs(identity)
  const mounts = planMounts(
    { roots, readable, network: request.network },
    { home: parts.home, hidden: parts.hidden, mayPass }
  )
  return { mounts, identity, staged: identity === undefined ? [] : stage(mounts, places, identity), directory }
}

const insideArguments = (
  parts: BubblewrapParts,
  request: SandboxRequest,
  { directory, identity, mounts, staged }: Planned,
  filterDescriptor: number
): ReadonlyArray<string> => [
  ...["--unshare-all", "--unshare-user"],
  ...(request.network ? ["--share-net"] : []),
  ...["--die-with-parent", "--new-session", "--cap-drop", "ALL"],
  ...(identity === undefined ? [] : ["--uid", String(nobody), "--gid", String(nobody)]),
  "--clearenv",
  ...Object.entries({ ...request.environment, HOME: parts.home ?? "/tmp", TMPDIR: "/tmp" }).flatMap(([name, value]) => [
    "--setenv",
    name,
    value
  ]),
  ...["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"],
  ...mounts.flatMap((mount) => mountArguments(mount, staged)),
  ...["/dev", ...mounts.filter(({ kind }) => kind === "empty").map(({ at }) => at)].flatMap((at) => [
    "--remount-ro",
    at
  ]),
  ...(parts.filter === undefined ? ["--disable-userns"] : ["--seccomp", String(filterDescriptor)]),
  ...["--chdir", directory]
]

/** The command line for a request; throws SandboxRefused when it cannot be held. */
export const bubblewrapped = (parts: BubblewrapParts, request: SandboxRequest): SandboxedCommand => {
  const planned = plan(parts, request)
  const argumentsDescriptor = request.firstDescriptor ?? 3
  const inside = insideArguments(parts, request, planned, argumentsDescriptor + 1)
  const command = [
    ...[parts.bwrap, "--args", String(argumentsDescriptor), "--"],
    ...["/bin/sh", "-c", `${limitScript}; ${processLimit}; exec "$@"`, "sh", ...request.argv]
  ]
  const { identity, staged } = planned
  const descriptors = [
    new TextEncoder().encode(inside.map((argument) => `${argument}\0`).join("")),
    ...(parts.filter === undefined ? [] : [parts.filter])
  ]
  const descriptorMax = argumentsDescriptor + descriptors.length - 1
  const begin = (): Pick<SandboxedCommand, "file" | "args"> => {
    const common = { machine: parts.machine, descriptorMax, command }
    if (identity !== undefined && parts.drop !== undefined)
      return launch({ ...common, perl: parts.drop.perl, identity, staged })
    if (parts.closer !== undefined) return launchClosing({ ...common, perl: parts.closer.perl })
    return { file: parts.bwrap, args: command.slice(1) }
  }
  const mounted = planned.mounts.map(({ at }) => at)
  return { ...begin(), directory: "/", environment: {}, descriptors, mounted, isNamespace: true }
}
