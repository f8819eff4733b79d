// Places in the file system of a command, and what is found at them outside. Links are never followed: where one would
// have to be, the request is refused.
import { lstatSync, type Stats } from "node:fs"
import { SandboxRefused } from "./Errors.ts"

export type MountKind =
  /** The same as outside, and may be changed. */
  | "writable"
  /** The same as outside, and may not. */
  | "readonly"
  /** Empty, and stays so. */
  | "empty"
  /** Empty, and its own to write to while it runs. */
  | "private"
  /** A file that holds nothing. */
  | "blank"

export interface Mount {
  readonly at: string
  readonly kind: MountKind
}

const lookAt = (path: string): Stats | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new SandboxRefused("unreadable", path, `cannot be looked at (${(error as NodeJS.ErrnoException).code})`)
  }
}

export type FileKind = "file" | "directory" | "link" | "other"

/** What we may not look at, a command may not either: it runs with our rights or with less. */
export const visibleKind = (path: string): FileKind | undefined => {
  try {
    return kindOf(path)
  } catch (error) {
    if (error instanceof SandboxRefused) return undefined
    throw error
  }
}

/** What is there, without following a link; undefined when there is nothing. */
export const kindOf = (path: string): FileKind | undefined => {
  const facts = lookAt(path)
  if (facts === undefined) return undefined
  if (facts.isSymbolicLink()) return "link"
  return facts.isDirectory() ? "directory" : facts.isFile() ? "file" : "other"
}

export const refuseLink = (path: string): void => {
  if (kindOf(path) === "link") throw new SandboxRefused("link", path, "is a link, and cannot be protected")
}
