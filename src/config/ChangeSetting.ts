// Changes one setting of `config.json`: the whole file is checked as the server would read it, and written only if it
// makes sense.
import { renameSync, writeFileSync } from "node:fs"
import type { Environment } from "./Environment.ts"
import { configPath, readConfigFile } from "./Explain.ts"
import { makeDirectories } from "./ServerFiles.ts"
import { checkSettings } from "./Settings.ts"

const ownerOnly = 0o600

/** Sets the setting, or with `undefined` removes it; throws what is wrong with it. */
export const changeSetting = (environment: Environment, dataDirectory: string, name: string, value: unknown): void => {
  const { [name]: _before, ...rest } = readConfigFile(dataDirectory)
  const changed = value === undefined ? rest : { ...rest, [name]: value }
  const path = configPath(dataDirectory)
  checkSettings(environment, changed, path)
  makeDirectories(dataDirectory)
  writeFileSync(`${path}.new`, `${JSON.stringify(changed, null, 2)}\n`, { mode: ownerOnly })
  renameSync(`${path}.new`, path)
}
