// The instruction files that hold for an agent, the most general first: the user's own, those from the root of the
// repository down to the workspace, and those of directories that the agent has touched.
import { basename, dirname, isAbsolute, join, normalize, relative } from "node:path"
import { type Above, aboveOf } from "./Above.ts"
import { expand } from "./Imports.ts"
import { limits } from "./PromptLimits.ts"
import { type InstructionRoot, openRoot } from "./Root.ts"

export interface InstructionFile {
  /** Its path: relative in the workspace, absolute outside of it. */
  readonly name: string
  readonly text: string
}

export interface FilesWanted {
  readonly workspace: string | undefined
  /** Whether the files of the project are wanted. */
  readonly project: boolean
  /** The user's own file. */
  readonly userFile: string | undefined
  /** Paths in the workspace that the agent has touched, the newest first. */
  readonly touched: ReadonlyArray<string>
  /** Files it knows already, by name. */
  readonly known: ReadonlyArray<string>
  readonly mayRead: (path: string) => boolean
  readonly ownDirectories: ReadonlyArray<string>
}

export const fileNames: ReadonlyArray<string> = ["AGENTS.md", "CLAUDE.md"]

const always = (): boolean => true

const inDirectory = async (
  root: InstructionRoot | undefined,
  directory: string,
  seen: Set<string>
): Promise<ReadonlyArray<InstructionFile>> => {
  if (root === undefined) return []
  const files: Array<InstructionFile> = []
  for (const one of fileNames) {
    const path = join(directory, one)
    const text = await expand(root, path, seen)
    if (text !== undefined) files.push({ name: root.nameOf(path), text })
  }
  return files
}

const ofUser = async ({ ownDirectories, userFile }: FilesWanted): Promise<ReadonlyArray<InstructionFile>> => {
  if (userFile === undefined) return []
  const path = dirname(userFile)
  const root = await openRoot({ path, nameOf: (shown) => join(path, shown), mayRead: always, ownDirectories })
  const text = root === undefined ? undefined : await expand(root, basename(userFile), new Set())
  return text === undefined ? [] : [{ name: userFile, text }]
}

/** What lies above is named by its whole path, and is not for files in the workspace to import. */
const ofRepository = async (above: Above, wanted: FilesWanted): Promise<ReadonlyArray<InstructionFile>> => {
  if (above.directories.length === 0) return []
  const { ownDirectories } = wanted
  const nameOf = (shown: string): string => join(above.root, shown)
  const mayRead = (shown: string): boolean => {
    const way = relative(above.workspace, nameOf(shown))
    return way.startsWith("..") || wanted.mayRead(way)
  }
  const root = await openRoot({ path: above.root, nameOf, mayRead, ownDirectories })
  const seen = new Set<string>()
  const files: Array<InstructionFile> = []
  for (const directory of above.directories) files.push(...(await inDirectory(root, directory, seen)))
  return files
}

/** The directory of a path in the workspace and those above it, from the workspace down. */
const directoriesOf = (path: string, workspace: string): ReadonlyArray<string> => {
  const way = normalize(isAbsolute(path) ? relative(workspace, path) : path)
  if (way.startsWith("..") || isAbsolute(way)) return []
  const parts = way.split("/").filter((part) => part !== "" && part !== ".")
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"))
}

const touchedDirectories = (wanted: FilesWanted, workspace: string): ReadonlyArray<string> => {
  const known = wanted.known.filter((name) => !isAbsolute(name)).map(dirname)
  const all = [...known, ...wanted.touched].flatMap((path) => directoriesOf(path, workspace))
  return [...new Set(all)].slice(0, limits.directoriesTouchedMax).sort()
}

const ofWorkspace = async ({ workspace }: Above, wanted: FilesWanted): Promise<ReadonlyArray<InstructionFile>> => {
  const { mayRead, ownDirectories } = wanted
  const root = await openRoot({ path: workspace, nameOf: (shown) => shown, mayRead, ownDirectories })
  const seen = new Set<string>()
  const files: Array<InstructionFile> = []
  for (const directory of ["", ...touchedDirectories(wanted, workspace)])
    files.push(...(await inDirectory(root, directory, seen)))
  return files
}

export interface FoundFiles {
  readonly files: ReadonlyArray<InstructionFile>
  readonly isRepository: boolean
}

export const findFiles = async (wanted: FilesWanted): Promise<FoundFiles> => {
  const user = await ofUser(wanted)
  const above = wanted.workspace === undefined ? undefined : await aboveOf(wanted.workspace)
  if (above === undefined || !wanted.project) return { files: user, isRepository: above?.isRepository === true }
  const files = [...user, ...(await ofRepository(above, wanted)), ...(await ofWorkspace(above, wanted))]
  return { files, isRepository: above.isRepository }
}
