// The list of goals that may have worktrees somewhere: `<data>/worktrees.json`. It outlives the server, so that what a
// goal left behind is found again after a crash, wherever its workspace is.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeDirectories } from "./ServerFiles.ts"

export interface WorktreeEntry {
  readonly conversation_id: string
  readonly plan_id: string
  readonly workspace: string
}

const isEntry = (value: unknown): value is WorktreeEntry => {
  const { conversation_id: conversation, plan_id: plan, workspace } = (value ?? {}) as Partial<WorktreeEntry>
  return [conversation, plan, workspace].every((text) => typeof text === "string" && text !== "")
}

const pathIn = (dataDirectory: string): string => join(dataDirectory, "worktrees.json")

/** Nothing where there is no list, or none that can be read: worktrees that nobody knows of are left alone. */
export const readWorktrees = (dataDirectory: string): ReadonlyArray<WorktreeEntry> => {
  try {
    const value: unknown = JSON.parse(readFileSync(pathIn(dataDirectory), "utf8"))
    return Array.isArray(value) ? value.filter(isEntry) : []
  } catch {
    return []
  }
}

export const writeWorktrees = (dataDirectory: string, entries: ReadonlyArray<WorktreeEntry>): void => {
  const path = pathIn(dataDirectory)
  if (entries.length === 0) {
    rmSync(path, { force: true })
    return
  }
  makeDirectories(dataDirectory)
  writeFileSync(`${path}.new`, `${JSON.stringify(entries, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** The list of goals with worktrees of one data directory. */
export const worktreeFiles = (dataDirectory: string) => ({
  read: () => readWorktrees(dataDirectory),
  write: (entries: ReadonlyArray<WorktreeEntry>) => writeWorktrees(dataDirectory, entries)
})
