// Commands in bubblewrap: every namespace of their own, the planned file system, a filter on system calls, no
// privileges and none to gain, limits that each of them takes on before it starts. The arguments travel through a
// descriptor, where no list of processes shows them.
import { existsSync } from "node:fs"
import { differenceOf } from "./Compare.ts"
import { type Identity, type LauncherMode, launch, launcherExitCode } from "./Launcher.ts"
import { goWord } from "./LaunchGate.ts"
import { type Layout, layOut, linkArguments, sealArguments } from "./Layout.ts"
import { planMounts, realDirectoryOf, realPathOf, rootOf } from "./Mounts.ts"
import { isInside, type Mount, visibleFacts } from "./Places.ts"
import type { Privates, Reader } from "./Privates.ts"
import { SandboxRefused } from "./SandboxErrors.ts"
import { outOfMemoryScore, sandboxLimits } from "./SandboxLimits.ts"
import type { LimitInForce, SandboxedCommand, SandboxRequest } from "./SandboxPort.ts"
import type { Machine } from "./SystemCalls.ts"
import { isTooWide } from "./WorkspaceCheck.ts"

export interface BubblewrapParts {
  readonly bwrap: string
  readonly machine: Machine
  /** The filter on system calls; without one, namespaces inside the sandbox are switched off instead. */
  readonly filter: Uint8Array | undefined
  readonly perl: string
  /** Whom to become first; undefined when the server has no privileges to lose, or keeps them. */
  readonly drop: Identity | undefined
  readonly home: string | undefined
  readonly runtimes: ReadonlyArray<string>
  readonly privates: Privates
  readonly hidden: ReadonlyArray<string>
  /** What ECHS keeps of workspaces: hidden from commands, and written by nothing but git on its own. */
  readonly gitPlace?: string | undefined
}

/** Whom the user namespace shows to a command that runs for a root server. */
const nobody = 65_534

const KIB = 1_024

/** A repository above the workspace is a mount of its own. */
const acrossMounts = { GIT_DISCOVERY_ACROSS_FILESYSTEM: "1" }

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
const identityFor = (owner: Identity | undefined, fallback: Identity): Identity => {
  if (owner === undefined) return fallback
  const { gid, uid } = owner
  return uid === 0 || gid === 0 ? fallback : { uid, gid }
}

const checkText = (request: SandboxRequest): void => {
  const texts = [...request.argv, ...Object.entries(request.environment).flat()]
  if (request.argv.length === 0 || texts.some((text) => text.includes("\0")))
    throw new SandboxRefused("bad_text", request.argv[0] ?? "", "is no command: it is empty or holds a NUL character")
}

interface Planned {
  readonly mounts: ReadonlyArray<Mount>
  readonly layout: Layout
  readonly directory: string
  readonly identity: Identity | undefined
}

/** Who reads, as far as it can be known before the plan is made. */
const readerOf = (identity: Identity | undefined): Reader =>
  identity === undefined
    ? { uid: process.getuid?.() ?? -1, gids: [process.getgid?.() ?? -1, ...(process.getgroups?.() ?? [])] }
    : { uid: identity.uid, gids: [identity.gid] }

const wishOf = (parts: BubblewrapParts, request: SandboxRequest) => {
  if (request.writable.length > sandboxLimits.rootsMax)
    throw new SandboxRefused("too_many", request.directory, `more than ${sandboxLimits.rootsMax} roots`)
  const isGits = (path: string): boolean =>
    request.gitAlone === true && parts.gitPlace !== undefined && isInside(parts.gitPlace, path)
  const rootAt = (path: string): string => (isGits(path) ? realDirectoryOf(path, parts.home) : rootOf(path, parts.home))
  const roots = [...new Set(request.writable.map(rootAt))]
  const isRoot = request.writable.length === 1 && request.writable[0] === request.directory
  const directory = isRoot ? (roots[0] ?? "/") : realDirectoryOf(request.directory, parts.home)
  const isOwn = (path: string): boolean => roots.some((root) => isInside(root, path)) || isTooWide(path)
  const others = (request.readable ?? []).filter(existsSync).map((path) => realPathOf(path, parts.home))
  const readable = [...new Set([directory, ...others])].filter((path) => !isOwn(path))
  const gits = roots.filter(isGits)
  return { roots, readable, directory, network: request.network, gitAlone: request.gitAlone === true, gits }
}

