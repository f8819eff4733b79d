// A look into a workspace for whoever checks what was done in it: is a file there, what does a report say, what changed.
// Reads only, and only inside the workspace: links that lead out are not followed.
import { createHash } from "node:crypto"
import { open, readdir, readFile, realpath, stat } from "node:fs/promises"
import { isAbsolute, join, relative, resolve, sep } from "node:path"

export type FileLook =
  | { readonly _tag: "Found"; readonly bytes: number; readonly changed_ms: number }
  | { readonly _tag: "Missing"; readonly reason: string }

export interface WorkspaceLook {
  readonly file: (workspace: string, path: string) => Promise<FileLook>
  /** The text of a file, at most so many bytes of it; nothing when there is no such file. */
  readonly text: (workspace: string, path: string, bytesMax: number) => Promise<string | undefined>
  /** Every file with a mark that changes when it does; nothing when there are more than that. */
  readonly listing: (workspace: string, filesMax: number) => Promise<Readonly<Record<string, string>> | undefined>
}

const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

const placeOf = async (workspace: string, path: string): Promise<string | undefined> => {
  const root = await realpath(workspace)
  const place = await realpath(resolve(root, path))
  return isInside(root, place) ? place : undefined
}

const file: WorkspaceLook["file"] = async (workspace, path) => {
  try {
    const place = await placeOf(workspace, path)
    if (place === undefined) return { _tag: "Missing", reason: `${path} is not inside the workspace` }
    const facts = await stat(place)
    return { _tag: "Found", bytes: facts.size, changed_ms: facts.mtimeMs }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return { _tag: "Missing", reason: code === "ENOENT" ? `there is no ${path}` : `${path}: ${message}` }
  }
}

const text: WorkspaceLook["text"] = async (workspace, path, bytesMax) => {
  try {
    const place = await placeOf(workspace, path)
    if (place === undefined || !(await stat(place)).isFile()) return undefined
    const handle = await open(place, "r")
    try {
      const buffer = Buffer.alloc(Math.min((await handle.stat()).size, bytesMax))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
      return buffer.toString("utf8", 0, bytesRead)
    } finally {
      await handle.close()
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    return undefined
  }
}

/** Folders that hold what others made. */
const skipped: ReadonlySet<string> = new Set([
  ".git",
  "node_modules",
  ".echs",
  "dist",
  "target",
  ".venv",
  "__pycache__"
])

/** Files up to this size are told apart by their content, larger ones by size and time. */
const contentBytesMax = 1_048_576

const markOf = async (path: string): Promise<string> => {
  const { mtimeMs, size } = await stat(path)
  const told = size <= contentBytesMax ? await readFile(path) : `${size} ${mtimeMs}`
  return createHash("sha256").update(told).digest("hex").slice(0, 16)
}

const listing: WorkspaceLook["listing"] = async (workspace, filesMax) => {
  const found: Record<string, string> = {}
  const folders = [""]
  let count = 0
  try {
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for (const entry of await readdir(join(workspace, folder), { withFileTypes: true })) {
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`
        if (entry.isDirectory() && !skipped.has(entry.name)) folders.push(path)
        if (!entry.isFile()) continue
        count += 1
        if (count > filesMax) return undefined
        found[path] = await markOf(join(workspace, path))
      }
    }
    return found
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    return undefined
  }
}

export const workspaceLook: WorkspaceLook = { file, text, listing }
