// What programs outside would run of a repository that commands may write to: its hooks, its settings, and the file that
// names another directory for both; those of its submodules and worktrees as well. Every directory on the way is a mount
// of its own, so that none can be moved away with what is protected in it. All of it is looked at by descriptor.
import { join } from "node:path"
import type { FileFacts, Handle } from "./Handle.ts"
import type { Mount } from "./Places.ts"
import { SandboxRefused } from "./SandboxErrors.ts"
import { sandboxLimits } from "./SandboxLimits.ts"

/** For Git the same as no file at all; but one that is there can be protected. */
const itself = "."
const fromWorktree = "../.."

const refuseLink = (directory: Handle, name: string): FileFacts | undefined => {
  const facts = directory.look(name)
  if (facts?.kind === "link")
    throw new SandboxRefused("link", join(directory.path, name), "is a link, and cannot be protected")
  return facts
}

const refuseOther = (directory: Handle, wanted: string): FileFacts => {
  const facts = refuseLink(directory, "commondir")
  const isShort = facts?.kind === "file" && facts.size <= wanted.length + 2
  if (!isShort || directory.read("commondir", wanted.length + 2).replace(/[\r\n]+$/, "") !== wanted)
    throw new SandboxRefused(
      "led_astray",
      join(directory.path, "commondir"),
      "leads Git to settings that cannot be protected"
    )
  return facts
}

export const whole = (directory: Handle, kind: "writable" | "readonly"): Mount => ({
  at: directory.path,
  kind,
  file: directory.facts
})

/** A name that has to be there to be protected; undefined where it is not and cannot be made. */
const protect = (directory: Handle, name: string, make: () => boolean): Mount | undefined => {
  const found = refuseLink(directory, name)
  const facts = found ?? (make() ? refuseLink(directory, name) : undefined)
  return facts === undefined ? undefined : { at: join(directory.path, name), kind: "readonly", file: facts }
}

const protectFile = (directory: Handle, name: string, text = ""): Mount | undefined =>
  protect(directory, name, () => directory.makeFile(name, text))

const isWhole = (mounts: ReadonlyArray<Mount | undefined>): mounts is ReadonlyArray<Mount> =>
  !mounts.includes(undefined)

const directoriesIn = (directory: Handle): ReadonlyArray<Handle> =>
  directory
    .names()
    .flatMap((name) => (refuseLink(directory, name)?.kind === "directory" ? [directory.enter(name)] : []))

/** A directory of this name, when there is one. */
const inner = (directory: Handle, name: string): Handle | undefined =>
  refuseLink(directory, name)?.kind === "directory" ? directory.enter(name) : undefined

const refuseMore = (paths: ReadonlyArray<unknown>, max: number, path: string): void => {
  if (paths.length > max) throw new SandboxRefused("too_many", path, `holds more than ${max} directories`)
}

/** What belongs to one worktree of a repository. */
export const linkedWorktree = (directory: Handle): ReadonlyArray<Mount> => {
  if (directory.look("commondir") === undefined) return [whole(directory, "readonly")]
  const file = refuseOther(directory, fromWorktree)
  const settings = protectFile(directory, "config.worktree")
  if (settings === undefined) return [whole(directory, "readonly")]
  return [whole(directory, "writable"), { at: join(directory.path, "commondir"), kind: "readonly", file }, settings]
}

const worktreesOf = (directory: Handle | undefined): ReadonlyArray<Mount> => {
  if (directory === undefined) return []
  const worktrees = directoriesIn(directory)
  refuseMore(worktrees, sandboxLimits.worktreesMax, directory.path)
  return worktrees.length === 0 ? [] : [whole(directory, "writable"), ...worktrees.flatMap(linkedWorktree)]
}

const gitDirectory = (directory: Handle): ReadonlyArray<Mount> => {
  const own = [
    protect(directory, "hooks", () => directory.makeDirectory("hooks")),
    protectFile(directory, "commondir", `${itself}\n`),
    protectFile(directory, "config"),
    protectFile(directory, "config.worktree")
  ]
  // Where we cannot write, neither can a command; that it cannot make itself able to is what the mount is for.
  if (!isWhole(own)) return [whole(directory, "readonly")]
  refuseOther(directory, itself)
  return [whole(directory, "writable"), ...own, ...worktreesOf(inner(directory, "worktrees"))]
}

/**
 * With its submodules, whose names are paths and which have submodules in turn. What only leads to one stays as it is,
 * and so does all of a repository that we could not write to.
 */
export const protectedRepository = (repository: Handle): ReadonlyArray<Mount> => {
  const mounts: Array<Mount> = []
  const found: Array<Handle> = []
  const enter = (directory: Handle | undefined, kind: "writable" | "readonly"): void => {
    if (directory === undefined) return
    const directories = directoriesIn(directory)
    if (directories.length > 0) mounts.push(whole(directory, kind))
    found.push(...directories)
    refuseMore(found, sandboxLimits.submodulesMax, join(repository.path, "modules"))
  }
  const enterRepository = (directory: Handle): void => {
    const own = gitDirectory(directory)
    mounts.push(...own)
    if (own.length > 1) enter(inner(directory, "modules"), "writable")
  }
  enterRepository(repository)
  for (const directory of found) {
    if (directory.look("HEAD") === undefined) enter(directory, "readonly")
    else enterRepository(directory)
  }
  return mounts
}

/** Throws SandboxRefused when the repository of a root cannot be protected. */
export const repositoryOf = (root: Handle): ReadonlyArray<Mount> => {
  const facts = refuseLink(root, ".git")
  if (facts === undefined) return []
  if (facts.kind !== "directory") return [{ at: join(root.path, ".git"), kind: "readonly", file: facts }]
  return protectedRepository(root.enter(".git"))
}
