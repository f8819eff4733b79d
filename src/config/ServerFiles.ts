// The files beside the data that let local tools find and enter the server: the token, made once, and where the running
// server listens. Both are for their owner alone.
import { randomBytes } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

export interface ServerInfo {
  readonly url: string
  readonly pid: number
  readonly started_ms: number
  readonly version: string
}

const OWNER_ONLY = 0o600
const TOKEN_BYTES = 32

const tokenPath = (dataDirectory: string): string => join(dataDirectory, "token")
const infoPath = (dataDirectory: string): string => join(dataDirectory, "server.json")

/** The token of the data directory, made on first use: 256 random bits. */
export const ensureToken = (dataDirectory: string): string => {
  const path = tokenPath(dataDirectory)
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
  if (!existsSync(path)) {
    writeFileSync(path, `${randomBytes(TOKEN_BYTES).toString("base64url")}\n`, { mode: OWNER_ONLY, flag: "wx" })
  }
  chmodSync(path, OWNER_ONLY)
  const token = readFileSync(path, "utf8").trim()
  if (token.length < 32) throw new Error(`${path} holds no usable token; remove it to get a new one`)
  return token
}

export const writeServerInfo = (dataDirectory: string, info: ServerInfo): void => {
  const path = infoPath(dataDirectory)
  const fresh = `${path}.${info.pid}`
  writeFileSync(fresh, `${JSON.stringify(info)}\n`, { mode: OWNER_ONLY })
  renameSync(fresh, path)
}

/** Removes the note of a server that has ended, unless another one has written its own since. */
export const removeServerInfo = (dataDirectory: string, pid: number): void => {
  const path = infoPath(dataDirectory)
  try {
    const info = JSON.parse(readFileSync(path, "utf8")) as Partial<ServerInfo>
    if (info.pid === pid) rmSync(path)
  } catch {
    // Gone already, or not ours to judge.
  }
}

/** A file that a person named, such as a scenario. */
export const readTextFile = (path: string): Promise<string> => readFile(path, "utf8")
