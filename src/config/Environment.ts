// What ECHS takes from outside itself: environment variables, the user's home and its own version. The one place
// in the source that reads them; everything else is handed values.
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"

export interface Environment {
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly homeDirectory: string
}

export const readEnvironment = (): Environment => ({ variables: process.env, homeDirectory: homedir() })

/** Where ECHS keeps its data: the flag, then `ECHS_DATA`, then the user's state directory. */
export const dataDirectory = (environment: Environment, flag: string | undefined): string => {
  const { ECHS_DATA, XDG_STATE_HOME } = environment.variables
  const chosen = nonEmpty(flag) ?? nonEmpty(ECHS_DATA)
  if (chosen !== undefined) return resolve(chosen)
  return join(nonEmpty(XDG_STATE_HOME) ?? join(environment.homeDirectory, ".local", "state"), "echs")
}

/** The version of the package this file belongs to; the built package carries a manifest at the same relative place. */
export const readVersion = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
  const isManifest = typeof manifest === "object" && manifest !== null && "version" in manifest
  if (!isManifest || typeof manifest.version !== "string") throw new Error("package.json has no version")
  return manifest.version
}

const nonEmpty = (value: string | undefined): string | undefined => (value === "" ? undefined : value)
