// What a local tool reads to find and enter the server of a data directory, and the named tokens that an owner hands out.
// Read anew every time: a server that was restarted may listen elsewhere.
import { randomBytes } from "node:crypto"
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { configPath, readConfigFile } from "./Explain.ts"
import { makeDirectories, type ServerInfo } from "./ServerFiles.ts"
import { SettingInvalid } from "./Settings.ts"

const ownerOnly = 0o600

export const tokenPath = (dataDirectory: string): string => join(dataDirectory, "token")

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Somebody else's process is alive all the same.
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** The server that runs on this data directory; undefined when none does. */
export const readServerInfo = (dataDirectory: string): ServerInfo | undefined => {
  try {
    const info: Partial<ServerInfo> = JSON.parse(readFileSync(join(dataDirectory, "server.json"), "utf8"))
    const isWhole = typeof info.url === "string" && typeof info.pid === "number"
    return isWhole && isAlive(info.pid) ? (info as ServerInfo) : undefined
  } catch {
    return undefined
  }
}

const backgroundPath = (dataDirectory: string): string => join(dataDirectory, "background.json")

/** Remembers which process a command has started, and may start again. */
export const noteBackground = (dataDirectory: string, pid: number): void =>
  writeFileSync(backgroundPath(dataDirectory), `${JSON.stringify({ pid })}\n`, { mode: ownerOnly })

const pidIn = (path: string): unknown => {
  try {
    return (JSON.parse(readFileSync(path, "utf8")) as { readonly pid?: unknown }).pid
  } catch {
    return undefined
  }
}

/**
 * A server in the background ended without a goodbye: its note is left, its process is not. One that somebody runs in the
 * foreground, or as a service, is theirs to bring back.
 */
export const hasCrashed = (dataDirectory: string): boolean => {
  const pid = pidIn(join(dataDirectory, "server.json"))
  return typeof pid === "number" && !isAlive(pid) && pidIn(backgroundPath(dataDirectory)) === pid
}

export const readToken = (dataDirectory: string): string | undefined => {
  try {
    return readFileSync(tokenPath(dataDirectory), "utf8").trim()
  } catch {
    return undefined
  }
}

export const tokenRoles = ["viewer", "operator", "admin"] as const
export type TokenRole = (typeof tokenRoles)[number]

export interface StoredToken {
  readonly name: string
  readonly role: TokenRole
  readonly token: string
}

const isStoredToken = (value: unknown): value is StoredToken => {
  const { name, role, token } = (value ?? {}) as Partial<StoredToken>
  return (
    typeof name === "string" &&
    typeof token === "string" &&
    token.length >= 16 &&
    tokenRoles.some((one) => one === role)
  )
}

/** Tokens with names and roles, kept in config.json; the server takes them up when it starts. */
export const readNamedTokens = (dataDirectory: string): ReadonlyArray<StoredToken> => {
  const { tokens = [] } = readConfigFile(dataDirectory)
  if (!Array.isArray(tokens) || !tokens.every(isStoredToken)) {
    throw new SettingInvalid(configPath(dataDirectory), "tokens is not a list of tokens")
  }
  return tokens
}

const writeNamedTokens = (dataDirectory: string, tokens: ReadonlyArray<StoredToken>): void => {
  const path = configPath(dataDirectory)
  const { tokens: _before, ...rest } = readConfigFile(dataDirectory)
  makeDirectories(dataDirectory)
  writeFileSync(`${path}.new`, `${JSON.stringify({ ...rest, tokens }, null, 2)}\n`, { mode: ownerOnly })
  renameSync(`${path}.new`, path)
}

/** Undefined when the name is taken. */
export const createNamedToken = (dataDirectory: string, name: string, role: TokenRole): StoredToken | undefined => {
  const tokens = readNamedTokens(dataDirectory)
  if (tokens.some((one) => one.name === name)) return undefined
  const created = { name, role, token: randomBytes(32).toString("base64url") }
  writeNamedTokens(dataDirectory, [...tokens, created])
  return created
}

/** False when there is none of this name. */
export const removeNamedToken = (dataDirectory: string, name: string): boolean => {
  const tokens = readNamedTokens(dataDirectory)
  if (!tokens.some((one) => one.name === name)) return false
  writeNamedTokens(
    dataDirectory,
    tokens.filter((one) => one.name !== name)
  )
  return true
}

/** The named tokens of a data directory, as an admin sees them. */
export const tokenAdministration = (dataDirectory: string) => ({
  tokens: () => readNamedTokens(dataDirectory).map(({ name, role }) => ({ name, role })),
  createToken: (name: string, role: TokenRole) => createNamedToken(dataDirectory, name, role)?.token,
  removeToken: (name: string) => removeNamedToken(dataDirectory, name)
})
