// Paths inside a workspace, and only those. A path is judged by where it really leads: links are followed first, so that
// none can lead out.
import { realpath } from "node:fs/promises"
import { basename, dirname, isAbsolute, relative, resolve, sep } from "node:path"

export class OutsideWorkspace extends Error {
  override readonly name = "OutsideWorkspace"
  readonly path: string

  constructor(path: string) {
    super(`${path} is not inside the workspace`)
    this.path = path
  }
}

const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** The nearest ancestor that exists, without its links, and what is left of the path below it. */
const realPathOf = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || parent === path) throw error
    return resolve(await realPathOf(parent), basename(path))
  }
}

/** The absolute path that a path of the model means; throws OutsideWorkspace when it leads elsewhere. */
export const inside = async (workspace: string, path: string): Promise<string> => {
  const root = await realpath(workspace)
  const wanted = resolve(root, path)
  if (!isInside(root, wanted)) throw new OutsideWorkspace(path)
  const real = await realPathOf(wanted)
  if (!isInside(root, real)) throw new OutsideWorkspace(path)
  return real
}
