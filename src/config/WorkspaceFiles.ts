// What the terminal reads of the directory it runs in: the branch of its repository, and its files for completion.
import { readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** The `.git` of the repository around the directory: a directory, or in a worktree a file that names one. */
const gitDirectory = (directory: string): string | undefined => {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const own = join(at, ".git")
    if (read(join(own, "HEAD")) !== undefined) return own
    const named = /^gitdir: (.+)$/m.exec(read(own) ?? "")?.[1]
    if (named !== undefined) return resolve(at, named)
    if (dirname(at) === at) return undefined
  }
}

/** The branch that is checked out, or the first characters of the commit; undefined outside a repository. */
export const readBranch = (directory: string): string | undefined => {
  const git = gitDirectory(directory)
  const head = git === undefined ? undefined : read(join(git, "HEAD"))?.trim()
  if (head === undefined || head === "") return undefined
  return /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? head.slice(0, 8)
}
