// Files of hooks as they are on disk, and the list of contents that a person has trusted: `<data>/trusted_hooks.json`,
// for its owner alone.
import { createHash } from "node:crypto"
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { makeDirectories } from "./ServerFiles.ts"

/** A larger file is not read at all. */
const bytesMax = 1_048_576
const trustedMax = 1_000

export interface FileOnDisk {
  /** Changes when the file does. */
  readonly stamp: string
  readonly text: () => string
}

/** The file, unless there is none. */
export const openFile = (path: string): FileOnDisk | undefined => {
  try {
    const { ctimeNs, ino, mtimeNs, size } = statSync(path, { bigint: true })
    return {
      stamp: `${ino} ${size} ${mtimeNs} ${ctimeNs}`,
      text: () => {
        if (size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`)
        return readFileSync(path, "utf8")
      }
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "ENOENT" || code === "ENOTDIR") return undefined
    const { message } = error as Error
    return {
      stamp: message,
      text: () => {
        throw new Error(message)
      }
    }
  }
}

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

/** The real path of the repository that a workspace is part of, else its own: what programs in it may lock. */
export const sharedDirectory = (workspace: string): string => {
  try {
    const own = realpathSync(workspace)
    for (let above = own; ; above = dirname(above)) {
      if (isThere(join(above, ".git"))) return above
      if (dirname(above) === above) return own
    }
  } catch {
    // It is gone or closed to us, and so it will be for the hook; its name is all there is.
    return workspace
  }
}

export const removeFile = (path: string): void => rmSync(path, { force: true })

export interface TrustedHooks {
  readonly sha256: string
  readonly path: string
  readonly trusted_ms: number
}

const trustPath = (dataDirectory: string): string => join(dataDirectory, "trusted_hooks.json")

const isTrusted = (value: unknown): value is TrustedHooks => {
  const { path, sha256 } = (value ?? {}) as Partial<TrustedHooks>
  return typeof path === "string" && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256)
}

/** What was trusted so far; nothing where the list cannot be read, for then nobody vouches for anything. */
export const readTrusted = (dataDirectory: string): ReadonlyArray<TrustedHooks> => {
  try {
    const value: unknown = JSON.parse(readFileSync(trustPath(dataDirectory), "utf8"))
    return Array.isArray(value) ? value.filter(isTrusted) : []
  } catch {
    return []
  }
}

const writeTrusted = (dataDirectory: string, trusted: ReadonlyArray<TrustedHooks>): void => {
  const path = trustPath(dataDirectory)
  makeDirectories(dataDirectory)
  writeFileSync(`${path}.new`, `${JSON.stringify(trusted, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Trusts the file as it is now, whatever it was before. Undefined when there is none. */
export const trustFile = (dataDirectory: string, path: string, nowMs: number): TrustedHooks | undefined => {
  const file = openFile(path)
  if (file === undefined) return undefined
  return trustContent(dataDirectory, { path, sha256: createHash("sha256").update(file.text()).digest("hex") }, nowMs)
}

/** Trusts the content that was seen, whatever the file holds by now. */
export const trustContent = (
  dataDirectory: string,
  { path, sha256 }: Pick<TrustedHooks, "path" | "sha256">,
  nowMs: number
): TrustedHooks => {
  const added = { sha256, path, trusted_ms: nowMs }
  const others = readTrusted(dataDirectory).filter((one) => one.path !== path)
  writeTrusted(dataDirectory, [...others, added].slice(-trustedMax))
  return added
}

/** False when it was not trusted. */
export const distrustFile = (dataDirectory: string, path: string): boolean => {
  const all = readTrusted(dataDirectory)
  const left = all.filter((one) => one.path !== path)
  if (left.length === all.length) return false
  writeTrusted(dataDirectory, left)
  return true
}

/** Whether a content is trusted; the list is read again when it changes. */
export const trustCheck = (dataDirectory: string): ((sha256: string) => boolean) => {
  let stamp: string | undefined
  let hashes: ReadonlySet<string> = new Set()
  return (sha256) => {
    const now = openFile(trustPath(dataDirectory))?.stamp
    if (now !== stamp) {
      stamp = now
      hashes = new Set(readTrusted(dataDirectory).map((one) => one.sha256))
    }
    return hashes.has(sha256)
  }
}
