// Files of one outside agent: the socket of its holder, what the holder was told to run, and how it ended.
import { createHash } from "node:crypto"
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Exit, Size } from "./Frames.ts"

export interface LaunchFile extends Size {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly workingDirectory: string
  /** The program goes on when nobody looks at it. */
  readonly isDetached: boolean
}

export interface HolderState {
  readonly holderPid: number
  readonly pid: number
  readonly startedMs: number
  readonly exit?: Exit
  /** The process beside the program, and where it is reached. */
  readonly companion?: { readonly pid: number; readonly address: string }
}

/** Addresses of local sockets are short: a long directory has its socket elsewhere, under a name that only it has. */
const addressBytesMax = 100

export const socketPath = (directory: string): string => {
  const path = join(directory, "holder.sock")
  if (Buffer.byteLength(path) <= addressBytesMax) return path
  const name = createHash("sha256").update(directory).digest("hex").slice(0, 24)
  return join(tmpdir(), `echs-${name}.sock`)
}

export const launchPath = (directory: string): string => join(directory, "launch.json")
const statePath = (directory: string): string => join(directory, "holder.json")

export const writePrivate = (path: string, text: string, mode = 0o600): void => {
  writeFileSync(`${path}.new`, text, { mode })
  renameSync(`${path}.new`, path)
}

export const writeState = (directory: string, state: HolderState): void =>
  writePrivate(statePath(directory), `${JSON.stringify(state)}\n`)

/** Undefined where there is none, or none that can be read. */
export const readState = (directory: string): HolderState | undefined => {
  try {
    const value: Partial<HolderState> = JSON.parse(readFileSync(statePath(directory), "utf8"))
    return typeof value.holderPid === "number" && typeof value.pid === "number" ? (value as HolderState) : undefined
  } catch {
    return undefined
  }
}

export const readLaunch = (directory: string): LaunchFile => JSON.parse(readFileSync(launchPath(directory), "utf8"))
