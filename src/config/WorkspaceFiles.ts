// What the terminal reads of the directory it runs in: the branch of its repository, and its files for completion.
import { readdirSync, readFileSync } from "node:fs"
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

const filesMax = 5_000
const directoriesMax = 1_000
const leftOut: ReadonlySet<string> = new Set([
  ".git",
  "node_modules",
  ".venv",
  "__pycache__",
  "target",
  "dist",
  ".cache"
])

/** Files below the directory, nearest first, for completion; bounded, without what tools fill by themselves. */
export const listFiles = (directory: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const left = [""]
  for (let visited = 0; visited < directoriesMax && left.length > 0 && found.length < filesMax; visited += 1) {
    const below = left.shift() ?? ""
    for (const entry of entriesOf(join(directory, below))) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`
      if (entry.isDirectory() && !leftOut.has(entry.name)) left.push(path)
      else if (entry.isFile()) found.push(path)
    }
  }
  return found.slice(0, filesMax)
}

const entriesOf = (directory: string) => {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}
