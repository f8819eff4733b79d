// Puts new content in place of a file, or a new file in place of nothing: beside it first, then in its place in one step.
// Nothing is ever written through a link, and nothing is half written. What was there keeps its mode and owner.
import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import { type FileHandle, lstat, open, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { ToolFailure } from "../BuiltinErrors.ts"
import type { Located, Workspace } from "../Workspace.ts"

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_WRONLY } = constants

/** What was there when the new content was made: a file as it was read, or nothing. */
export type Expected = { readonly size: number; readonly mtimeMs: number; readonly ino: number } | "missing"

const isAsExpected = async (at: string, expected: Expected): Promise<boolean> => {
  const now = await lstat(at).catch(() => undefined)
  if (expected === "missing" || now === undefined) return (expected === "missing") === (now === undefined)
  return now.ino === expected.ino && now.size === expected.size && now.mtimeMs === expected.mtimeMs
}

/**
 * A file that replaces another looks like it; a new one belongs to whoever owns its directory, for commands run as that
 * user when the server is root. Only root may give a file away; with others it stays as it is.
 */
const takeLooks = async (file: FileHandle, { directory, facts }: Located): Promise<void> => {
  if (facts !== undefined) await file.chmod(facts.mode & 0o777)
  const { gid, uid } = facts ?? (await stat(directory))
  await file.chown(uid, gid).catch(() => undefined)
}

const writeBeside = async (beside: string, bytes: Uint8Array, located: Located): Promise<number> => {
  const file = await open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666)
  try {
    await file.writeFile(bytes)
    await takeLooks(file, located)
    await file.datasync()
    return (await file.stat()).ino
  } finally {
    await file.close()
  }
}

const changed = (path: string): ToolFailure =>
  new ToolFailure("file_changed", `${path} was changed by somebody else while it was being worked on`)

/** Writes to what a path was found to lead to. */
export const replaceLocated = async (
  path: string,
  located: Located,
  bytes: Uint8Array,
  expected?: Expected
): Promise<void> => {
  const { at, directory, kind, name } = located
  if (kind === "directory" || name === undefined) throw new ToolFailure("file_error", `${path} is a directory`)
  if (kind === "other") throw new ToolFailure("file_error", `${path} is no regular file`)
  const beside = join(directory, `.${name.slice(0, 32)}.${randomBytes(6).toString("hex")}.new`)
  try {
    const ino = await writeBeside(beside, bytes, located)
    if (expected !== undefined && !(await isAsExpected(at, expected))) throw changed(path)
    await located.confirm()
    await rename(beside, at)
    const written = await lstat(at).catch(() => undefined)
    if (written?.ino !== ino) throw changed(path)
    await located.confirm()
  } catch (error) {
    await rm(beside, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Writes a whole file, and the directories that are missing on the way to it. */
export const replaceFile = (
  workspace: Workspace,
  path: string,
  bytes: Uint8Array,
  expected?: Expected
): Promise<{ readonly shown: string; readonly isNew: boolean }> =>
  workspace.locate(path, { for: "writing", makeDirectories: true }, async (located) => {
    await replaceLocated(path, located, bytes, expected)
    return { shown: located.shown, isNew: located.kind === "missing" }
  })

/** Removes a regular file that is still as it was. */
export const removeFile = (workspace: Workspace, path: string, expected: Expected): Promise<void> =>
  workspace.locate(path, { for: "writing" }, async (located) => {
    if (located.kind !== "file") throw new ToolFailure("file_error", `${path} is no regular file`)
    if (!(await isAsExpected(located.at, expected))) throw changed(path)
    await located.confirm()
    await rm(located.at)
  })
