// Puts new content in place of a file, or a new file in place of nothing: beside it first, then in its place in one step.
// Nothing is ever written through a link, and nothing is half written. What was there keeps its mode and owner.
import { randomBytes } from "node:crypto"
import { constants, type Stats } from "node:fs"
import { type FileHandle, lstat, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { ToolFailure } from "../BuiltinErrors.ts"
import { type FileProblem, locate, opened, step } from "../FileWork.ts"
import type { Located, Workspace } from "../Workspace.ts"

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_WRONLY } = constants

/** What was there when the new content was made: a file as it was read, or nothing. */
export type Expected = { readonly size: number; readonly mtimeMs: number; readonly ino: number } | "missing"

const factsAt = (at: string): Effect.Effect<Stats | undefined> => Effect.promise(() => lstat(at).catch(() => undefined))

const isAsExpected = (at: string, expected: Expected): Effect.Effect<boolean> =>
  Effect.map(factsAt(at), (now) => {
    if (expected === "missing" || now === undefined) return (expected === "missing") === (now === undefined)
    return now.ino === expected.ino && now.size === expected.size && now.mtimeMs === expected.mtimeMs
  })

/**
 * A file that replaces another looks like it; a new one belongs to whoever owns its directory, for commands run as that
 * user when the server is root. Only root may give a file away; with others it stays as it is.
 */
const takeLooks = Effect.fnUntraced(function* (file: FileHandle, { directory, facts }: Located) {
  if (facts !== undefined) yield* step(() => file.chmod(facts.mode & 0o777))
  const { gid, uid } = facts ?? (yield* step(() => stat(directory)))
  yield* Effect.promise(() => file.chown(uid, gid).catch(() => undefined))
})

const writeBeside = Effect.fnUntraced(function* (beside: string, bytes: Uint8Array, located: Located) {
  const file = yield* opened(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666)
  yield* step(() => file.writeFile(bytes))
  yield* takeLooks(file, located)
  yield* step(() => file.datasync())
  return (yield* step(() => file.stat())).ino
}, Effect.scoped)

const changed = (path: string): ToolFailure =>
  new ToolFailure("file_changed", `${path} was changed by somebody else while it was being worked on`)

/** Writes to what a path was found to lead to. Either all of it happens, also when it is interrupted, or nothing. */
const replaceLocated = Effect.fnUntraced(function* (
  path: string,
  located: Located,
  bytes: Uint8Array,
  expected?: Expected
) {
  const { at, directory, kind, name } = located
  if (kind === "directory" || name === undefined)
    return yield* Effect.fail(new ToolFailure("file_error", `${path} is a directory`))
  if (kind === "other") return yield* Effect.fail(new ToolFailure("file_error", `${path} is no regular file`))
  const beside = join(directory, `.${name.slice(0, 32)}.${randomBytes(6).toString("hex")}.new`)
  const replacing = Effect.gen(function* () {
    const ino = yield* writeBeside(beside, bytes, located)
    if (expected !== undefined && !(yield* isAsExpected(at, expected))) return yield* Effect.fail(changed(path))
    yield* step(located.confirm)
    yield* step(() => rename(beside, at))
    const written = yield* factsAt(at)
    if (written?.ino !== ino) return yield* Effect.fail(changed(path))
    yield* step(located.confirm)
  })
  yield* Effect.onError(replacing, () => Effect.promise(() => rm(beside, { force: true }).catch(() => undefined)))
}, Effect.uninterruptible)

export interface Replaced {
  readonly shown: string
  readonly isNew: boolean
}

/** Writes a whole file, and the directories that are missing on the way to it. */
export const replaceFile = (
  workspace: Workspace,
  path: string,
  bytes: Uint8Array,
  expected?: Expected
): Effect.Effect<Replaced, FileProblem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const located = yield* locate(workspace, path, { for: "writing", makeDirectories: true })
      yield* replaceLocated(path, located, bytes, expected)
      return { shown: located.shown, isNew: located.kind === "missing" }
    })
  )

/** Removes a regular file that is still as it was. */
export const removeFile = (workspace: Workspace, path: string, expected: Expected): Effect.Effect<void, FileProblem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { at, confirm, kind } = yield* locate(workspace, path, { for: "writing" })
      if (kind !== "file") return yield* Effect.fail(new ToolFailure("file_error", `${path} is no regular file`))
      if (!(yield* isAsExpected(at, expected))) return yield* Effect.fail(changed(path))
      yield* step(confirm)
      yield* step(() => rm(at))
    })
  )
