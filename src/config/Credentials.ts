// Keys of model providers that a person has stored: `<data>/credentials.json`, by the name of their variable, for its
// owner alone. The environment comes first. Read anew for each use, so that a key holds from the next request on.
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Environment } from "./Environment.ts"
import { makeDirectories } from "./ServerFiles.ts"
import { SettingInvalid } from "./Settings.ts"

const ownerOnly = 0o600
const fileBytesMax = 65_536

export const credentialsPath = (dataDirectory: string): string => join(dataDirectory, "credentials.json")

type Credentials = Readonly<Record<string, string>>

const isCredentials = (value: unknown): value is Credentials =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((one) => typeof one === "string")

/** Every stored key by the name of its variable; empty where there is no file. */
export const readCredentials = (dataDirectory: string): Credentials => {
  const path = credentialsPath(dataDirectory)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return {}
  if (stats.size > fileBytesMax) throw new SettingInvalid(path, `it is larger than ${fileBytesMax} bytes`)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, "utf8"))
  } catch (error) {
    throw new SettingInvalid(path, error instanceof Error ? error.message : String(error))
  }
  if (isCredentials(value)) return value
  throw new SettingInvalid(path, "it must hold a JSON object of keys by the names of their variables")
}

const write = (dataDirectory: string, credentials: Credentials): void => {
  const path = credentialsPath(dataDirectory)
  makeDirectories(dataDirectory)
  writeFileSync(`${path}.new`, `${JSON.stringify(credentials, null, 2)}\n`, { mode: ownerOnly })
  chmodSync(`${path}.new`, ownerOnly)
  renameSync(`${path}.new`, path)
}

export const storeCredential = (dataDirectory: string, variable: string, key: string): void =>
  write(dataDirectory, { ...readCredentials(dataDirectory), [variable]: key })

/** False when there is none of this name. */
export const removeCredential = (dataDirectory: string, variable: string): boolean => {
  const { [variable]: removed, ...rest } = readCredentials(dataDirectory)
  if (removed === undefined) return false
  write(dataDirectory, rest)
  return true
}

/** The key of a variable: from the environment, else as it was stored. */
export const keyOf = (environment: Environment, dataDirectory: string, variable: string): string | undefined =>
  environment.variables[variable] || readCredentials(dataDirectory)[variable]
