// Walks the directories below one of the workspace, in order of their names, each opened through the one above it and
// none through a link. Bounded in depth and in entries; git's own directory and what it ignores are passed over.
import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { builtinLimits } from "../BuiltinLimits.ts"
import type { Workspace } from "../Workspace.ts"
import { type IgnoreRules, isIgnored, rulesAbove, rulesIn } from "./Ignore.ts"

export interface TreeEntry {
  /** Relative to the root of the workspace, with forward slashes. */
  readonly path: string
  readonly kind: "file" | "directory" | "link" | "other"
  /** Path to open while this entry is being looked at; its last part must not be followed. */
  readonly at: string
}

export interface TreeRequest {
  readonly workspace: Workspace
  /** Relative to the root; "" is the root. */
  readonly directory: string
  /** Path to open it by. */
  readonly at: string
  readonly depthMax: number
  readonly includeIgnored: boolean
}

export interface TreeTally {
  /** Entries that were passed over because they are ignored. */
  ignored: number
  seen: number
  /** There was more than is looked at. */
  isCut: boolean
}

const kindOf = (entry: Dirent): TreeEntry["kind"] => {
  if (entry.isFile()) return "file"
  if (entry.isDirectory()) return "directory"
  return entry.isSymbolicLink() ? "link" : "other"
}

const byName = (left: Dirent, right: Dirent): number => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0)

/** Something was there a moment ago and is not, or may not be looked into. */
const passedOver = (error: unknown): undefined => {
  const { code = "" } = error as NodeJS.ErrnoException
  if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"].includes(code)) return undefined
  throw error
}

class Tree {
  private readonly request: TreeRequest
  private readonly tally: TreeTally

  constructor(request: TreeRequest, tally: TreeTally) {
    this.request = request
    this.tally = tally
  }

  async *walk(directory: string, at: string, above: IgnoreRules, depth: number): AsyncGenerator<TreeEntry> {
    const { depthMax, workspace } = this.request
    const rules = [...above, ...(await rulesIn(workspace, directory))]
    const entries = ((await readdir(at, { withFileTypes: true }).catch(passedOver)) ?? []).sort(byName)
    for (const entry of entries) {
      const path = directory === "" ? entry.name : `${directory}/${entry.name}`
      if (!this.isWanted(entry, path, rules)) continue
      const found = { path, kind: kindOf(entry), at: join(at, entry.name) }
      yield found
      if (found.kind === "directory" && depth < depthMax) yield* this.descend(found, rules, depth)
    }
  }

  private async *descend(entry: TreeEntry, rules: IgnoreRules, depth: number): AsyncGenerator<TreeEntry> {
    if (depth >= builtinLimits.walkDepthMax) {
      this.tally.isCut = true
      return
    }
    const held = await this.request.workspace.hold(entry.at).catch(passedOver)
    if (held === undefined) return
    try {
      yield* this.walk(entry.path, held.at, rules, depth + 1)
    } finally {
      await held.release()
    }
  }

  private isWanted(entry: Dirent, path: string, rules: IgnoreRules): boolean {
    const { includeIgnored, workspace } = this.request
    this.tally.seen += 1
    if (this.tally.seen > builtinLimits.walkEntriesMax) this.tally.isCut = true
    if (this.tally.isCut || entry.name === ".git" || workspace.isOwnData(path)) return false
    if (includeIgnored || !isIgnored(rules, path, { isDirectory: entry.isDirectory() })) return true
    this.tally.ignored += 1
    return false
  }
}

export async function* walkTree(request: TreeRequest, tally: TreeTally): AsyncGenerator<TreeEntry> {
  const above = await rulesAbove(request.workspace, request.directory)
  yield* new Tree(request, tally).walk(request.directory, request.at, above, 1)
}

export const emptyTally = (): TreeTally => ({ ignored: 0, seen: 0, isCut: false })
