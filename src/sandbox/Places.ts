// Places in the file system of a command, and what is found at them outside.
import { lstatSync } from "node:fs"
import { type FileFacts, type FileKind, factsOf } from "./Handle.ts"

export type MountKind =
  /** The same as outside, and may be changed. */
  | "writable"
  /** The same as outside, and may not. */
  | "readonly"
  /** A part of the system, under a name that only the system's owner can change; may not be changed. */
  | "system"
  /** Empty, and stays so. */
  | "empty"
  /** Empty, and its own to write to while it runs. */
  | "private"
  /** A file that holds nothing. */
  | "blank"

export interface Mount {
  readonly at: string
  readonly kind: MountKind
  /** What has to be found there: for all that is the same as outside, and for what is covered inside of it. */
  readonly file?: FileFacts
  /** It belongs to the command like its roots, though it lies outside of them. */
  readonly own?: true
}

/** Both are absolute and have no steps back; it is asked some hundred times for every plan. */
export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`)

/** What we may not look at, a command may not either: it runs with our rights or with less. */
export const visibleFacts = (path: string): FileFacts | undefined => {
  try {
    const facts = lstatSync(path, { throwIfNoEntry: false, bigint: true })
    return facts === undefined ? undefined : factsOf(facts)
  } catch {
    return undefined
  }
}

/** What is there, without following a link; undefined when there is nothing, or nothing that can be seen. */
export const visibleKind = (path: string): FileKind | undefined => visibleFacts(path)?.kind
