// Which directories can be workspaces: the one check for all tools, on all levels. Homes are full of keys and of files that
// their owners' programs run; directories of the system belong to nobody's project; what ECHS keeps is for nobody's tools.
// Whoever means one of them says so when the conversation is created, on record; some are refused even then.
import { existsSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"

export interface WorkspaceChoice {
  readonly workspace?: string | undefined
  /** Somebody means a directory that is refused otherwise. */
  readonly unsafe_workspace?: boolean
}

/** Why a directory is no workspace, and what to do about it; nothing when it can be one. */
export type WorkspaceCheck = (choice: WorkspaceChoice) => string | undefined

export interface WorkspaceFacts {
  /** Of the user who runs the server; nothing when there is none. */
  readonly home: string | undefined
  /** The accounts of the machine, as the system lists them; read from it unless told. */
  readonly accounts?: string
}

/** Nothing in them is a file that somebody works on. */
const neverRoots: ReadonlyArray<string> = ["/proc", "/sys", "/dev"]
/** They and all below them belong to the system. */
const systemRoots: ReadonlyArray<string> = ["/etc", "/boot"]
const tooWide: ReadonlyArray<string> = [
  ...["/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/opt", "/run", "/sbin", "/srv", "/tmp", "/usr"],
  ...["/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/var", "/var/lib", "/var/tmp", "/Users"]
]
/** Where programs keep keys, in a home. */
const keyPlaces: ReadonlyArray<string> = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".config/gcloud", ".config/gh"],
  ...[".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium"]
]

const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** Too much of the system to be given to commands as theirs. */
export const isTooWide = (path: string): boolean =>
  tooWide.includes(path) || neverRoots.some((never) => isInside(never, path))

const uidOfPeople = 1_000

/** The homes of root and of people, as the list of accounts has them. */
const homesIn = (accounts: string): ReadonlyArray<string> =>
  accounts.split("\n").flatMap((line) => {
    const [, , uid = "", , , home = ""] = line.split(":")
    const isPerson = /^\d+$/u.test(uid) && (uid === "0" || Number(uid) >= uidOfPeople)
    return isPerson && isAbsolute(home) && home !== "/" ? [home] : []
  })

const readAccounts = (): string => {
  try {
    return readFileSync("/etc/passwd", "utf8")
  } catch {
    return ""
  }
}

const withReal = (named: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...named, ...named.map((one) => realOf(one))])
]

/** The list is long, changes rarely, and is asked for with every command: it is read again after this long. */
const homesFreshMs = 10_000
let known: { readonly readMs: number; readonly homes: ReadonlyArray<string> } | undefined

const listedHomes = (): ReadonlyArray<string> => {
  const nowMs = performance.now()
  if (known === undefined || nowMs - known.readMs > homesFreshMs)
    known = { readMs: nowMs, homes: withReal(["/root", ...homesIn(readAccounts())]) }
  return known.homes
}

const homesOf = ({ accounts, home }: WorkspaceFacts): ReadonlyArray<string> => {
  const listed = accounts === undefined ? listedHomes() : withReal(["/root", ...homesIn(accounts)])
  return home === undefined || home === "/" ? listed : [...new Set([...listed, ...withReal([home])])]
}

const isDirectlyInHomes = (path: string): boolean => ["/home", "/Users"].includes(dirname(path))

/** What the log engine and the server put into every data directory. */
const isDataDirectory = (path: string): boolean =>
  ["meta", "journal", "token"].every((name) => existsSync(join(path, name)))

const isInDataDirectory = (path: string): boolean =>
  isDataDirectory(path) || (dirname(path) !== path && isInDataDirectory(dirname(path)))

const linksMax = 40

const targetOf = (path: string): string | undefined => {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Without links, as far as the path is there; a link that leads nowhere yet counts for where it would lead. */
const realOf = (path: string, links = linksMax): string => {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    if (above === path || links === 0) return path
    const target = targetOf(path)
    return target === undefined ? join(realOf(above, links), basename(path)) : realOf(resolve(above, target), links - 1)
  }
}

/** What no override allows. */
const forbidden = (real: string): string | undefined => {
  if (neverRoots.some((never) => isInside(never, real))) return "shows the system, and holds no files"
  return isInDataDirectory(real) ? "belongs to an ECHS server" : undefined
}

/** Why a directory, by its real path, is more than a workspace. */
const excess = (real: string, homes: ReadonlyArray<string>): string | undefined => {
  if (isTooWide(real) || systemRoots.some((root) => isInside(root, real))) return "belongs to the system"
  if (isDirectlyInHomes(real) || homes.some((home) => isInside(real, home)))
    return "is or holds a home; a directory in it can be a workspace"
  const isKeys = homes.some((home) => keyPlaces.some((name) => isInside(join(home, name), real)))
  return isKeys ? "is where programs keep keys" : undefined
}

/** Why the real path of a root that commands may write to is none; nothing when it is one. */
export const rootIssue = (real: string, facts: WorkspaceFacts): string | undefined =>
  forbidden(real) ?? excess(real, homesOf(facts))

/** Why nobody can begin to work in a directory: it may not be one, or is not there. */
export const workspaceIssue =
  (check: WorkspaceCheck): WorkspaceCheck =>
  (choice) => {
    const { workspace } = choice
    if (workspace === undefined) return undefined
    const isThere = statSync(workspace, { throwIfNoEntry: false })?.isDirectory() === true
    return isThere ? check(choice) : `there is no directory ${workspace}; make it, or choose another workspace`
  }

export const workspaceCheck = (facts: WorkspaceFacts): WorkspaceCheck => {
  const homes = homesOf(facts)
  return ({ unsafe_workspace: isMeant = false, workspace }) => {
    if (workspace === undefined) return undefined
    const real = realOf(workspace)
    const never = forbidden(real)
    if (never !== undefined) return `${workspace} is no workspace: it ${never}; choose another directory`
    const why = isMeant ? undefined : excess(real, homes)
    if (why === undefined) return undefined
    return `${workspace} is no workspace: it ${why}. Choose another directory, or say unsafe_workspace if you mean it`
  }
}