const plan = (parts: BubblewrapParts, request: SandboxRequest): Planned => {
  checkText(request)
  const wish = wishOf(parts, request)
  const { directory, readable, roots } = wish
  const places = [...roots, ...readable.filter((path) => path === directory)]
  const [first] = places
  const { drop, hidden, home, runtimes } = parts
  const owner = first === undefined ? undefined : visibleFacts(first)
  const identity = drop === undefined ? undefined : identityFor(owner, drop)
  const privates = parts.privates.hiddenFrom(readerOf(identity))
  const mounts = planMounts(wish, { home, hidden, runtimes, privates })
  return { mounts, identity, layout: layOut(mounts, { identity, own: places }), directory }
}

const insideArguments = (
  parts: BubblewrapParts,
  request: SandboxRequest,
  { directory, identity, layout, mounts }: Planned,
  filterDescriptor: number
): ReadonlyArray<string> => [
  ...["--unshare-all", "--unshare-user"],
  ...(request.network ? ["--share-net"] : []),
  ...["--die-with-parent", "--new-session", "--cap-drop", "ALL"],
  ...(identity === undefined ? [] : ["--uid", String(nobody), "--gid", String(nobody)]),
  "--clearenv",
  ...Object.entries({
    ...request.environment,
    ...(mounts.some(({ own }) => own === true) ? acrossMounts : {}),
    ...{ HOME: parts.home ?? "/tmp", TMPDIR: "/tmp" }
  }).flatMap(([name, value]) => ["--setenv", name, value]),
  ...[...linkArguments(), "--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/home"],
  ...layout.args,
  ...sealArguments(mounts, layout),
  ...(parts.filter === undefined ? ["--disable-userns"] : ["--seccomp", String(filterDescriptor)]),
  ...["--chdir", directory]
]

/** Says that the sandbox is made, and waits to be let in: whoever made it may be gone, or may not like what it sees. */
const gateScript = (descriptor: number): string =>
  `printf r >&${descriptor}; read -r go <&${descriptor}; [ "$go" = ${goWord} ] || exit ${launcherExitCode}; exec ${descriptor}>&-`

const filesOf = (mounts: ReadonlyArray<Mount>): string =>
  mounts.map(({ at, file, kind }) => `${kind} ${at} ${file?.dev}:${file?.ino}:${file?.birth}`).join("\n")

const launchMode = (identity: Identity | undefined): LauncherMode =>
  identity !== undefined ? "drop" : process.getuid?.() === 0 ? "root" : "user"

/** The command line for a request; throws SandboxRefused when it cannot be held. */
export const bubblewrapped = (parts: BubblewrapParts, request: SandboxRequest): SandboxedCommand => {
  const planned = plan(parts, request)
  const { identity, layout, mounts } = planned
  const control = request.firstDescriptor ?? 3
  const inside = insideArguments(parts, request, planned, control + 2)
  const descriptors = [
    new TextEncoder().encode(inside.map((argument) => `${argument}\0`).join("")),
    ...(parts.filter === undefined ? [] : [parts.filter])
  ]
  const command = launch({
    perl: parts.perl,
    machine: parts.machine,
    mode: launchMode(identity),
    identity: identity ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
    trees: layout.trees,
    control,
    descriptorMax: control + descriptors.length,
    emptyBytes: sandboxLimits.hiddenBytesMax,
    privateBytes: sandboxLimits.temporaryBytesMax,
    command: [
      ...[parts.bwrap, "--args", String(control + 1), "--"],
      ...["/bin/sh", "-c", `${gateScript(control)}; ${limitScript}; ${processLimit}; exec "$@"`, "sh", ...request.argv]
    ]
  })
  const gate = { descriptor: control, difference: (pid: number) => differenceOf(mounts, pid) }
  return { ...command, directory: "/", environment: {}, descriptors, gate, files: filesOf(mounts), isNamespace: true }
}
