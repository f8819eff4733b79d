// The files beside the data that let local tools find and enter the server: the token, made once, and where the running
// server listens. Both are for their owner alone.
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { open, readFile, realpath } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"

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

/**
 * Makes a directory and its missing parents, one by one: the recursive call of Node never returns where the system answers
 * that a parent is missing although it is there, as /proc does.
 */
export const makeDirectories = (path: string): void => {
  const missing: Array<string> = []
  for (let at = path; !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at)
  for (const directory of missing.reverse()) mkdirSync(directory, { mode: 0o700 })
}

/** What a header can carry, and long enough not to be guessed. */
const USABLE_TOKEN = /^[\x21-\x7e]{32,512}$/

/** The file is there and holds nothing that could be asked for. */
export class TokenUnusable extends Error {
  override readonly name = "TokenUnusable"
  readonly _tag = "TokenUnusable"

  constructor(path: string) {
    super(`${path} holds no usable token (32 to 512 visible ASCII characters); remove it to get a new one`)
  }
}

/** The token of the data directory, made on first use: 256 random bits. */
export const ensureToken = (dataDirectory: string): string => {
  const path = tokenPath(dataDirectory)
  makeDirectories(dataDirectory)
  if (!existsSync(path)) {
    writeFileSync(path, `${randomBytes(TOKEN_BYTES).toString("base64url")}\n`, { mode: OWNER_ONLY, flag: "wx" })
  }
  if (!statSync(path).isFile()) throw new TokenUnusable(path)
  chmodSync(path, OWNER_ONLY)
  const token = readFileSync(path, "utf8").trim()
  if (!USABLE_TOKEN.test(token)) throw new TokenUnusable(path)
  return token
}

/** The token as it stands in its file; nothing where there is none. */
export const readToken = (dataDirectory: string): string | undefined => {
  try {
    return readFileSync(tokenPath(dataDirectory), "utf8").trim()
  } catch {
    return undefined
  }
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

/** A data directory that others own or can write to: they could put in what they like, the token included. */
export class DirectoryShared extends Error {
  override readonly name = "DirectoryShared"
}

const OTHERS_WRITE = 0o022

/** Makes the data directory for its owner alone, and refuses one that is not. */
export const claimDirectory = (dataDirectory: string): void => {
  makeDirectories(dataDirectory)
  const { mode, uid } = statSync(dataDirectory)
  const self = process.geteuid?.()
  if (self !== undefined && uid !== self)
    throw new DirectoryShared(
      `${dataDirectory} belongs to the user ${uid}, not to ${self}; use a directory of your own`
    )
  if (process.platform !== "win32" && (mode & OTHERS_WRITE) !== 0)
    throw new DirectoryShared(`other users can write to ${dataDirectory}; fix it with: chmod go-w`)
}

/** A file that a person named, such as a policy to be tried. */
export const readTextFile = (path: string): Promise<string> => readFile(path, "utf8")

const isBelow = (path: string, directory: string): boolean => path.startsWith(`${directory.replace(/\/+$/, "")}/`)

/** Reads scenarios below one directory. What is opened is looked at, and not what its name led to a moment before. */
export const scenarioReader =
  (directory: string) =>
  async (name: string): Promise<string> => {
    const root = await realpath(directory)
    const file = await open(resolve(root, name), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const opened = await realpath(`/proc/self/fd/${file.fd}`).catch(() => realpath(resolve(root, name)))
      if (!isBelow(opened, root)) throw new Error(`it is not below ${directory}`)
      if (!(await file.stat()).isFile()) throw new Error("it is not a file")
      return await file.readFile("utf8")
    } finally {
      await file.close()
    }
  }
