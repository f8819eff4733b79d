// The repository of a workspace where it lies outside of it: above a package of a larger repository, or where the file
// `.git` of a linked worktree or a submodule says. Such a file is followed only to a directory that names the workspace in
// turn and belongs to its owner: whoever can write the file alone gains nothing. All of it is looked at by descriptor.
import { basename, dirname, join, relative, resolve } from "node:path"
import { type FileFacts, type Handle, type Handles, withHandles } from "./Handle.ts"
import { isInside, type Mount } from "./Places.ts"
import { linkedWorktree, protectedRepository, whole } from "./Repository.ts"
import { SandboxRefused } from "./SandboxErrors.ts"
import { sandboxLimits } from "./SandboxLimits.ts"
import { rootIssue } from "./WorkspaceCheck.ts"

/** Where git keeps what belongs to a working directory. */
type GitPlace =
  | { readonly _tag: "Directory"; readonly git: Handle }
  | { readonly _tag: "Linked"; readonly git: Handle; readonly own: Handle }
  | { readonly _tag: "Submodule"; readonly git: Handle }

export interface OuterWish {
  /** Whether the workspace may be written to. */
  readonly access: "writable" | "readonly"
  /** Only git runs, and starts nothing of the repository. */
  readonly gitAlone: boolean
  readonly home: string | undefined
  readonly isHidden: (path: string) => boolean
}

const worldWritable = 0o002

/** What is not there, cannot be looked at or is a link is not followed. */
const orNothing = <A>(work: () => A): A | undefined => {
  try {
    return work()
  } catch (error) {
    if (error instanceof SandboxRefused) return undefined
    throw error
  }
}

const textIn = (directory: Handle, name: string): string | undefined => {
  const facts = directory.look(name)
  if (facts?.kind !== "file" || facts.size > sandboxLimits.gitFileBytesMax) return undefined
  return directory.read(name, sandboxLimits.gitFileBytesMax).replace(/[\r\n]+$/u, "")
}

const isGitDirectory = (directory: Handle): boolean =>
  directory.look("HEAD")?.kind === "file" &&
  directory.look("objects")?.kind === "directory" &&
  directory.look("refs")?.kind === "directory"

const section = /^\s*\[\s*([\w.-]+)\s*\]/u
const setting = /^\s*worktree\s*=\s*"?(.*?)"?\s*$/iu

