// The directories from the root of the repository down to the workspace. The agent cannot write above its workspace, and
// no stranger may either: a directory that belongs to someone else, or that everybody can write to, ends the way up.
import type { Stats } from "node:fs"
import { lstat, realpath } from "node:fs/promises"
import { dirname, join, relative } from "node:path"
import { limits } from "./PromptLimits.ts"

export interface Above {
  /** Without links. */
  readonly workspace: string
  /** The repository's root; the workspace itself where it is that, or where there is none. */
  readonly root: string
  /** Those above the workspace, from the root on, each relative to it. */
  readonly directories: ReadonlyArray<string>
  readonly isRepository: boolean
}

const worldWritable = 0o002

const factsOf = (path: string): Promise<Stats | undefined> => lstat(path).catch(() => undefined)

const hasGit = async (directory: string): Promise<boolean> => {
  const facts = await factsOf(join(directory, ".git"))
  return facts !== undefined && (facts.isDirectory() || facts.isFile())
}

/** The nearest directory above with a repository, as far as the way up can be trusted. */
const repositoryAbove = async (workspace: string): Promise<string | undefined> => {
  const trusted = new Set([0, process.getuid?.(), (await factsOf(workspace))?.uid])
  let directory = dirname(workspace)
  for (let steps = 0; steps < limits.directoriesAboveMax; steps += 1) {
    const facts = await factsOf(directory)
    if (facts === undefined || !trusted.has(facts.uid) || (facts.mode & worldWritable) !== 0) return undefined
    if (await hasGit(directory)) return directory
    if (dirname(directory) === directory) return undefined
    directory = dirname(directory)
  }
  return undefined
}

const between = (root: string, workspace: string): ReadonlyArray<string> => {
  const parts = relative(root, workspace).split("/")
  return parts.map((_, at) => parts.slice(0, at).join("/"))
}

/** Nothing when the workspace is not there. */
export const aboveOf = async (given: string): Promise<Above | undefined> => {
  const workspace = await realpath(given).catch(() => undefined)
  if (workspace === undefined) return undefined
  if (await hasGit(workspace)) return { workspace, root: workspace, directories: [], isRepository: true }
  const root = await repositoryAbove(workspace)
  if (root === undefined) return { workspace, root: workspace, directories: [], isRepository: false }
  return { workspace, root, directories: between(root, workspace), isRepository: true }
}
