// What programs outside would run of a repository that commands may write to: its hooks, its settings, and the file that
// names another directory for both; those of its submodules and worktrees as well. Every directory on the way is a mount
// of its own, so that none can be moved away with what is protected in it.
import { randomUUID } from "node:crypto"
import { chownSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SandboxRefused } from "./Errors.ts"
import { sandboxLimits } from "./Limits.ts"
import { kindOf, type Mount, refuseLink } from "./Places.ts"

/** For Git the same as no file at all; but one that is there can be protected. */
const itself = "."
const fromWorktree = "../.."

/** Leaves either the whole file or none: an empty one would make the repository unusable. */
const nameItself = (directory: string): boolean => {
  const draft = join(directory, `commondir.${randomUUID()}`)
  try {
    writeFileSync(draft, `${itself}\n`, { flag: "wx", mode: 0o644 })
    const { gid, uid } = lstatSync(directory)
    if (process.getuid?.() === 0) chownSync(draft, uid, gid)
    renameSync(draft, join(directory, "commondir"))
    return true
  } catch {
    rmSync(draft, { force: true })
    return false
  }
}

const refuseOther = (commondir: string, wanted: string): void => {
  refuseLink(commondir)
  const isFile = kindOf(commondir) === "file"
  const isShort = isFile && lstatSync(commondir).size <= wanted.length + 2
  if (!isShort || readFileSync(commondir, "utf8").replace(/[\r\n]+$/, "") !== wanted)
    throw new SandboxRefused("led_astray", commondir, "leads Git to settings that cannot be protected")
}

const settings = (path: string): Mount => {
  refuseLink(path)
  return { at: path, kind: kindOf(path) === undefined ? "blank" : "readonly" }
}

const directoriesIn = (path: string): ReadonlyArray<string> => {
  refuseLink(path)
  if (kindOf(path) !== "directory") return []
  const paths = readdirSync(path).map((name) => join(path, name))
  paths.forEach(refuseLink)
  return paths.filter((one) => kindOf(one) === "directory")
}

const refuseMore = (paths: ReadonlyArray<string>, max: number, path: string): void => {
  if (paths.length > max) throw new SandboxRefused("too_many", path, `holds more than ${max} directories`)
}

const worktree = (path: string): ReadonlyArray<Mount> => {
  const commondir = join(path, "commondir")
  if (kindOf(commondir) === undefined) return [{ at: path, kind: "readonly" }]
  refuseOther(commondir, fromWorktree)
  return [{ at: path, kind: "writable" }, { at: commondir, kind: "readonly" }, settings(join(path, "config.worktree"))]
}

const worktreesOf = (path: string): ReadonlyArray<Mount> => {
  const worktrees = directoriesIn(path)
  refuseMore(worktrees, sandboxLimits.worktreesMax, path)
  return worktrees.length === 0 ? [] : [{ at: path, kind: "writable" }, ...worktrees.flatMap(worktree)]
}

const gitDirectory = (path: string): ReadonlyArray<Mount> => {
  const [hooks, commondir] = [join(path, "hooks"), join(path, "commondir")]
  refuseLink(hooks)
  // Where we cannot write, neither can a command; that it cannot make itself able to is what the mount is for.
  if (kindOf(commondir) === undefined && !nameItself(path)) return [{ at: path, kind: "readonly" }]
  refuseOther(commondir, itself)
  return [
    { at: path, kind: "writable" },
    { at: hooks, kind: kindOf(hooks) === undefined ? "empty" : "readonly" },
    { at: commondir, kind: "readonly" },
    settings(join(path, "config")),
    settings(join(path, "config.worktree")),
    ...worktreesOf(join(path, "worktrees"))
  ]
}

/**
 * With its submodules, whose names are paths and which have submodules in turn. What only leads to one stays as it is,
 * and so does all of a repository that we could not write to.
 */
const withSubmodules = (repository: string): ReadonlyArray<Mount> => {
  const mounts: Array<Mount> = []
  const found: Array<string> = []
  const enter = (path: string, kind: Mount["kind"]): void => {
    const directories = directoriesIn(path)
    if (directories.length > 0) mounts.push({ at: path, kind })
    found.push(...directories)
    refuseMore(found, sandboxLimits.submodulesMax, join(repository, "modules"))
  }
  const enterRepository = (path: string): void => {
    const own = gitDirectory(path)
    mounts.push(...own)
    if (own.length > 1) enter(join(path, "modules"), "writable")
  }
  enterRepository(repository)
  for (const path of found) {
    if (kindOf(join(path, "HEAD")) === undefined) enter(path, "readonly")
    else enterRepository(path)
  }
  return mounts
}

/** Throws SandboxRefused when the repository of a root cannot be protected. */
export const repositoryOf = (root: string): ReadonlyArray<Mount> => {
  const path = join(root, ".git")
  refuseLink(path)
  const kind = kindOf(path)
  if (kind !== "directory") return kind === undefined ? [] : [{ at: path, kind: "readonly" }]
  return withSubmodules(path)
}