/** `core.worktree` of a settings file, the last one that it has. */
const worktreeIn = (settings: string): string | undefined => {
  let isCore = false
  let found: string | undefined
  for (const line of settings.split("\n")) {
    if (/^\s*\[/u.test(line)) isCore = section.exec(line)?.[1]?.toLowerCase() === "core"
    else if (isCore) found = setting.exec(line)?.[1] ?? found
  }
  return found
}

const isSameOwner = (directory: Handle, { uid }: FileFacts): boolean => directory.facts.uid === uid

/** The directory of a linked worktree: it names the worktree, and lies in the repository it is of. */
const linkedAt = (handles: Handles, own: Handle, work: Handle): GitPlace | undefined => {
  const back = textIn(own, "gitdir")
  if (basename(dirname(own.path)) !== "worktrees" || textIn(own, "commondir") !== "../..") return undefined
  if (back === undefined || resolve(own.path, back) !== join(work.path, ".git")) return undefined
  const git = handles.walk(dirname(dirname(own.path)))
  return isGitDirectory(git) ? { _tag: "Linked", git, own } : undefined
}

/** The directory of a submodule: its settings name the submodule, and it lies among the modules of a repository. */
const submoduleAt = (git: Handle, work: Handle): GitPlace | undefined => {
  if (!isGitDirectory(git) || !dirname(git.path).split("/").includes("modules")) return undefined
  const back = worktreeIn(textIn(git, "config") ?? "")
  return back !== undefined && resolve(git.path, back) === work.path ? { _tag: "Submodule", git } : undefined
}

/** Where the file `.git` of a working directory leads, if that agrees. */
const followed = (handles: Handles, work: Handle, { home, isHidden }: OuterWish): GitPlace | undefined =>
  orNothing(() => {
    const named = /^gitdir: ([^\n\0]+)$/u.exec(textIn(work, ".git") ?? "")?.[1]
    if (named === undefined) return undefined
    const own = handles.walk(resolve(work.path, named))
    const place = linkedAt(handles, own, work) ?? submoduleAt(own, work)
    if (place === undefined || isInside(work.path, place.git.path) || isHidden(place.git.path)) return undefined
    if (!isSameOwner(own, work.facts) || !isSameOwner(place.git, work.facts)) return undefined
    return rootIssue(place.git.path, { home }) === undefined ? place : undefined
  })

const placeIn = (handles: Handles, work: Handle, wish: OuterWish): GitPlace | undefined => {
  const kind = work.look(".git")?.kind
  if (kind === "file") return followed(handles, work, wish)
  const git = kind === "directory" ? orNothing(() => work.enter(".git")) : undefined
  return git === undefined || !isGitDirectory(git) ? undefined : { _tag: "Directory", git }
}

interface Above {
  readonly top: Handle
  readonly place: GitPlace
}

/** The nearest repository above, as far as nobody but root and the owner of the workspace can write on the way. */
const above = (handles: Handles, root: Handle, wish: OuterWish): Above | undefined => {
  const { uid } = root.facts
  for (let path = dirname(root.path); path !== dirname(path); path = dirname(path)) {
    const top = orNothing(() => handles.walk(path))
    const isSafe = top !== undefined && [0, uid].includes(top.facts.uid) && (top.facts.mode & worldWritable) === 0
    if (!isSafe || wish.isHidden(path)) return undefined
    if (top.look(".git") === undefined) continue
    // A home or a directory of the system is more than a project, and so is its history.
    const place = rootIssue(path, wish) === undefined ? placeIn(handles, top, wish) : undefined
    return place !== undefined && isSameOwner(place.git, root.facts) ? { top, place } : undefined
  }
  return undefined
}

const fileIn = (directory: Handle, name: string): ReadonlyArray<Mount> => {
  const file = directory.look(name)
  return file?.kind === "file" ? [{ at: join(directory.path, name), kind: "readonly", file }] : []
}

/** What says of files above the workspace which of its own are ignored. */
const rulesAbove = (handles: Handles, top: Handle, root: Handle): ReadonlyArray<Mount> => {
  const parts = relative(top.path, root.path).split("/").slice(0, -1)
  const directories = [top, ...parts.map((_, at) => handles.walk(join(top.path, ...parts.slice(0, at + 1))))]
  return directories.flatMap((directory) => [
    ...fileIn(directory, ".gitignore"),
    ...fileIn(directory, ".gitattributes")
  ])
}

/** What a linked worktree needs to commit; the rest of its repository stays as it is. */
const forCommands = ({ git, own }: Extract<GitPlace, { readonly _tag: "Linked" }>): ReadonlyArray<Mount> => {
  const shared = ["objects", "refs", "logs"].flatMap((name) => {
    if (name === "logs" && git.look(name) === undefined) git.makeDirectory(name)
    return git.look(name)?.kind === "directory" ? [whole(git.enter(name), "writable")] : []
  })
  const objects = git.enter("objects")
  const info = objects.look("info")?.kind === "directory" ? [whole(objects.enter("info"), "readonly")] : []
  return [whole(git, "readonly"), ...shared, ...info, ...linkedWorktree(own), ...fileIn(own, "gitdir")]
}

const mountsOf = (place: GitPlace, { access, gitAlone }: OuterWish): ReadonlyArray<Mount> => {
  if (access === "readonly") return [whole(place.git, "readonly")]
  return place._tag === "Linked" && !gitAlone ? forCommands(place) : protectedRepository(place.git)
}

/** Worktrees that the pursuit of a goal makes: what commands do there is merged by files, not by git. */
const isOfGoal = (path: string): boolean =>
  basename(dirname(path)) === "worktrees" && basename(dirname(dirname(path))) === ".echs"

/**
 * What has to be there of a repository that lies outside of the root. A command in a part of a repository may look at its
 * history and change nothing of it: it does not have the other files, and would commit that they are gone.
 */
export const outerRepositoryOf = (handles: Handles, root: Handle, wish: OuterWish): ReadonlyArray<Mount> => {
  const own = root.look(".git")
  if (own?.kind === "file") {
    const place = isOfGoal(root.path) && !wish.gitAlone ? undefined : followed(handles, root, wish)
    return place === undefined ? [] : mountsOf(place, wish).map(owned)
  }
  const found = own === undefined ? above(handles, root, wish) : undefined
  if (found === undefined) return []
  const { place, top } = found
  const access = wish.gitAlone ? wish.access : "readonly"
  return [...mountsOf(place, { ...wish, access }), ...fileIn(top, ".git"), ...rulesAbove(handles, top, root)].map(owned)
}

/** Whether the file `.git` of a working directory leads to what is not its repository. */
export const isLedAstray = (path: string, home: string | undefined): boolean =>
  withHandles((handles) => {
    const work = orNothing(() => handles.walk(path))
    if (work?.look(".git")?.kind !== "file") return false
    const wish: OuterWish = { access: "readonly", gitAlone: true, home, isHidden: () => false }
    return followed(handles, work, wish) === undefined
  })

/** It belongs to the owner of the workspace, like the workspace. */
const owned = (mount: Mount): Mount => ({ ...mount, own: true })
