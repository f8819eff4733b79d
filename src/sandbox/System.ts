// The parts of a machine that every command needs: programs, libraries and settings of the system, and the runtimes
// that the server's own PATH leads to. Whatever is not named here, by a request or by the settings is not there.
import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs"
import { basename, delimiter, dirname, isAbsolute } from "node:path"
import { isInside, type Mount } from "./Places.ts"

const directories: ReadonlyArray<string> = [
  ...["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"],
  // How many processors there are, and how much memory: runtimes ask.
  ...["/sys/devices/system", "/sys/fs/cgroup"]
]

/** A link among the first directories of a system, made again inside. */
export interface SystemLink {
  readonly at: string
  readonly to: string
}

interface System {
  readonly mounts: ReadonlyArray<Mount>
  readonly links: ReadonlyArray<SystemLink>
}

const lookAtSystem = (): System => {
  const found = directories.flatMap((at) => {
    const facts = lstatSync(at, { throwIfNoEntry: false })
    return facts === undefined ? [] : [{ at, facts }]
  })
  return {
    mounts: found.flatMap(({ at, facts }) => (facts.isDirectory() ? [{ at, kind: "system" as const }] : [])),
    links: found.flatMap(({ at, facts }) => (facts.isSymbolicLink() ? [{ at, to: readlinkSync(at) }] : []))
  }
}

let known: System | undefined

/** A system does not change its first directories while a server runs. */
const system = (): System => {
  known ??= lookAtSystem()
  return known
}

export const systemPlan = (): ReadonlyArray<Mount> => system().mounts
export const systemLinks = (): ReadonlyArray<SystemLink> => system().links

/** Variables that name the directory of a runtime. Those of package managers name credentials as well. */
const runtimeVariables: ReadonlyArray<string> = [
  ...["JAVA_HOME", "GOROOT", "RUSTUP_HOME", "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX"],
  ...["BUN_INSTALL", "PNPM_HOME"]
]

const realPath = (path: string): string | undefined => {
  try {
    return isAbsolute(path) ? realpathSync(path) : undefined
  } catch {
    // Not there, or not for us.
    return undefined
  }
}

const realDirectory = (path: string): string | undefined => {
  const real = realPath(path)
  return real !== undefined && statSync(real, { throwIfNoEntry: false })?.isDirectory() === true ? real : undefined
}

/** Programs find their libraries beside the directory they lie in. */
const prefixOf = (directory: string, isTooWide: (path: string) => boolean): string => {
  const parent = dirname(directory)
  return ["bin", "sbin"].includes(basename(directory)) && !isTooWide(parent) ? parent : directory
}

export interface RuntimeOptions {
  readonly path: string
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly home: string | undefined
  /** What people named besides. */
  readonly readable: ReadonlyArray<string>
  readonly isTooWide: (path: string) => boolean
}

/** Directories outside the system and outside homes that commands need to find their programs. */
export const runtimesOf = ({ home, isTooWide, path, readable, variables }: RuntimeOptions): ReadonlyArray<string> => {
  const isElsewhere = (directory: string): boolean =>
    !directories.some((one) => isInside(one, directory)) &&
    !isTooWide(directory) &&
    !["/root", "/home", ...(home === undefined ? [] : [home])].some(
      (one) => isInside(one, directory) || isInside(directory, one)
    )
  const fromPath = path.split(delimiter).flatMap((one) => realDirectory(one) ?? [])
  const named = runtimeVariables.flatMap((name) => realDirectory(variables[name] ?? "") ?? [])
  const found = [...fromPath.map((one) => prefixOf(one, isTooWide)), ...named].filter(isElsewhere)
  const wanted = readable.flatMap((one) => realPath(one) ?? [])
  const all = [...new Set([...found, ...wanted])]
  return all.filter((one) => !all.some((other) => other !== one && isInside(other, one)))
}
