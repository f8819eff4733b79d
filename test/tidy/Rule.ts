// A tidy rule: a fact about the whole tree that must hold, with small trees that break it. A rule whose breaking
// trees are not found is itself broken, and the test says so.
import type { Finding, SourceFile } from "./Source.ts"

/** A tree in small: path → text. */
export type Tree = Readonly<Record<string, string>>

export interface Rule {
  /** A present-tense fact. */
  readonly name: string
  readonly check: (files: ReadonlyArray<SourceFile>) => ReadonlyArray<Finding>
  readonly broken: ReadonlyArray<{ readonly tree: Tree; readonly fact: RegExp }>
  /** Trees that look like a breach and are none. */
  readonly sound: ReadonlyArray<Tree>
}

export const filesOf = (tree: Tree): ReadonlyArray<SourceFile> =>
  Object.entries(tree).map(([path, text]) => ({ path, text }))

/** Folders end in "/"; anything else is a file. */
export const isListed = (path: string, list: ReadonlyArray<string>): boolean =>
  list.some((entry) => (entry.endsWith("/") ? path.startsWith(entry) : path === entry))

export const showFinding = ({ path, line, fact }: Finding): string =>
  `${path}${line === undefined ? "" : `:${line}`}: ${fact}`
