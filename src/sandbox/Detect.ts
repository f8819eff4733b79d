// Finds out, once, what can hold commands on this machine: by running one in the sandbox and believing only what that
// one saw. A level is claimed when every promise of it was kept in the trial; otherwise the next weaker one is tried.
import { accessSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { type BubblewrapParts, bubblewrapped, limitsInForce } from "./Bubblewrap.ts"
import { limitedCommand, limitsWithoutNamespaces, unlimitedCommand } from "./Fallback.ts"
import type { Identity } from "./Launcher.ts"
import { Privates } from "./Privates.ts"
import type { SandboxLevel, SandboxPort } from "./SandboxPort.ts"
import { assembleFilter } from "./Seccomp.ts"
import { runtimesOf } from "./System.ts"
import type { Machine } from "./SystemCalls.ts"
import { type Trial, tryOut } from "./Trial.ts"
import { isTooWide } from "./WorkspaceCheck.ts"

export interface SandboxOptions {
  /** ECHS's own data: commands do not see it. */
  readonly dataDirectory: string
  /** Other paths that commands must not see: token files, keys. */
  readonly hidden?: ReadonlyArray<string>
  /** Of the user who runs the server. */
  readonly home: string
  /** Where programs are looked for, as in the variable PATH. */
  readonly path: string
  /** What commands may read besides the system and the runtimes. */
  readonly readable?: ReadonlyArray<string>
  /** Of the server: some name the directories of runtimes. */
  readonly variables?: Readonly<Record<string, string | undefined>>
  /** Whom commands run as when the server is root and so is the owner of the workspace. */
  readonly identity?: Identity
  /** Levels to try; all by default. */
  readonly levels?: ReadonlyArray<SandboxLevel>
}

/** Where ECHS keeps checkpoints of workspaces, in its data directory. */
export const checkpointsFolder = "checkpoints"

/** No account of the system has it: nothing on disk belongs to it. */
const defaultIdentity: Identity = { uid: 64_999, gid: 64_999 }

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    // Not there, or not for us: either way it cannot be used.
    return false
  }
}

const find = (name: string, path: string): string | undefined =>
  path
    .split(delimiter)
    .filter((directory) => directory.startsWith("/"))
    .map((directory) => join(directory, name))
    .find(isProgram)

const machineOf = (): Machine | undefined =>
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64") ? process.arch : undefined

const realOr = (path: string): string =>
  statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path)

const directoryOr = (path: string): string | undefined => {
  const isThere = path.startsWith("/") && path !== "/" && statSync(path, { throwIfNoEntry: false })?.isDirectory()
  return isThere === true ? realpathSync(path) : undefined
}

interface Candidate {
  readonly level: SandboxLevel
  readonly parts: BubblewrapParts
  readonly detail: string
}

interface Programs {
  readonly bwrap: string
  readonly perl: string
}

const candidatesOf = (options: SandboxOptions, programs: Programs, machine: Machine): ReadonlyArray<Candidate> => {
  const isRoot = process.getuid?.() === 0
  const drop = isRoot ? (options.identity ?? defaultIdentity) : undefined
  const hidden = [options.dataDirectory, ...(options.hidden ?? [])].map(realOr)
  const home = directoryOr(options.home)
  const { path, readable = [], variables = {} } = options
  const found = runtimesOf({ path, variables, home, readable: [], isTooWide })
  const runtimes = runtimesOf({ path, variables, home, readable, isTooWide })
  const privates = new Privates(["/etc", "/usr/local", ...found])
  const gitPlace = join(realOr(options.dataDirectory), checkpointsFolder)
  const base = { ...programs, machine, home, hidden, runtimes, privates, gitPlace }
  const filter = assembleFilter(machine)
  const who = isRoot
    ? "commands of a root server run as the owner of the workspace or as nobody"
    : "commands run as you"
  const asRoot = { ...base, filter, drop: undefined }
  return [
    { level: "bubblewrap", parts: { ...base, filter, drop }, detail: `namespaces and a system call filter; ${who}` },
    { level: "bubblewrap_no_seccomp", parts: { ...base, filter: undefined, drop }, detail: `namespaces; ${who}` },
    ...(isRoot
      ? [
          {
            level: "bubblewrap_as_root",
            parts: asRoot,
            detail: "namespaces, but commands can read what root can read"
          } as const
        ]
      : [])
  ]
}

const sandboxOf = ({ detail, level, parts }: Candidate): SandboxPort => ({
  level,
  contained: level === "bubblewrap" || level === "bubblewrap_no_seccomp",
  detail,
  limits: limitsInForce,
  prepare: (request) => bubblewrapped(parts, request)
})

/** What could be tried, and why each attempt that failed did. */
const firstThatHolds = async (
  candidates: ReadonlyArray<Candidate>,
  directory: string
): Promise<{ readonly sandbox: SandboxPort | undefined; readonly failures: ReadonlyArray<string> }> => {
  const failures: Array<string> = []
  for (const candidate of candidates) {
    const { level, parts } = candidate
    const sandbox = sandboxOf({
      ...candidate,
      parts: { ...parts, hidden: [...parts.hidden, join(directory, "hidden")] }
    })
    const trial: Trial = {
      sandbox,
      directory,
      isFiltered: parts.filter !== undefined,
      isDropped: parts.drop !== undefined
    }
    const [failure] = await Promise.all([tryOut(trial), parts.privates.refresh()])
    if (failure === undefined) {
      const detail = failures.length === 0 ? candidate.detail : `${candidate.detail} (${failures.join("; ")})`
      return { sandbox: sandboxOf({ ...candidate, detail }), failures }
    }
    failures.push(`${level}: ${failure}`)
  }
  return { sandbox: undefined, failures }
}

const withoutNamespaces = (options: SandboxOptions, why: string): SandboxPort => {
  const isWanted = (level: SandboxLevel): boolean => options.levels?.includes(level) ?? true
  const shell = process.platform === "win32" ? undefined : find("sh", options.path)
  return shell === undefined || !isWanted("limits_only")
    ? { level: "none", contained: false, detail: why, limits: [], prepare: unlimitedCommand }
    : {
        level: "limits_only",
        contained: false,
        detail: `${why}; commands run with the rights of the server and limits of resources`,
        limits: limitsWithoutNamespaces,
        prepare: limitedCommand(shell)
      }
}

/** What holds commands here. Takes some tens of milliseconds; ask once and keep the answer. */
export const detectSandbox = async (options: SandboxOptions): Promise<SandboxPort> => {
  const machine = machineOf()
  if (machine === undefined)
    return withoutNamespaces(options, `no sandbox is known for ${process.platform} ${process.arch}`)
  const bwrap = find("bwrap", options.path)
  if (bwrap === undefined) return withoutNamespaces(options, "bubblewrap is not installed")
  const perl = find("perl", options.path)
  if (perl === undefined) return withoutNamespaces(options, "bubblewrap needs perl beside it, which is not installed")
  const isWanted = ({ level }: Candidate): boolean => options.levels?.includes(level) ?? true
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "echs-sandbox-")))
  try {
    mkdirSync(join(directory, "workspace"))
    mkdirSync(join(directory, "hidden"))
    writeFileSync(join(directory, "hidden", "secret"), "secret")
    const { failures, sandbox } = await firstThatHolds(
      candidatesOf(options, { bwrap, perl }, machine).filter(isWanted),
      directory
    )
    return sandbox ?? withoutNamespaces(options, `bubblewrap does not hold here (${failures.join("; ")})`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
